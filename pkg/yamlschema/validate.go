package yamlschema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Validate returns what is wrong with a document, and which values have a mistake.
func (f *Form) Validate(root *yamltree.Node) (mistakes yamltree.Mistakes, bad map[*yamltree.Node]bool) {
	v := validator{form: f, root: root, bad: map[*yamltree.Node]bool{}}
	if err, ok := errors.AsType[*jsonschema.ValidationError](f.compiled.Validate(root.Value(nil))); ok {
		v.add(err)
	}
	return v.mistakes, v.bad
}

type validator struct {
	form     *Form
	root     *yamltree.Node
	mistakes yamltree.Mistakes
	bad      map[*yamltree.Node]bool
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
	wrong, allowed := yamltree.Quote(n.Text())+" is not allowed", Allowed(schema)
	switch k := err.ErrorKind.(type) {
	case *kind.Pattern, *kind.MaxLength, *kind.MultipleOf:
	case *kind.Type, *kind.InvalidJsonValue, *kind.Enum:
		wrong = n.Is()
		if types := texts(schema["type"]); n.Text() != "" && slices.Contains(types, "string") && !slices.Contains(types, "integer") {
			allowed = "allowed is a text, in quotes where it looks like something else"
		}
	case *kind.Minimum, *kind.Maximum:
		wrong = yamltree.QuoteName(n.Text()) + " is out of range"
		if format, _ := schema["format"].(string); strings.HasSuffix(format, "duration") {
			allowed = fmt.Sprintf("allowed are durations from %vs to 8760h", schema["minimum"])
		}
	case *kind.Format:
		wrong, allowed, _ = strings.Cut(k.Err.Error(), "; ")
	case *kind.MinItems:
		wrong = "is empty"
	case *kind.MaxProperties:
		wrong, allowed = fmt.Sprintf("has %d fields", k.Got), fmt.Sprintf("allowed are up to %d", k.Want)
	case *kind.AnyOf:
		wrong = "is incomplete"
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
	default:
		for _, cause := range err.Causes {
			v.add(cause)
		}
		return
	}
	if !v.bad[n] {
		v.bad[n] = true
		v.mistakes.Add(n.Mistake(wrong + "; " + allowed))
	}
}

// missing adds the mistake of a field that is missing. Its object counts as bad.
func (v *validator) missing(n *yamltree.Node, name string, schema Schema, orDefault bool) {
	field := properties(schema)[name].(Schema)
	what, _ := field["description"].(string)
	what, _, _ = strings.Cut(strings.NewReplacer(":", ".", ";", ".", " (", ".").Replace(what), ".")
	text := "is missing (" + what + "); " + Allowed(field)
	if orDefault {
		text += ", here or in defaults"
	}
	v.mistakes.Add(n.Get(name).Mistake(text))
	v.bad[n] = true
}

// unknown adds the mistake of a field that the schema does not have.
func (v *validator) unknown(n *yamltree.Node, schema Schema) {
	v.bad[n] = true
	entries := v.form.root["required"].([]any)[0].(string)
	switch {
	case schema["patternProperties"] != nil:
		v.mistakes.Add(n.NameMistake("has a bad name; " + Allowed(schema)))
	case n.Path() == "defaults."+n.Name && properties(v.form.At(entries, "0"))[n.Name] != nil:
		v.mistakes.Add(n.Mistake("has no default; allowed is one of its own in each of the " + entries))
	default:
		v.mistakes.Add(n.NameMistake(v.form.unknown(n.Name, slices.Sorted(maps.Keys(properties(schema))))))
	}
}
