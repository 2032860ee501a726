package config

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// SchemaURL is where the schema is published, for the first line of a processors file anywhere.
const SchemaURL = "https://raw.githubusercontent.com/feedscale/feedscale/main/pkg/config/processors.schema.json"

//go:embed processors.schema.json
var schemaText string

// Schema returns the JSON Schema (2020-12) of the processors file: the one truth about its fields,
// their types, ranges and defaults. Load checks it, and then the rules across fields and against the
// settings, which a schema cannot express. The formats feedscale-* are those of formats.go.
func Schema() string { return schemaText }

// form is the schema of a kind of document: compiled, to find mistakes, and as JSON, to say what is
// allowed.
type form struct {
	compiled *jsonschema.Schema
	root     object // without $ref
}

type object = map[string]any

var processorsForm = sync.OnceValue(func() *form { return newForm("") })

var policiesForm = sync.OnceValue(func() *form { return newForm("/$defs/policiesFile") })

// newForm compiles the schema at a JSON pointer. The schema is part of the program, so an error is a
// defect of it.
func newForm(pointer string) *form {
	const url = "urn:feedscale:processors"
	whole, err := jsonschema.UnmarshalJSON(strings.NewReader(schemaText))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for name, check := range formats {
		compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: check})
	}
	if err := compiler.AddResource(url, whole); err != nil {
		panic(err)
	}
	root := whole.(object)
	defs := root["$defs"].(object)
	if name, ok := strings.CutPrefix(pointer, "/$defs/"); ok {
		root = defs[name].(object)
	}
	return &form{compiled: compiler.MustCompile(url + "#" + pointer), root: inlined(root, defs).(object)}
}

// inlined puts what a schema refers to in its place, below what the schema says itself.
func inlined(schema any, defs object) any {
	from, ok := schema.(object)
	if !ok {
		return schema
	}
	whole := object{}
	if ref, ok := from["$ref"].(string); ok {
		whole = inlined(defs[strings.TrimPrefix(ref, "#/$defs/")], defs).(object)
	}
	for name, value := range from {
		if name != "$defs" {
			whole[name] = inlined(value, defs)
		}
	}
	return whole
}

// at returns the schema for a place in a document; the empty one for a field that no schema has.
func (f *form) at(place ...string) object {
	schema := f.root
	for _, step := range place {
		next, ok := properties(schema)[step].(object)
		if !ok {
			next, ok = schema["items"].(object)
		}
		if labels, _ := schema["patternProperties"].(object); !ok {
			for _, label := range labels { // there is one pattern
				next = label.(object)
			}
		}
		schema = next
	}
	return schema
}

func properties(schema object) object {
	known, _ := schema["properties"].(object)
	return known
}

// complete puts the defaults of the schema in place of what is absent or null, at every depth.
func complete(schema object, value any) any {
	known := properties(schema)
	if value == nil {
		value = schema["default"]
		if value == nil && known != nil {
			value = object{}
		}
	}
	switch value := value.(type) {
	case object:
		whole := object{}
		for name := range known {
			whole[name] = complete(known[name].(object), value[name])
		}
		for name, v := range value {
			if known[name] == nil && v != nil {
				whole[name] = v
			}
		}
		return whole
	case []any:
		items, _ := schema["items"].(object)
		whole := make([]any, len(value))
		for i := range value {
			whole[i] = complete(items, value[i])
		}
		return whole
	}
	return value
}

// overlay applies a processor's value on top of its default: objects field by field, at every depth;
// any other value replaces the default whole. A null counts as given, and restores what holds without
// defaults.
func overlay(base, over any) any {
	b, inherits := base.(object)
	o, ok := over.(object)
	if !ok || !inherits {
		return over
	}
	merged := maps.Clone(b)
	for name, value := range o {
		merged[name] = overlay(b[name], value)
	}
	return merged
}

// decode reads a value that the schema allows into a T, with the defaults of the schema. A field of the
// schema that T does not have is an error.
func decode[T any](schema object, value any) (decoded T, err error) {
	text, err := json.Marshal(complete(schema, value))
	if err != nil {
		return decoded, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoded, decoder.Decode(&decoded)
}

// allowed says which values a schema allows, "allowed are true and false".
func allowed(schema object) string {
	if text, ok := schema["errorMessage"].(string); ok {
		return text
	}
	if values, ok := schema["enum"].([]any); ok {
		return "allowed are " + oneOf(texts(values))
	}
	types := texts(schema["type"])
	switch required := texts(schema["required"]); {
	case slices.Contains(types, "boolean"):
		return "allowed are true and false"
	case schema["multipleOf"] != nil:
		return fmt.Sprintf("allowed are multiples of %v from %v to %v", schema["multipleOf"], schema["minimum"], schema["maximum"])
	case slices.Contains(types, "integer") && fmt.Sprint(schema["maximum"]) == maxReplicas:
		return fmt.Sprintf("allowed are whole numbers, %v or more", schema["minimum"])
	case slices.Contains(types, "integer"):
		return fmt.Sprintf("allowed are whole numbers from %v to %v", schema["minimum"], schema["maximum"])
	case slices.Contains(types, "object") && len(required) > 0:
		return "allowed is an object with " + strings.Replace(oneOf(required), " or ", " and ", 1)
	case slices.Contains(types, "object"):
		return "allowed is an object (name: value)"
	case slices.Contains(types, "array"):
		return "allowed is a list"
	}
	if schema["maxLength"] != nil {
		return fmt.Sprintf("allowed is a text of up to %v characters", schema["maxLength"])
	}
	return "allowed is a text"
}

// maxReplicas is the greatest replica count, which Kubernetes keeps in 32 bits: a bound of the type,
// which mistakes do not name.
const maxReplicas = "2147483647"

// texts returns the text of a JSON value, or those of a list; null is left out.
func texts(value any) []string {
	if text, ok := value.(string); ok {
		return []string{text}
	}
	var all []string
	values, _ := value.([]any)
	for _, v := range values {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
