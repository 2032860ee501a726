package config_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
)

// judge compiles the schema as an editor would, with formats asserted.
func judge(t *testing.T) func(document string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("processors.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("processors.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(document string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
}

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
func processorFields(t *testing.T) []field {
	t.Helper()
	root := schemaRoot(t)
	processor := root["properties"].(object)["processors"].(object)["items"].(object)
	return fields(root, processor)[1:]
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
	text, err := json.Marshal(object{"groups": []any{object{"name": "shop-workers"}}, "processors": []any{processor}})
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

func TestSchemaAndParserKnowTheSameFields(t *testing.T) {
	t.Parallel()
	want := map[string][]string{} // names by the path of their object
	for _, f := range processorFields(t) {
		parent, name := strings.Join(f.path[:len(f.path)-1], "."), f.path[len(f.path)-1]
		if name != "[]" {
			want[parent] = append(want[parent], name)
		}
	}
	for parent, names := range want {
		t.Run("processor "+parent, func(t *testing.T) {
			t.Parallel()
			path := []string{"zzzzzzzzzzzzzzzzzzzzzzzzzzzz"}
			if parent != "" {
				path = append(strings.Split(parent, "."), path...)
			}
			_, err := parse(documentWith(path, 1))
			if err == nil {
				t.Fatal("the parser takes an unknown field")
			}
			_, list, _ := strings.Cut(err.Error(), "allowed are ")
			got := strings.Split(strings.ReplaceAll(list, " or ", ", "), ", ")
			slices.Sort(got)
			if !slices.Equal(got, names) {
				t.Errorf("parser: %q\nschema: %q", got, names)
			}
		})
	}
}

func TestSchemaAndParserHaveTheSameDefaults(t *testing.T) {
	t.Parallel()
	want, err := parse(documentWith([]string{"name"}, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range processorFields(t) {
		value, ok := f.schema["default"]
		if !ok {
			continue
		}
		found++
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			got, err := parse(documentWith(f.path, value))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the default %v of the schema is not the parser's:\ngot  %+v\nwant %+v", value, got, want)
			}
		})
	}
	if found < 20 {
		t.Errorf("the schema tells only %d defaults", found)
	}
}

// probes are values of every type, at and beyond every bound.
func probes() []any {
	list := []any{
		nil, true, false, 0, 1, -1, 2, 1.5, -0.5, 0.1, 1e3, 1800, 1801, 3600, 3601,
		31536000, 31536001, 2147483647, 2147483648, 1000000000000, 1000000000001, uint64(math.MaxUint64), 1e300,
		"", " ", "x", "X", "x y", "x-", "-x", "0", "1", "a/b", "a#b", "a?b", `a\b`, "a ", "-5m", "5m", "1h30m", "1.5h", ".5s", "1.s", "5", "5d", "10us",
		"now", "Now", "beginning", "2026-01-01T00:00:00Z", "2026-01-01", "yesterday",
		"max", "Max", "min", "Min", "Disabled", "Pods", "Percent", "pods", "static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower",
		"off", "recommend", 10000, 1000000, 1000100, "UTC", "Local", "COSMOS", "COSMOS:x", "A=b", "shop.documents.azure.com", "https://shop.documents.azure.com",
		[]any{}, []any{1}, []any{"x"}, []any{nil}, []any{object{}}, object{}, object{"x": "y"}, object{"x": nil}, object{"x": 1}, object{"": "x"}, object{"x": []any{}},
	}
	for _, length := range []int{63, 64, 128, 129, 253, 254, 255, 256, 1024, 1025} {
		list = append(list, strings.Repeat("x", length), object{"x": strings.Repeat("x", length)}, object{strings.Repeat("x", length): "x"})
	}
	for _, length := range []int{64, 65} {
		labels := object{}
		for i := range length {
			labels[fmt.Sprint("l", i)] = "x"
		}
		list = append(list, labels)
	}
	return list
}

// beyondSchema are the fields of which a schema cannot say everything: what it refuses is refused,
// but not the other way round.
func beyondSchema() []string {
	return []string{
		"schedule", "idleSchedule", "schedules.[].start", "schedules.[].end", // cron expressions
		"schedules.[].timezone",                        // the time zones there are
		"activationChangeFeedLagThreshold",             // below the threshold
		"group",                                        // the groups there are
		"fallback.behavior",                            // needs replicas, maybe from defaults
		"leaseExpiration", "stalledAfter", "retention", // how long a duration of several units is
		"throughput", "throughput.mode", // needs containers, maybe from defaults
		"throughput.containers.[].container", // one that is empty needs a database
		"throughput.containers.[].min",       // up to max
	}
}

func TestSchemaAndParserJudgeEveryValueAlike(t *testing.T) {
	t.Parallel()
	schema := judge(t)
	for _, f := range processorFields(t) {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			accepted, refused := 0, 0
			for _, value := range probes() {
				document := documentWith(f.path, value)
				schemaErr := schema(document)
				_, parserErr := parse(document)
				if parserErr != nil {
					refused++
				} else {
					accepted++
				}
				if schemaErr == nil && parserErr != nil && slices.Contains(beyondSchema(), f.String()) {
					continue
				}
				if (schemaErr == nil) != (parserErr == nil) {
					t.Errorf("%.200s\nschema: %v\nparser: %v", document, schemaErr, parserErr)
				}
			}
			isItem := f.path[len(f.path)-1] == "[]" // needs more than a probe has
			if refused == 0 || (accepted == 0 && !isItem && !slices.Contains(beyondSchema(), f.String())) {
				t.Errorf("the probes prove nothing: %d accepted, %d refused", accepted, refused)
			}
		})
	}
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
	for _, f := range processorFields(t) {
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

// TestSchemaAndParserJudgeGroupsAlike is of groups what the tests above are of processors.
func TestSchemaAndParserJudgeGroupsAlike(t *testing.T) {
	t.Parallel()
	root := schemaRoot(t)
	with := func(name string, value any) string {
		group := object{"name": "shop-workers"}
		group[name] = value
		text, err := json.Marshal(object{"groups": []any{group}, "processors": []any{
			object{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	schema := judge(t)
	names := map[string]bool{}
	for _, f := range fields(root, root["properties"].(object)["groups"].(object)["items"].(object))[1:] {
		names[f.String()] = true
		for _, key := range []string{"title", "description"} {
			if text, _ := f.schema[key].(string); text == "" {
				t.Errorf("%v has no %s", f, key)
			}
		}
		examples, _ := f.schema["examples"].([]any)
		for _, value := range append(probes(), examples...) {
			document := with(f.String(), value)
			schemaErr := schema(document)
			if _, parserErr := parse(document); (schemaErr == nil) != (parserErr == nil) {
				t.Errorf("%.200s\nschema: %v\nparser: %v", document, schemaErr, parserErr)
			}
		}
		for _, example := range examples {
			if err := schema(with(f.String(), example)); err != nil {
				t.Error(err)
			}
		}
	}
	_, err := parse(with("zzzzzzzzzzzzzzzz", 1))
	if err == nil {
		t.Fatal("the parser takes an unknown field")
	}
	_, list, _ := strings.Cut(err.Error(), "allowed are ")
	for _, name := range strings.Split(strings.ReplaceAll(list, " or ", ", "), ", ") {
		if !names[name] {
			t.Errorf("the schema does not know %s, or says it twice", name)
		}
		delete(names, name)
	}
	if len(names) > 0 {
		t.Errorf("the parser does not know %v", names)
	}
}

func TestSchemaAndParserJudgeDocumentsAlike(t *testing.T) {
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
			schemaErr := judge(t)(c.document)
			_, parserErr := parse(c.document)
			if (schemaErr == nil) != c.valid || (parserErr == nil) != c.valid {
				t.Errorf("want valid = %v\nschema: %v\nparser: %v", c.valid, schemaErr, parserErr)
			}
		})
	}
}

func TestSchemaJudgesTheDocumentsOfTheOtherTests(t *testing.T) {
	t.Parallel()
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
			if err := judge(t)(string(document)); (err == nil) != valid {
				t.Errorf("want valid = %v, got %v", valid, err)
			}
		})
	}
}
