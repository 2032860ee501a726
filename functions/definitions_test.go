package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// definition is the part of a function.json that the tests read.
type definition struct {
	Bindings []struct{ Type, Direction, Name, Schedule, Route string }
}

// schemaOf compiles a schema of testdata. Each combines, for what this app uses, the rules of the
// public schema (host.json, version 2; function.json) and the host's own checks.
func schemaOf(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", name))
	testworld.Must(t, err)
	return schema
}

func instance(t *testing.T, text string) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	testworld.Must(t, err)
	return value
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	testworld.Must(t, err)
	return string(content)
}

// sampleSettings are those that a developer starts from.
func sampleSettings(t *testing.T) map[string]string {
	t.Helper()
	return testworld.Decode[struct{ Values map[string]string }](t, []byte(contentOf(t, "../local.settings.sample.json"))).Values
}

func TestHostJSONIsValid(t *testing.T) {
	t.Parallel()
	if err := schemaOf(t, "host.schema.json").Validate(instance(t, contentOf(t, "../host.json"))); err != nil {
		t.Error(err)
	}
}

func TestEveryFunctionJSONIsValid(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t, "function.schema.json")
	files, err := filepath.Glob("*/function.json")
	testworld.Must(t, err)
	if len(files) < 2 {
		t.Fatalf("found %q, want poll and processors at least", files)
	}
	sample := sampleSettings(t)
	// the name of a function; host would be the host's own
	folders := regexp.MustCompile(`^[a-z][a-z0-9_-]{0,127}$`)
	routes := make(map[string]string)
	for _, file := range files {
		function := filepath.Dir(file)
		if !folders.MatchString(function) || function == "host" {
			t.Errorf("%s: %q cannot name a function", file, function)
		}
		text := contentOf(t, file)
		if err := schema.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		d := testworld.Decode[definition](t, []byte(text))
		names, inputs, outputs := make(map[string]bool), "", ""
		for _, b := range d.Bindings {
			if names[b.Name] {
				t.Errorf("%s: two bindings are named %s", file, b.Name)
			}
			names[b.Name] = true
			if b.Direction == "in" {
				inputs += b.Type + " "
			} else {
				outputs += b.Type + " "
			}
			// The host itself resolves %NAME%, so NAME must be an app setting.
			if b.Schedule != "" && sample[strings.Trim(b.Schedule, "%")] == "" {
				t.Errorf("%s: the schedule %s is not in local.settings.sample.json", file, b.Schedule)
			}
			if b.Route != "" && routes[b.Route] != "" {
				t.Errorf("%s: the route %s is that of %s, too", file, b.Route, routes[b.Route])
			}
			routes[b.Route] = function
		}
		// The host forwards the original request only to functions of exactly this form.
		if inputs != "timerTrigger " && (inputs != "httpTrigger " || outputs != "http ") && (inputs != "serviceBusTrigger " || function != "shard") {
			t.Errorf("%s: inputs %sand outputs %s; want a timerTrigger, or one httpTrigger and one http, and a queue for shard alone", file, inputs, outputs)
		}
	}
}

func TestTheSchemasRefuse(t *testing.T) {
	t.Parallel()
	const trigger = `{"type": "httpTrigger", "direction": "in", "name": "req", "route": "r", "methods": ["get"], "authLevel": "function"}`
	handler := func(description string) string {
		return `{"version": "2.0", "functionTimeout": "00:05:00", "customHandler": {"description": ` + description + `}}`
	}
	tests := map[string]struct{ schema, text string }{
		"another version of host.json":              {"host.schema.json", `{"version": "1.0", "functionTimeout": "00:05:00", "customHandler": {"description": {"defaultExecutablePath": "handler"}}}`},
		"a host.json without a handler":             {"host.schema.json", `{"version": "2.0", "functionTimeout": "00:05:00"}`},
		"a handler without an executable":           {"host.schema.json", handler(`{"arguments": ["serve"]}`)},
		"an executable that core tools do not find": {"host.schema.json", handler(`{"defaultExecutablePath": "./handler"}`)},
		"an argument with a blank":                  {"host.schema.json", handler(`{"defaultExecutablePath": "handler", "arguments": ["serve now"]}`)},
		"an unknown field of host.json":             {"host.schema.json", handler(`{"defaultExecutablePath": "handler", "argument": []}`)},
		"a timeout that is no time":                 {"host.schema.json", `{"version": "2.0", "functionTimeout": "5m", "customHandler": {"description": {"defaultExecutablePath": "handler"}}}`},
		"a log level that does not exist": {"host.schema.json", `{"version": "2.0", "functionTimeout": "00:05:00", "logging": {"logLevel": {"default": "Info"}},
			"customHandler": {"description": {"defaultExecutablePath": "handler"}}}`},
		"a function without bindings":            {"function.schema.json", `{"bindings": []}`},
		"a function without a trigger":           {"function.schema.json", `{"bindings": [{"type": "http", "direction": "out", "name": "res"}]}`},
		"a function with two triggers":           {"function.schema.json", `{"bindings": [` + trigger + `, ` + strings.Replace(trigger, "req", "other", 1) + `]}`},
		"a binding that needs a bundle":          {"function.schema.json", `{"bindings": [` + trigger + `, {"type": "serviceBus", "direction": "out", "name": "out"}]}`},
		"a trigger that goes out":                {"function.schema.json", `{"bindings": [` + strings.Replace(trigger, `"in"`, `"out"`, 1) + `]}`},
		"a binding without a name":               {"function.schema.json", `{"bindings": [{"type": "timerTrigger", "direction": "in", "schedule": "%S%"}]}`},
		"a name that the host refuses":           {"function.schema.json", `{"bindings": [` + strings.Replace(trigger, `"req"`, `"my-req"`, 1) + `]}`},
		"a timer with a schedule of its own":     {"function.schema.json", `{"bindings": [{"type": "timerTrigger", "direction": "in", "name": "timer", "schedule": "0 * * * * *"}]}`},
		"a queue by its name":                    {"function.schema.json", `{"bindings": [{"type": "serviceBusTrigger", "direction": "in", "name": "shard", "queueName": "shards", "connection": "BUS"}]}`},
		"a queue without a connection":           {"function.schema.json", `{"bindings": [{"type": "serviceBusTrigger", "direction": "in", "name": "shard", "queueName": "%QUEUE%"}]}`},
		"a timer without a schedule":             {"function.schema.json", `{"bindings": [{"type": "timerTrigger", "direction": "in", "name": "timer"}]}`},
		"an HTTP function that does not say who": {"function.schema.json", `{"bindings": [` + strings.Replace(trigger, `, "authLevel": "function"`, "", 1) + `]}`},
		"an authorization level unknown":         {"function.schema.json", `{"bindings": [` + strings.Replace(trigger, `"function"`, `"key"`, 1) + `]}`},
		"a method in capitals":                   {"function.schema.json", `{"bindings": [` + strings.Replace(trigger, `"get"`, `"GET"`, 1) + `]}`},
		"a route that begins with a slash":       {"function.schema.json", `{"bindings": [` + strings.Replace(trigger, `"r"`, `"/r"`, 1) + `]}`},
		"an unknown field of a binding":          {"function.schema.json", `{"bindings": [` + strings.Replace(trigger, `"route"`, `"path": "p", "route"`, 1) + `]}`},
	}
	// The unchanged documents are accepted, so each case is refused for the reason in its name.
	testworld.Must(t, schemaOf(t, "host.schema.json").Validate(instance(t, handler(`{"defaultExecutablePath": "handler", "arguments": ["serve"]}`))))
	testworld.Must(t, schemaOf(t, "function.schema.json").Validate(instance(t, `{"bindings": [`+trigger+`]}`)))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if schemaOf(t, tt.schema).Validate(instance(t, tt.text)) == nil {
				t.Error("it was accepted")
			}
		})
	}
}
