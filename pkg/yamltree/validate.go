package yamltree

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Validate returns what is wrong with a document, and marks each value that is Bad.
func (f *Form) Validate(root *Node) Mistakes {
	v := validator{form: f, root: root}
	if err, ok := errors.AsType[*jsonschema.ValidationError](f.compiled.Validate(root.Value())); ok {
		v.add(err)
	}
	return v.mistakes
}

type validator struct {
	form     *Form
	root     *Node
	mistakes Mistakes
}

// add adds the mistake of an error of the schema, or those of its causes; one for each value.
func (v *validator) add(err *jsonschema.ValidationError) {
	n, schema := v.root, v.form.At(err.InstanceLocation...)
	for _, step := range err.InstanceLocation {
		if i, err := strconv.Atoi(step); err == nil && n.IsList() {
			n = n.Items[i]
		} else {
			n = n.Get(step)
		}
	}
	wrong, allowed := n.Is(), Allowed(schema)
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			v.missing(n, name, schema, strings.Contains(err.SchemaURL, "/else/"))
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			v.unknown(n.Get(name), schema)
		}
		return
	case *kind.AnyOf:
		wrong = "is incomplete"
	case *kind.Minimum, *kind.Maximum:
		wrong = QuoteName(n.Text()) + " is out of range"
	case *kind.Format:
		wrong = k.Err.Error()
		if before, after, found := strings.Cut(wrong, "; "); found {
			wrong, allowed = before, after
		}
	case *kind.Type:
		if types := texts(schema["type"]); n.Text() != "" && slices.Contains(types, "string") && !slices.Contains(types, "integer") {
			allowed = "allowed is a text, in quotes where it looks like something else"
		}
	default:
		if len(err.Causes) > 0 {
			for _, cause := range err.Causes {
				v.add(cause)
			}
			return
		}
	}
	if !n.Bad {
		n.Bad = true
		v.mistakes.Add(n.Mistake(wrong + "; " + allowed))
	}
}

// missing adds the mistake of a field that is missing. Its object counts as bad.
func (v *validator) missing(n *Node, name string, schema Schema, orDefault bool) {
	field := properties(schema)[name].(Schema)
	what, _ := field["description"].(string)
	what, _, _ = strings.Cut(strings.NewReplacer(":", ".", ";", ".", " (", ".").Replace(what), ".")
	text := "is missing (" + what + "); " + Allowed(field)
	if orDefault {
		text += ", here or in defaults"
	}
	v.mistakes.Add(n.Get(name).Mistake(text))
	n.Bad = true
}

// unknown adds the mistake of a field that the schema does not have.
func (v *validator) unknown(n *Node, schema Schema) {
	n.Bad = true
	entries := v.form.root["required"].([]any)[0].(string)
	text := v.form.unknown(n.Name, slices.Sorted(maps.Keys(properties(schema))))
	switch {
	case schema["patternProperties"] != nil:
		text = "has a bad name; " + Allowed(schema)
	case n.Path() == "defaults."+n.Name && properties(v.form.At(entries, "0"))[n.Name] != nil:
		text = "has no default; allowed is one of its own in each of the " + entries
	}
	v.mistakes.Add(n.Mistake(text))
}
