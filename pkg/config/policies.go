package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// NamedPolicy is one entry of a policies file: a policy for `feedscale simulate` to compare,
// without a processor (docs/tune.md).
type NamedPolicy struct {
	Name   string        // unique
	Every  time.Duration // between two polls, at least 1 s
	Policy scaling.Policy
}

// BuiltInPolicies returns the names that no entry of a policies file may have: "default" is the
// policy of a processor that sets nothing, "keda" is KEDA's.
func BuiltInPolicies() []string { return []string{"default", "keda"} }

// minimalPolicies is the example of a policies file in mistakes.
const minimalPolicies = "policies: [{name: brisk, changeFeedLagThreshold: 50}]"

// DefaultPolicy returns the policy of a processor that sets nothing.
func DefaultPolicy() scaling.Policy {
	d := documentReader{reader: reader{mistakes: new(Mistakes)}}
	return d.policy(d.object(nil))
}

// LoadPolicies reads a policies document: `defaults`, and a list `policies` whose entries have a
// name, optionally `every` (default 15 s), and the fields of a processor that say how it is scaled.
// file is its name in mistakes. The error is a Mistakes.
func LoadPolicies(file string, text []byte) ([]NamedPolicy, error) {
	var mistakes Mistakes
	policies := loadPolicies(file, text, &mistakes)
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	return policies, nil
}

func loadPolicies(file string, text []byte, mistakes *Mistakes) []NamedPolicy {
	root := parseTree(file, text, mistakes)
	if root == nil {
		return nil
	}
	d := documentReader{reader: reader{file: file, mistakes: mistakes}}
	o := d.object(root)
	defaults := o.get("defaults")
	if defaults != nil {
		// On their own, so that a mistake in them is reported even where every policy overrides it.
		d.partial = true
		d.namedPolicy(defaults)
		d.partial = false
		if name := defaults.member("name"); name != nil {
			d.mistake(name, "has no default; allowed is a name of its own in every policy")
		}
	}
	items := o.list("policies")
	o.close()
	if len(items) == 0 && (root.isNull() || o.sound("policies")) {
		mistakes.Add(Mistake{File: file, Line: root.line, Column: root.column, Field: "policies", Text: "is empty; allowed is at least one policy, as in " + minimalPolicies})
	}
	policies := make([]NamedPolicy, len(items))
	lines := map[string]int{} // of each name
	for i, item := range items {
		if !item.isObject() {
			d.mistake(item, item.is()+"; allowed is an object, as in "+minimalPolicies)
			continue
		}
		p := d.namedPolicy(overlay(defaults, item))
		if name := item.member("name"); name != nil && p.Name != "" {
			if line, twice := lines[p.Name]; twice {
				d.mistake(name, fmt.Sprintf("%s is the name of another policy, on line %d; allowed is a name of its own", yamltree.QuoteName(p.Name), line))
			} else {
				lines[p.Name] = name.line
			}
		}
		policies[i] = p
	}
	return policies
}

// namedPolicy reads one policy, with the defaults already applied.
func (d *documentReader) namedPolicy(n *node) NamedPolicy {
	o := d.object(n)
	o.require("name", "a name of its own in every policy, "+events.NameForm)
	p := NamedPolicy{
		Name:   o.text("name", "", checkPolicyName),
		Every:  o.duration("every", 15*time.Second, time.Second),
		Policy: d.policy(o),
	}
	o.close()
	return p
}

func checkPolicyName(text string) error {
	if slices.Contains(BuiltInPolicies(), text) {
		return fmt.Errorf("%s is built in; allowed is another name", yamltree.Quote(text))
	}
	return checkName(text)
}
