package functionshost_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
)

func TestStartRefusesAnAppThatTheHostWouldNotRun(t *testing.T) {
	t.Parallel()
	bindings := func(list string) map[string]string {
		return map[string]string{"poll": `{"bindings":[` + list + `]}`}
	}
	const timer = `{"type":"timerTrigger","name":"timer","schedule":"0 * * * * *"}`
	handler := func(rest string) string {
		return `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"` + rest + `}`
	}
	cases := []struct {
		name string
		app  app
		want string
	}{
		{"host.json is broken", app{host: `{`}, "reading host.json"},
		{"host.json without version", app{host: `{"customHandler":{}}`}, `version is ""`},
		{"no custom handler", app{host: `{"version":"2.0"}`}, "customHandler.description is missing"},
		{"no executable", app{host: `{"version":"2.0","customHandler":{"description":{}}}`}, "defaultExecutablePath is empty"},
		{
			"an executable that is neither in the root nor a command",
			app{host: `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"no-such-handler"}}}`}, "neither an executable file",
		},
		{
			"an executable in the working directory only",
			app{
				host:      `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"function.json","workingDirectory":"poll"}}}`,
				functions: map[string]string{"poll": timerFunction},
			},
			"neither an executable file",
		},
		{"routes in host.json beside function.json", app{host: handler(`},"http":{"routes":[]}`) + `}`}, "customHandler.http"},
		{"a retry policy", app{host: handler(`}}`) + `,"retry":{}`}, "reading host.json"},
		{"a retry policy for all functions", app{host: handler(`}`) + `,"retry":{"strategy":"fixedDelay"}}`}, "retry policies"},
		{"functionTimeout is no time span", app{host: handler(`}`) + `,"functionTimeout":"5m"}`}, `functionTimeout: "5m" is no time span`},
		{"functionTimeout below a second", app{host: handler(`}`) + `,"functionTimeout":"00:00:00.5"}`}, "at least 00:00:01"},
		{"initializationTimeout is no time span", app{host: handler(`},"initializationTimeout":"99:00:00"`) + `}`}, "initializationTimeout"},
		{"a bundle without version", app{host: handler(`}`) + `,"extensionBundle":{"id":"x"}}`}, "extensionBundle needs"},

		{"a function's retry policy", app{functions: map[string]string{"poll": `{"bindings":[{}],"retry":{"strategy":"fixedDelay"}}`}}, "retry policies"},
		{"an input binding besides the trigger", app{host: bundleHost, functions: bindings(timer + `,{"type":"blob","name":"b","direction":"in"}`)}, "not imitated"},
		{"a route with a constraint", app{functions: bindings(`{"type":"httpTrigger","name":"req","route":"x/{id:int}"}`)}, "not imitated"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, err := functionshost.Start(t.Context(), c.app.stage(t))
			if err == nil {
				h.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestAFunctionInErrorDoesNotRunAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	bindings := func(list string) map[string]string {
		return map[string]string{"poll": `{"bindings":[` + list + `]}`}
	}
	const timer = `{"type":"timerTrigger","name":"timer","schedule":"0 * * * * *"}`
	cases := []struct {
		name string
		app  app
		want string
	}{
		{"a function name with a dot", app{functions: map[string]string{"po.ll": timerFunction}}, "not a valid function name"},
		{"a function named host", app{functions: map[string]string{"Host": timerFunction}}, "not a valid function name"},
		{"function.json is broken", app{functions: map[string]string{"poll": `{`}}, "reading function.json"},
		{"no binding", app{functions: bindings("")}, "at least one binding"},
		{"no trigger", app{functions: bindings(`{"type":"http","direction":"out","name":"res"}`)}, "no trigger binding"},
		{"two triggers", app{functions: bindings(timer + `,{"type":"httpTrigger","name":"req"}`)}, "multiple trigger bindings"},
		{"two bindings of one name", app{functions: bindings(timer + `,{"type":"http","direction":"out","name":"TIMER"}`)}, "binding names must be unique"},
		{"a binding name with a hyphen", app{functions: bindings(`{"type":"timerTrigger","name":"my-timer"}`)}, "binding name \"my-timer\" is invalid"},
		{"a binding without type", app{functions: bindings(`{"name":"timer"}`)}, "must specify a type"},
		{"an unknown direction", app{functions: bindings(`{"type":"timerTrigger","name":"timer","direction":"input"}`)}, "not a valid direction"},
		{"a trigger that points out", app{functions: bindings(`{"type":"timerTrigger","name":"timer","direction":"out"}`)}, "must have direction 'in'"},
		{"$return as input", app{functions: bindings(`{"type":"http","name":"$return"}`)}, "must specify a direction of 'out'"},
		{
			"an extension binding without the bundle",
			app{functions: bindings(timer + `,{"type":"serviceBus","direction":"out","name":"out","queueName":"scale","connection":"BUS"}`)},
			"the binding type(s) 'serviceBus' are not registered",
		},
		{
			"a binding type that is in no bundle",
			app{host: bundleHost, functions: bindings(timer + `,{"type":"serviceBuss","direction":"out","name":"out"}`)},
			"were not found in the configured extension bundle",
		},
		{"a Service Bus connection that is no setting", app{host: bundleHost, functions: map[string]string{"take": queueFunction}}, `connection "BUS"`},
		{
			"a Service Bus binding without an entity",
			app{host: bundleHost, functions: bindings(timer + `,{"type":"serviceBus","direction":"out","name":"out"}`)}, "neither a queue nor a topic",
		},
		{"a setting that is missing", app{functions: bindings(`{"type":"timerTrigger","name":"timer","schedule":"%NO_SUCH%"}`)}, "add the app setting NO_SUCH"},
		{"a timer without schedule", app{functions: bindings(`{"type":"timerTrigger","name":"timer"}`)}, "has no schedule"},
		{"a cron expression of five fields", app{settings: map[string]string{"SCHEDULE": "* * * * *"}}, "no NCRONTAB expression of six fields"},
		{"a cron expression that is none", app{settings: map[string]string{"SCHEDULE": "99 * * * * *"}}, "no NCRONTAB expression"},
		{"a timer without storage", app{settings: map[string]string{"AzureWebJobsStorage": ""}}, "AzureWebJobsStorage is missing"},
		{"an unknown authLevel", app{functions: bindings(`{"type":"httpTrigger","name":"req","authLevel":"none"}`)}, `authLevel "none"`},
		{"a route with a slash in front", app{functions: bindings(`{"type":"httpTrigger","name":"req","route":"/x"}`)}, "must not start with"},
		{"a route that goes on after all the rest", app{functions: bindings(`{"type":"httpTrigger","name":"req","route":"{*all}/x"}`)}, "nothing may follow"},
		{"a route parameter that is not closed", app{functions: bindings(`{"type":"httpTrigger","name":"req","route":"{id"}`)}, "no route parameter"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.app.functions = maps.Clone(c.app.functions)
			if c.app.functions == nil {
				c.app.functions = map[string]string{"poll": timerFunction}
			}
			c.app.functions["other"] = web(`,"authLevel":"anonymous"`)
			r := c.app.start(t)
			if got := r.Functions(); !slices.Equal(got, []string{"other"}) {
				t.Errorf("the functions are %v, want only the other one", got)
			}
			var inError []string
			for name, err := range r.FunctionErrors() {
				inError = append(inError, name)
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %q, want %q in it", err, c.want)
				}
			}
			if len(inError) != 1 || r.logged(functionshost.Error, "The '"+inError[0]+"' function is in error: ") != 1 {
				t.Errorf("in error are %v, and the log is %v", inError, r.Logs())
			}
			if got := r.do(t, "GET", "/api/other", "", nil); got.status != 200 {
				t.Errorf("the other function says %d", got.status)
			}
		})
	}
}

func TestAnAppWithoutAFunctionHasNoHandler(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name      string
		functions map[string]string
	}{
		{"no function at all", map[string]string{}},
		{"functions deeper than one folder", map[string]string{"functions/poll": timerFunction}},
		{"the only one in error", map[string]string{"poll": `{`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := app{functions: c.functions}.start(t)
			if got := r.Functions(); len(got) != 0 {
				t.Errorf("the functions are %v", got)
			}
			if err := r.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no function to run") {
				t.Errorf("Ready says %v", err)
			}
			if got := r.do(t, "GET", "/admin/host/ping", "", nil); got.status != 200 {
				t.Errorf("the host's ping says %d", got.status)
			}
		})
	}
}

func TestStartRefusesAFolderThatIsNoApp(t *testing.T) {
	t.Parallel()
	_, err := functionshost.Start(t.Context(), functionshost.Options{Root: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "host.json") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyImmediateSubfoldersWithFunctionJSONAreFunctions(t *testing.T) {
	t.Parallel()
	o := app{functions: map[string]string{"poll": timerFunction, "deep/er": timerFunction}}.stage(t)
	if err := os.Mkdir(filepath.Join(o.Root, "assets"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := functionshost.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if got, want := h.Functions(), []string{"poll"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheHandlerInheritsTheHostsWholeEnvironment(t *testing.T) {
	t.Parallel()
	r := app{
		settings: map[string]string{"COLOUR": "red", "AzureWebJobs.other.Disabled": "true"},
		options:  functionshost.Options{Environment: []string{"HOME=/home", "COLOUR=blue"}},
	}.start(t)
	if _, err := r.Timer(t.Context(), "poll", functionshost.Tick{}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, variable := range r.lastSeen(t).Environment {
		name, value, _ := strings.Cut(variable, "=")
		names = append(names, name)
		switch name {
		case "FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT":
			if !strings.HasSuffix(r.HandlerURL(), ":"+value) {
				t.Errorf("%s is %s, the handler listens on %s", name, value, r.HandlerURL())
			}
		case "COLOUR":
			if value != "red" {
				t.Errorf("COLOUR is %q, want that of the settings", value)
			}
		}
	}
	slices.Sort(names)
	want := []string{
		"AzureWebJobs.other.Disabled", "AzureWebJobsStorage", "COLOUR", "FUNCTIONS_APP_ROOT_PATH", "FUNCTIONS_CUSTOMHANDLER_PORT",
		"FUNCTIONS_CUSTOMHANDLER_WORKER_ID", "FUNCTIONS_HTTPWORKER_ID", "FUNCTIONS_HTTPWORKER_PORT", "HOME", "RECORD", "SCHEDULE",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestTheHostsEnvironmentIsThatOfTheTestUnlessSaidOtherwise(t *testing.T) {
	t.Parallel()
	a := app{}
	o := a.stage(t)
	o.Environment = nil
	h, err := functionshost.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	if _, err := h.Timer(t.Context(), "poll", functionshost.Tick{}); err != nil {
		t.Fatal(err)
	}
	got := running{h, o.Settings["RECORD"]}.lastSeen(t).Environment
	for _, variable := range os.Environ() {
		if !slices.Contains(got, variable) {
			t.Errorf("%s is not inherited", variable)
		}
	}
}

func TestArgumentsAndDirectories(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name          string
		description   string // after the executable
		wantArguments []string
		wantDirectory string // below the root
	}{
		{"nothing said", ``, []string{}, ""},
		{"settings are expanded", `,"arguments":["--colour=%COLOUR%"]`, []string{"--colour=red"}, ""},
		{"unknown settings are dropped", `,"arguments":["--a=%NO_SUCH%","b"]`, []string{"--a=", "b"}, ""},
		{"an argument with a space is torn", `,"arguments":["one two"]`, []string{"one", "two"}, ""},
		{"unless it has quotes of its own", `,"arguments":["\"one two\""]`, []string{"one two"}, ""},
		{"worker path and worker arguments follow", `,"arguments":["a"],"defaultWorkerPath":"%COLOUR%.js","workerArguments":["b"]`, []string{"a", "red.js", "b"}, ""},
		{"the executable is found in the root all the same", `,"workingDirectory":"poll"`, []string{}, "poll"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := app{
				host:     `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"` + c.description + `}}}`,
				settings: map[string]string{"COLOUR": "red"},
			}
			o := a.stage(t)
			h, err := functionshost.Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if _, err := h.Timer(t.Context(), "poll", functionshost.Tick{}); err != nil {
				t.Fatal(err)
			}
			got := running{h, o.Settings["RECORD"]}.lastSeen(t)
			if !slices.Equal(got.Arguments, c.wantArguments) {
				t.Errorf("arguments are %q, want %q", got.Arguments, c.wantArguments)
			}
			if want := filepath.Join(o.Root, c.wantDirectory); got.Directory != want {
				t.Errorf("working directory is %s, want %s", got.Directory, want)
			}
		})
	}
}

func TestTheExecutablePathIsExpanded(t *testing.T) {
	t.Parallel()
	app{
		host:     `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"%NAME%er","arguments":["%FUNCTIONS_CUSTOMHANDLER_PORT%"]}}}`,
		settings: map[string]string{"NAME": "handl"},
	}.start(t)
}
