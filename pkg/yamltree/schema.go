package yamltree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Form is the schema of a kind of document, whose field "defaults" may have what an entry requires.
// As in editors, the keyword "errorMessage" of a value says what is allowed.
type Form struct {
	compiled *jsonschema.Schema // finds mistakes
	root     Schema             // says what is allowed; without $ref
	unknown  func(name string, known []string) string
}

// Schema is a schema as JSON.
type Schema = map[string]any

// NewForm compiles a text, or the schema with a name in its $defs, and panics on an error, since the
// schema is part of the program. formats are those of texts that JSON Schema does not have; unknown
// returns the sentence about an unknown field.
func NewForm(text, name string, formats map[string]func(string) error, unknown func(name string, known []string) string) *Form {
	const url = "urn:feedscale:document"
	whole, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	root, pointer := whole.(Schema), ""
	delete(root, "$id") // it would replace url
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for name, check := range formats {
		compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
			if text, ok := value.(string); ok {
				return check(text)
			}
			return nil
		}})
	}
	if err := compiler.AddResource(url, whole); err != nil {
		panic(err)
	}
	defs := root["$defs"].(Schema)
	if name != "" {
		root, pointer = defs[name].(Schema), "#/$defs/"+name
	}
	return &Form{unknown: unknown, compiled: compiler.MustCompile(url + pointer), root: inlined(root, defs).(Schema)}
}

// inlined replaces each $ref by its schema; keywords beside the $ref win.
func inlined(schema any, defs Schema) any {
	from, ok := schema.(Schema)
	if !ok {
		return schema
	}
	whole := Schema{}
	if ref, ok := from["$ref"].(string); ok {
		whole = inlined(defs[strings.TrimPrefix(ref, "#/$defs/")], defs).(Schema)
	}
	for name, value := range from {
		if name != "$defs" {
			whole[name] = inlined(value, defs)
		}
	}
	return whole
}

// At returns the schema for a place in a document; an empty one for an unknown field.
func (f *Form) At(place ...string) Schema {
	schema := f.root
	for _, step := range place {
		next, ok := properties(schema)[step].(Schema)
		if !ok {
			next, ok = schema["items"].(Schema)
		}
		if labels, _ := schema["patternProperties"].(Schema); !ok {
			for _, label := range labels { // there is one pattern
				next = label.(Schema)
			}
		}
		schema = next
	}
	return schema
}

func properties(schema Schema) Schema {
	known, _ := schema["properties"].(Schema)
	return known
}

// complete replaces what is absent or null by the defaults of the schema, at every depth.
func complete(schema Schema, value any) any {
	known := properties(schema)
	if value == nil {
		value = schema["default"]
	}
	if value == nil && known != nil {
		value = Schema{}
	}
	switch value := value.(type) {
	case Schema:
		whole := maps.Clone(value)
		for name, field := range known {
			whole[name] = complete(field.(Schema), value[name])
		}
		maps.DeleteFunc(whole, func(_ string, v any) bool { return v == nil })
		return whole
	case []any:
		items, _ := schema["items"].(Schema)
		whole := make([]any, len(value))
		for i := range value {
			whole[i] = complete(items, value[i])
		}
		return whole
	}
	return value
}

// Decode reads a value that the schema allows into a T, with the defaults of the schema. A field
// that T does not have is an error.
func Decode[T any](schema Schema, value any) (decoded T, err error) {
	text, err := json.Marshal(complete(schema, value))
	if err != nil {
		return decoded, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoded, decoder.Decode(&decoded)
}

// Allowed says which values a schema allows, "allowed are true and false".
func Allowed(schema Schema) string {
	types := texts(schema["type"])
	is := func(name string) bool { return slices.Contains(types, name) }
	switch {
	case schema["errorMessage"] != nil:
		return schema["errorMessage"].(string)
	case schema["enum"] != nil:
		return "allowed are " + OneOf(texts(schema["enum"]))
	case is("boolean"):
		return "allowed are true and false"
	case is("integer") && fmt.Sprint(schema["maximum"]) == "2147483647": // 32 bits
		return fmt.Sprintf("allowed are whole numbers, %v or more", schema["minimum"])
	case is("integer"):
		return fmt.Sprintf("allowed are whole numbers from %v to %v", schema["minimum"], schema["maximum"])
	case is("object") && schema["required"] != nil:
		return "allowed is an object with " + AllOf(texts(schema["required"]))
	case is("object"):
		return "allowed is an object (name: value)"
	case is("array"):
		return "allowed is a list"
	}
	return "allowed is a text"
}

// texts returns the texts of a JSON value: a text, or a list with some.
func texts(value any) (all []string) {
	if text, ok := value.(string); ok {
		return []string{text}
	}
	values, _ := value.([]any)
	for _, v := range values {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
