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
	err, _ := errors.AsType[*jsonschema.ValidationError](f.compiled.Validate(root.Value()))
	return f.mistakes(root, err)
}

// mistakes returns the mistake of an error of the schema, or those of its causes; one for each value.
func (f *Form) mistakes(root *Node, err *jsonschema.ValidationError) (all Mistakes) {
	if err == nil {
		return nil
	}
	n, schema := root, f.At(err.InstanceLocation...)
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
			text := "is missing; " + Allowed(properties(schema)[name].(Schema))
			if strings.Contains(err.SchemaURL, "/else/") {
				text += ", here or in defaults"
			}
			all.Add(n.Get(name).Mistake(text))
		}
		n.Bad = true
		return all
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			field := n.Get(name)
			field.Bad = true
			text := f.unknown(name, slices.Sorted(maps.Keys(properties(schema))))
			if schema["patternProperties"] != nil {
				text = "has a bad name; " + allowed
			}
			all.Add(field.Mistake(text))
		}
		return all
	case *kind.AnyOf:
		wrong = "is incomplete"
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
				all = append(all, f.mistakes(root, cause)...)
			}
			return all
		}
	}
	if !n.Bad {
		n.Bad = true
		all.Add(n.Mistake(wrong + "; " + allowed))
	}
	return all
}
