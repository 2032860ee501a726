package config

import (
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// NamedPolicy is an entry of a policies file, for `feedscale simulate` to compare (docs/tune.md).
type NamedPolicy struct {
	Name   string        // unique
	Every  time.Duration // between two polls, at least 1 s
	Policy scaling.Policy
}

// namedPolicyFields are the fields of an entry.
type namedPolicyFields struct {
	Name  string
	Every duration
	policyFields
}

// builtInPolicies are names that no entry may have: DefaultPolicy and the policy of KEDA.
var builtInPolicies = []string{"default", "keda"}

// DefaultPolicy returns the policy of a processor that sets nothing.
func DefaultPolicy() scaling.Policy {
	fields, err := yamltree.Decode[namedPolicyFields](policiesForm().At("policies", "0"), nil)
	if err != nil {
		panic(err) // the defaults of the schema are part of the program
	}
	return fields.policy()
}

// LoadPolicies reads a policies file; file is its name in mistakes. The error is a Mistakes.
func LoadPolicies(file string, text []byte) ([]NamedPolicy, error) {
	var mistakes Mistakes
	var policies []NamedPolicy
	if d := newDocumentReader(file, text, policiesForm(), "policies", &mistakes); d != nil {
		for _, e := range d.entries("policies") {
			f := fields[namedPolicyFields](e, "policies")
			policies = append(policies, NamedPolicy{Name: f.Name, Every: time.Duration(f.Every), Policy: f.policy()})
			e.clash(slices.Contains(builtInPolicies, f.Name), yamltree.Quote(f.Name)+" is built in; allowed is another name", "name")
			e.claimName(f.Name)
			e.checkPolicy(f.policyFields)
		}
	}
	return policies, mistakes.Err()
}
