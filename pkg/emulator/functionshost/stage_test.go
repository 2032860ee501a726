package functionshost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// handlerPath is where TestMain compiled testdata/handler to.
var handlerPath string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "functionshost")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		handlerPath = filepath.Join(dir, "handler")
		build := exec.Command("go", "build", "-o", handlerPath, "./testdata/handler")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "compiling the handler: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

const (
	plainHost   = `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}}}`
	forwardHost = `{"version":"2.0","customHandler":{"enableForwardingHttpRequest":true,"description":{"defaultExecutablePath":"handler"}}}`
	// functionTimeout is five minutes.
	fiveMinutesHost = `{"version":"2.0","functionTimeout":"00:05:00","customHandler":{"description":{"defaultExecutablePath":"handler"}}}`
	bundleHost      = `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}},
		"extensionBundle":{"id":"Microsoft.Azure.Functions.ExtensionBundle","version":"[4.*, 5.0.0)"}}`

	timerFunction  = `{"bindings":[{"type":"timerTrigger","direction":"in","name":"timer","schedule":"%SCHEDULE%"}]}`
	hourlyFunction = `{"bindings":[{"type":"timerTrigger","direction":"in","name":"timer","schedule":"0 0 * * * *"}]}`
	queueFunction  = `{"bindings":[{"type":"serviceBusTrigger","direction":"in","name":"msg","queueName":"scale","connection":"BUS"}]}`
)

// app is a function app to be staged.
type app struct {
	host      string            // host.json; "" = plainHost
	functions map[string]string // function.json by folder; nil = one timer function poll
	settings  map[string]string // besides those that every app has
	options   functionshost.Options
}

// stage writes the app to a folder.
func (a app) stage(t *testing.T) functionshost.Options {
	t.Helper()
	root := t.TempDir()
	if a.host == "" {
		a.host = plainHost
	}
	if a.functions == nil {
		a.functions = map[string]string{"poll": timerFunction}
	}
	files := map[string]string{"host.json": a.host}
	for name, content := range a.functions {
		files[filepath.Join(name, "function.json")] = content
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(handlerPath, filepath.Join(root, "handler")); err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{
		"AzureWebJobsStorage": "UseDevelopmentStorage=true",
		"SCHEDULE":            "*/30 * * * * *",
		"RECORD":              filepath.Join(t.TempDir(), "record"),
	}
	maps.Copy(settings, a.settings)
	o := a.options
	o.Root, o.Settings = root, settings
	if o.Environment == nil {
		o.Environment = []string{}
	}
	return o
}

// running is a started app, with what its handler has seen.
type running struct {
	*functionshost.Host
	record string
}

// start stages and starts the app, and closes it with the test.
func (a app) start(t *testing.T) running {
	t.Helper()
	o := a.stage(t)
	h, err := functionshost.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return running{h, o.Settings["RECORD"]}
}

// seen is what the handler records of a request.
type seen struct {
	Method, URI, Host string
	Header            http.Header
	Body              string
	TransferEncoding  []string
	Environment       []string
	Arguments         []string
	Directory         string
}

func (r running) seen(t *testing.T) []seen {
	t.Helper()
	raw, err := os.ReadFile(r.record)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []seen
	for decoder := json.NewDecoder(bytes.NewReader(raw)); ; {
		var s seen
		if err := decoder.Decode(&s); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
}

// lastSeen is the last request that the handler got.
func (r running) lastSeen(t *testing.T) seen {
	t.Helper()
	all := r.seen(t)
	if len(all) == 0 {
		t.Fatal("the handler got no request")
	}
	return all[len(all)-1]
}

// body is the payload of an invocation.
type body struct {
	Data     map[string]json.RawMessage
	Metadata map[string]json.RawMessage
}

func (s seen) payload(t *testing.T) body {
	t.Helper()
	var b body
	if err := json.Unmarshal([]byte(s.Body), &b); err != nil {
		t.Fatalf("%v: %s", err, s.Body)
	}
	return b
}

// response is what a client of the front got.
type response struct {
	status int
	header http.Header
	body   string
}

func (r running) do(t *testing.T, method, path, body string, header http.Header) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.URL()+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(request.Header, header)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{answer.StatusCode, answer.Header, string(raw)}
}

// Ready is Host.Ready with a limit on the wait.
func (r running) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testworld.Deadline)
	defer cancel()
	return r.Host.Ready(ctx)
}

// awaitLog waits for a line of the host's log.
func (r running) awaitLog(t *testing.T, level functionshost.Level, text string) {
	t.Helper()
	testworld.Eventually(t, fmt.Sprintf("%q in the log", text), func() bool { return r.logged(level, text) > 0 })
}

// logged counts the lines of a level with a text in them.
func (r running) logged(level functionshost.Level, text string) int {
	n := 0
	for _, line := range r.Logs() {
		if line.Level == level && strings.Contains(line.Text, text) {
			n++
		}
	}
	return n
}
