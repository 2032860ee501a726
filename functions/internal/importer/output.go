package importer

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// schemaLine is for editors (docs/configure.md, Completion in an editor).
const schemaLine = "# yaml-language-server: $schema=pkg/config/processors.schema.json\n"

// output is the result in the making.
type output struct {
	groups, processors []*entry
	names              map[string]bool // of both
	remarks            yamltree.Mistakes
	lookup             func(string) (string, bool)
	connections        map[string]string  // their names, by the identity of the account
	missing            map[string]Setting // that connections need, and lookup does not find
}

// entry is a processor or a group.
type entry struct {
	at     *yamltree.Node // its origin
	name   string
	fields []field
}

type field struct {
	name  string
	value any            // as package yaml writes it
	at    *yamltree.Node // its origin
}

// set adds a field.
func (e *entry) set(name string, value any, at *yamltree.Node) {
	e.fields = append(e.fields, field{name, value, at})
}

// setText adds a field, unless its value is what it is without it.
func (e *entry) setText(name, value, implied string, at *yamltree.Node) {
	if value != "" && value != implied {
		e.set(name, value, at)
	}
}

// get returns the text of a field, "" if the entry has none.
func (e *entry) get(name string) (text string) {
	for _, f := range e.fields {
		if f.name == name {
			text, _ = f.value.(string)
		}
	}
	return text
}

// MarshalYAML writes the fields in their order, and objects on one line.
func (e *entry) MarshalYAML() (any, error) {
	made := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range slices.Concat([]field{{name: "name", value: e.name}}, e.fields) {
		var name, value yaml.Node
		if err := errors.Join(name.Encode(f.name), value.Encode(f.value)); err != nil {
			return nil, err
		}
		made.Content = append(made.Content, &name, &value)
		objects := []*yaml.Node{&value}
		if value.Kind == yaml.SequenceNode {
			objects = value.Content
		}
		for _, object := range objects {
			object.Style |= yaml.FlowStyle
		}
	}
	return made, nil
}

// freeName takes a name that no entry has.
func (o *output) freeName(candidates ...string) string {
	name := config.FreeName(o.names, candidates...)
	o.names[name] = true
	return name
}

var (
	placeOfMistake = regexp.MustCompile(`^(groups|processors)\[(\d+)\] \(.*?\)\.?(([a-zA-Z]*).*)$`)
	lineOfOutput   = regexp.MustCompile(`, on line \d+`)
)

// settle leaves out the fields and entries that config refuses, with remarks. It repeats, since one
// mistake may hide another.
func (o *output) settle() error {
	for {
		o.groups = slices.DeleteFunc(o.groups, func(g *entry) bool {
			return !slices.ContainsFunc(o.processors, func(e *entry) bool { return e.get("group") == g.name })
		})
		if len(o.processors) == 0 {
			return nil
		}
		_, err := config.Load("", o.render(), everySetting)
		mistakes, _ := errors.AsType[yamltree.Mistakes](err)
		if len(mistakes) == 0 {
			return err
		}
		lost := map[*entry]bool{} // the entries with a mistake: whether they are left out
		for _, m := range mistakes {
			place := placeOfMistake.FindStringSubmatch(m.Field)
			if place == nil {
				return err // a defect of this package
			}
			index, _ := strconv.Atoi(place[2])
			e := map[string][]*entry{"groups": o.groups, "processors": o.processors}[place[1]][index]
			if isLost, known := lost[e]; isLost || !known {
				lost[e] = !o.repair(e, place[4], place[3], lineOfOutput.ReplaceAllString(m.Text, ""))
			}
		}
		isLost := func(e *entry) bool { return lost[e] }
		o.groups, o.processors = slices.DeleteFunc(o.groups, isLost), slices.DeleteFunc(o.processors, isLost)
	}
}

// repair leaves out a field with a mistake; place is that of the mistake in the entry. It reports
// whether the entry is complete without the field.
func (o *output) repair(e *entry, name, place, why string) bool {
	i := slices.IndexFunc(e.fields, func(f field) bool { return f.name == name })
	if place != "" && (place != name || i < 0) {
		why = place + ": " + why
	}
	switch {
	case i < 0:
		o.remark(e.at, "%s; no entry is made", why)
		return false
	case slices.Contains([]string{"connection", "databaseId", "containerId"}, name):
		o.remark(e.fields[i].at, "%s; without it nothing is measured, and no entry is made", why)
		return false
	}
	o.remark(e.fields[i].at, "%s; it is left out", why)
	e.fields = slices.Delete(e.fields, i, i+1)
	return true
}

// render writes the processors file, in the style of docs/configure.md.
func (o *output) render() []byte {
	out := bytes.NewBufferString(schemaLine)
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(struct {
		Groups     []*entry `yaml:",omitempty"`
		Processors []*entry
	}{o.groups, o.processors}); err != nil {
		panic(fmt.Sprintf("a processors file cannot be written: %v", err)) // this package made the values
	}
	return out.Bytes()
}

// plain is a scalar of the type that its text has: the metadata of a trigger has texts only, also
// for numbers.
func plain(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(s)}
}
