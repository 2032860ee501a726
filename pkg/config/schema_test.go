package config_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// object is a JSON object, be it of the schema or of a document.
type object = map[string]any

// schemaRoot is the schema as JSON.
func schemaRoot(t *testing.T) object {
	t.Helper()
	var root object
	if err := json.Unmarshal([]byte(config.Schema()), &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// field is a property of the schema, at its place in a processor.
type field struct {
	path   []string // names, and "[]" for the item of a list
	schema object
}

func (f field) String() string { return strings.Join(f.path, ".") }

// fields lists the properties of a schema at every depth, following $ref.
func fields(root, schema object, path ...string) []field {
	if ref, ok := schema["$ref"].(string); ok {
		target := root["$defs"].(object)[strings.TrimPrefix(ref, "#/$defs/")].(object)
		return fields(root, merged(target, schema), path...)
	}
	if all, ok := schema["allOf"].([]any); ok && len(path) > 0 {
		ref := all[0].(object)["$ref"].(string)
		target := root["$defs"].(object)[strings.TrimPrefix(ref, "#/$defs/")].(object)
		return fields(root, merged(target, schema), path...)
	}
	list := []field{{path: slices.Clone(path), schema: schema}}
	if properties, ok := schema["properties"].(object); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			list = append(list, fields(root, properties[name].(object), append(slices.Clone(path), name)...)...)
		}
	}
	if items, ok := schema["items"].(object); ok {
		list = append(list, fields(root, items, append(slices.Clone(path), "[]")...)...)
	}
	return list
}

// merged lays a schema over the one it refers to.
func merged(target, over object) object {
	result := maps.Clone(target)
	for name, value := range over {
		if name == "$ref" || name == "allOf" {
			continue
		}
		below, isObject := result[name].(object)
		if above, ok := value.(object); ok && isObject {
			value = merged(below, above)
		}
		result[name] = value
	}
	return result
}

// processorFields lists the properties of a processor at every depth.
func processorFields(t *testing.T) []field { return fieldsOf(t, "processors") }

func fieldsOf(t *testing.T, list string) []field {
	t.Helper()
	root := schemaRoot(t)
	return fields(root, root["properties"].(object)[list].(object)["items"].(object))[1:]
}

// documentWith is a document whose processor has a value at a path, beside what the objects on the
// way to it require.
func documentWith(path []string, value any) string {
	processor := object{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}
	var set func(at object, path []string)
	set = func(at object, path []string) {
		name, rest := path[0], path[1:]
		switch {
		case len(rest) == 0:
			at[name] = value
		case rest[0] == "[]":
			item := map[string]object{
				"policies":   {"type": "Pods", "value": 1, "periodSeconds": 60},
				"containers": {"container": "orders"},
				"schedules":  {"timezone": "UTC", "start": "0 6 * * *", "end": "0 7 * * *", "desiredReplicas": 1},
			}[name]
			if len(rest) == 1 {
				at[name] = []any{value}
				return
			}
			set(item, rest[1:])
			at[name] = []any{item}
		default:
			below := object{}
			if name == "throughput" && rest[0] == "containers" {
				below["mode"] = "off"
			}
			if name == "fallback" && rest[0] == "replicas" && value != nil {
				below["behavior"] = "static"
			}
			set(below, rest)
			at[name] = below
		}
	}
	set(processor, path)
	member := object{"name": "member", "group": "shop-workers", "connection": "COSMOS", "databaseId": "shop", "containerId": "of-the-member"}
	text, err := json.Marshal(object{"groups": []any{object{"name": "shop-workers"}}, "processors": []any{processor, member}})
	if err != nil {
		panic(err) // the values are JSON
	}
	return string(text)
}

// anyAccount resolves every connection.
func anyAccount(name string) (string, bool) {
	if !strings.HasSuffix(name, "__accountEndpoint") {
		return "", false
	}
	return "https://shop.documents.azure.com/", true
}

func parse(document string) (config.Document, error) {
	return config.Load("processors.json", []byte(document), anyAccount)
}

func TestSchemaExamplesAreValid(t *testing.T) {
	t.Parallel()
	found := 0
	for _, f := range processorFields(t) {
		examples, _ := f.schema["examples"].([]any)
		for _, example := range examples {
			found++
			if _, err := parse(documentWith(f.path, example)); err != nil {
				t.Errorf("%v: %v", f, err)
			}
		}
	}
	if found < 20 {
		t.Errorf("the schema gives only %d examples", found)
	}
}

func TestSchemaTellsAPersonWhatEveryFieldIs(t *testing.T) {
	t.Parallel()
	for _, f := range append(processorFields(t), fieldsOf(t, "groups")...) {
		if f.path[len(f.path)-1] == "[]" {
			continue
		}
		for _, key := range []string{"title", "description"} {
			if text, _ := f.schema[key].(string); text == "" {
				t.Errorf("%v has no %s", f, key)
			}
		}
	}
}

func TestDocumentsAsAWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, document string
		valid          bool
	}{
		{"required fields in the processor", documentWith([]string{"name"}, "orders"), true},
		{"required fields in defaults", `{"defaults": {"connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}, "processors": [{"name": "orders"}]}`, true},
		{"one required field in defaults", `{"defaults": {"connection": "COSMOS"}, "processors": [{"name": "orders", "databaseId": "shop", "containerId": "orders"}]}`, true},
		{"a required field nowhere", `{"defaults": {"connection": "COSMOS"}, "processors": [{"name": "orders", "databaseId": "shop"}]}`, false},
		{"a required field taken away", `{"defaults": {"connection": "COSMOS"}, "processors": [{"name": "orders", "connection": null, "databaseId": "shop", "containerId": "orders"}]}`, false},
		{"a name in defaults", `{"defaults": {"name": "orders"}, "processors": [{"connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, false},
		{"an unknown field in defaults", `{"defaults": {"treshold": 1}, "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, false},
		{"a bad value in defaults", `{"defaults": {"changeFeedLagThreshold": 0}, "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, false},
		{"empty defaults", `{"defaults": null, "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, true},
		{"empty groups", `{"groups": null, "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, true},
		{"no groups", `{"groups": [], "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, true},
		{"a group that is no object", `{"groups": ["shop"], "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, false},
		{"a group without a name", `{"groups": [{}], "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, false},
		{"a group in defaults", `{"groups": [{"name": "shop"}], "defaults": {"group": "shop"}, "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, true},
		{"an unknown field beside", `{"version": 1, "processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`, false},
		{"no processors", `{"processors": []}`, false},
		{"processors that are no list", `{"processors": {"name": "orders"}}`, false},
		{"a processor that is no object", `{"processors": ["orders"]}`, false},
		{"nothing at all", `null`, false},
		{"a list", `[]`, false},
		{"an empty object", `{}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := parse(c.document); (err == nil) != c.valid {
				t.Errorf("want valid = %v, got %v", c.valid, err)
			}
		})
	}
}

// An editor knows the schema and not the formats of feedscale.
func TestAnEditorJudgesByTheSchema(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(config.Schema()))
	testworld.Must(t, err)
	compiler := jsonschema.NewCompiler()
	testworld.Must(t, compiler.AddResource("processors.json", doc))
	schema, err := compiler.Compile("processors.json")
	testworld.Must(t, err)
	for file, valid := range map[string]bool{
		"every-field.yaml": true, "mistakes/fields.yaml": false, "mistakes/policy.yaml": false,
		"mistakes/empty.yaml": false, "mistakes/no-processors.yaml": false, "mistakes/list.yaml": false,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := yaml.Unmarshal(text, &value); err != nil {
				t.Fatal(err)
			}
			document, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if err := judged(t, schema, document); (err == nil) != valid {
				t.Errorf("want valid = %v, got %v", valid, err)
			}
		})
	}
}

func judged(t *testing.T, schema *jsonschema.Schema, document []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	testworld.Must(t, err)
	return schema.Validate(value)
}

// A default that is left out is the same as one that is written down.
func TestTheDefaultsOfTheSchemaHold(t *testing.T) {
	t.Parallel()
	want, err := parse(documentWith([]string{"name"}, "orders"))
	testworld.Must(t, err)
	found := 0
	for _, f := range processorFields(t) {
		if value, ok := f.schema["default"]; ok {
			found++
			if got, err := parse(documentWith(f.path, value)); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v: the default %v: got %+v, %v\nwant %+v", f, value, got, err, want)
			}
		}
	}
	if found < 20 {
		t.Errorf("the schema tells only %d defaults", found)
	}
}
