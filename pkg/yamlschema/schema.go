// Package yamlschema validates a document (package yamltree) by a JSON Schema, says in sentences what
// is wrong with it, and decodes it with the defaults of the schema. As in editors, the keyword
// "errorMessage" says what is allowed. A document is an object with a list of entries, which the
// schema requires, and a field "defaults" for them; the package knows no other field by name.
//
// Start with New. The package is internal to the program: its API may change in any release.
package yamlschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Form is the schema of a kind of document: compiled, to find mistakes, and as JSON, to say what is
// allowed.
type Form struct {
	compiled *jsonschema.Schema
	root     Schema // without $ref
	unknown  func(name string, known []string) string
}

// Schema is a schema as JSON.
type Schema = map[string]any

// New compiles the schema at a JSON pointer of a text, and panics on an error, since the schema is
// part of the program. formats are those of texts that JSON Schema does not have; unknown returns
// the sentence about an unknown field.
func New(text, pointer string, formats map[string]func(string) error, unknown func(name string, known []string) string) *Form {
	const url = "urn:feedscale:document"
	whole, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	delete(whole.(Schema), "$id") // it would replace url
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
	root := whole.(Schema)
	defs := root["$defs"].(Schema)
	if name, ok := strings.CutPrefix(pointer, "/$defs/"); ok {
		root = defs[name].(Schema)
	}
	return &Form{unknown: unknown, compiled: compiler.MustCompile(url + "#" + pointer), root: inlined(root, defs).(Schema)}
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

// Overlay applies a value on top of a default: objects field by field, at every depth; any other
// value, and null, replaces the default as a whole.
func Overlay(base, over any) any {
	b, isObject := base.(Schema)
	o, ok := over.(Schema)
	if !ok || !isObject {
		return over
	}
	merged := maps.Clone(b)
	for name, value := range o {
		merged[name] = Overlay(b[name], value)
	}
	return merged
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
	types, required := texts(schema["type"]), texts(schema["required"])
	switch {
	case schema["errorMessage"] != nil:
		return schema["errorMessage"].(string)
	case schema["enum"] != nil:
		return "allowed are " + yamltree.OneOf(texts(schema["enum"]))
	case slices.Contains(types, "boolean"):
		return "allowed are true and false"
	case schema["multipleOf"] != nil:
		return fmt.Sprintf("allowed are multiples of %v from %v to %v", schema["multipleOf"], schema["minimum"], schema["maximum"])
	case slices.Contains(types, "integer") && fmt.Sprint(schema["maximum"]) == "2147483647": // 32 bits
		return fmt.Sprintf("allowed are whole numbers, %v or more", schema["minimum"])
	case slices.Contains(types, "integer"):
		return fmt.Sprintf("allowed are whole numbers from %v to %v", schema["minimum"], schema["maximum"])
	case slices.Contains(types, "object") && len(required) > 0:
		return "allowed is an object with " + yamltree.AllOf(required)
	case slices.Contains(types, "object"):
		return "allowed is an object (name: value)"
	case slices.Contains(types, "array"):
		return "allowed is a list"
	case schema["maxLength"] != nil:
		return fmt.Sprintf("allowed is a text of up to %v characters", schema["maxLength"])
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
