package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// glass is the screen of a terminal under test: the last picture that was drawn.
type glass struct {
	mu            sync.Mutex
	width, height int
	written       bytes.Buffer
}

func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.written.Write(p)
}

func (g *glass) size() (width, height int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.width, g.height, true
}

func (g *glass) resize(width, height int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.width, g.height = width, height
}

// shown returns the screen and all that has scrolled away.
func (g *glass) shown() []string {
	width, _, _ := g.size()
	return testworld.Glass(g.text(), width)
}

func (g *glass) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.written.String()
}

// seen waits for a text on the screen, and returns the picture.
func (g *glass) seen(t *testing.T, text string) (picture string) {
	t.Helper()
	testworld.Eventually(t, fmt.Sprintf("the screen has %q", text), func() bool {
		picture = strings.Join(g.shown(), "\n")
		return strings.Contains(picture, text)
	})
	return picture
}

// TestKeysSwitchFaultsAndTheScreenFollowsTheSizeOfTheTerminal presses keys as a user does.
func TestKeysSwitchFaultsAndTheScreenFollowsTheSizeOfTheTerminal(t *testing.T) {
	t.Parallel()
	g := &glass{width: 66, height: 14}
	keys, pressed := io.Pipe()
	defer pressed.Close()
	var restored int
	ended := make(chan int, 1)
	go func() {
		ended <- program.Main(t.Context(), program.Env{
			Args: []string{"demo"}, Environ: []string{"FEEDSCALE_LISTEN=127.0.0.1:0", "FEEDSCALE_API_KEY=k-1", "NO_COLOR=1"}, Stdout: g, Stderr: g, Now: time.Now, Terminal: g.size,
			Keys: func() (io.Reader, func(), bool) { return keys, func() { restored++ }, true },
		}, commands(), "")
	}()
	press := func(text string) {
		t.Helper()
		_, err := pressed.Write([]byte(text))
		testworld.Must(t, err)
	}
	g.seen(t, "audit")
	g.seen(t, "1 split 2 hang 3 throw 4 throttle 5 broker 6 gap 7 ahead q end")
	press("2")
	g.seen(t, "watch orders: stalled within 15 s.")
	g.seen(t, "2 hang*")
	press("\x1b[5~") // Page Up
	press("x8")
	press("2")
	if picture := g.seen(t, "watch orders: LAG drains"); strings.Contains(picture, "2 hang*") {
		t.Errorf("something is on:\n%s", picture)
	}
	for i, name := range []string{"split", "hang", "throw", "throttle", "broker"} {
		key := fmt.Sprint(i + 1)
		press(key)
		g.seen(t, key+" "+name+"*")
	}
	port := regexp.MustCompile(`http://127.0.0.1:(\d+)/`).FindStringSubmatch(strings.Join(g.shown(), "\n"))[1]
	if status, _, stderr := run(t, "demo", "env", port); status != 1 || !strings.Contains(stderr, "asks for a key (401 Unauthorized)") {
		t.Errorf("without the key: status %d, stderr %q", status, stderr)
	}
	g.resize(120, 40)
	testworld.Eventually(t, "the screen is that wide", func() bool { return strings.Contains(strings.Join(g.shown(), "\n"), "CATCH-UP") })
	press("q")
	if status := <-ended; status != 0 || restored != 1 {
		t.Errorf("status %d, and the terminal was given back %d times", status, restored)
	}
	if text := g.text(); !strings.HasSuffix(text, "\r\nfeedscale: stopped\r\n") {
		t.Errorf("it ends with %q", text[max(0, len(text)-80):])
	}
}

// TestControlsAreSwitchedByThePageAndByNoOtherOrigin sends requests as browsers and people do.
func TestControlsAreSwitchedByThePageAndByNoOtherOrigin(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	world, err := demo.Start(ctx, demo.Options{})
	testworld.Must(t, err)
	defer world.Close()
	controls := newControls(world)
	for _, c := range []struct {
		rule         string
		method, path string
		header       map[string]string
		status       int
		says         string
	}{
		{"they are listed", "GET", "/api/controls", nil, 200, `{"faults":[{"name":"split","label":"split a partition of orders","on":false},`},
		{"a page of another origin switches none", "POST", "/api/controls/hang?on=true", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "another origin"},
		{"nor does one whose browser says the origin alone", "POST", "/api/controls/hang?on=true", map[string]string{"Origin": "https://attacker.example"}, 403, "another origin"},
		{"nor one of another port", "POST", "/api/controls/hang?on=true", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://example.com:8080"}, 403, "another origin"},
		{"and none was switched", "GET", "/api/controls", nil, 200, `"watch":""`},
		{"the page switches one", "POST", "/api/controls/hang?on=true", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://example.com"}, 200, `"label":"free the handler of orders","on":true`},
		{"and so does a person", "POST", "/api/controls/hang?on=false", nil, 200, `"label":"hang the handler of orders","on":false`},
		{"which way has to be said", "POST", "/api/controls/hang", nil, 400, "allowed are on=true and on=false"},
		{"there is no other fault", "POST", "/api/controls/earthquake?on=true", nil, 404, "there is no such fault"},
		{"another process learns the settings", "GET", "/api/controls/environ", nil, 200, `"FEEDSCALE_EVENTS=servicebus:SERVICEBUS/scale-events"`},
	} { // in order, since they change the world
		request := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		for name, value := range c.header {
			request.Header.Set(name, value)
		}
		answer := httptest.NewRecorder()
		controls.ServeHTTP(answer, request)
		if answer.Code != c.status || !strings.Contains(answer.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.rule, answer.Code, answer.Body)
		}
		if kind := answer.Header().Get("Content-Type"); c.status >= 400 && kind != "application/problem+json" {
			t.Errorf("%s: a refusal is %s", c.rule, kind)
		}
	}
}

// TestOnlySettingsOfFeedscaleAreTakenFromWhatAnswers has a program at the address that is not a
// demo, or is malicious.
func TestOnlySettingsOfFeedscaleAreTakenFromWhatAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		answer  string
		status  int
		environ []string
		stdout  string // with ADDRESS in place of the address
		stderr  string
	}{
		{"settings are quoted", `["COSMOS=a'b$(c)","FEEDSCALE_STATE=bolt:x"]`, 0, nil,
			"export COSMOS='a'\\''b$(c)'\nexport FEEDSCALE_LISTEN='ADDRESS'\nexport FEEDSCALE_STATE='bolt:x'\nexport FEEDSCALE_URL='http://ADDRESS'\n", ""},
		{"what would come between is unset, and the key stays", `["COSMOS=a"]`, 0, []string{"FEEDSCALE_PROCESSORS=[]", "COSMOS__accountEndpoint=x", "FEEDSCALE_API_KEY=k", "HOME=/"},
			"unset FEEDSCALE_PROCESSORS\nunset COSMOS__accountEndpoint\nexport COSMOS='a'\nexport FEEDSCALE_LISTEN='ADDRESS'\nexport FEEDSCALE_URL='http://ADDRESS'\n", ""},
		{"nothing else of the shell is set", `["PATH=/wicked","LD_PRELOAD=x","COSMOS;rm=x"]`, 0, nil, "export FEEDSCALE_LISTEN='ADDRESS'\nexport FEEDSCALE_URL='http://ADDRESS'\n", ""},
		{"another program", "hello", 1, nil, "", "no demo answers at ADDRESS (http://ADDRESS answers something else"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.answer) }))
			defer server.Close()
			address := strings.TrimPrefix(server.URL, "http://")
			var stdout, stderr bytes.Buffer
			status := program.Main(t.Context(), program.Env{Args: []string{"demo", "env", address}, Environ: c.environ, Stdout: &stdout, Stderr: &stderr, Now: time.Now}, commands(), "")
			if want := strings.ReplaceAll(c.stdout, "ADDRESS", address); status != c.status || stdout.String() != want || !strings.Contains(stderr.String(), strings.ReplaceAll(c.stderr, "ADDRESS", address)) {
				t.Errorf("status %d, stderr %q, stdout\n%swant\n%s", status, stderr.String(), stdout.String(), want)
			}
		})
	}
}

// TestTheKeyOfADemoFollowsNoRedirect answers each request with a redirect to another host.
func TestTheKeyOfADemoFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host is asked for %s with %q", r.URL, r.Header)
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	env := program.Env{Args: []string{"demo", "env", strings.TrimPrefix(server.URL, "http://")}, Environ: []string{"FEEDSCALE_API_KEY=k"}, Stdout: &stdout, Stderr: &stderr, Now: time.Now}
	if status := program.Main(t.Context(), env, commands(), ""); status != 1 || !strings.Contains(stderr.String(), "answers 307 Temporary Redirect") {
		t.Errorf("status %d, stderr %q", status, stderr.String())
	}
}

func TestWhereNoDemoRunsItSaysHowToStartOne(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(closed.URL, "http://"), ":")
	if status, stdout, stderr := run(t, "demo", "env", port); status != 1 || stdout != "" || !strings.Contains(stderr, "no demo answers at 127.0.0.1:"+port) || !strings.Contains(stderr, "start one with feedscale demo") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if status, _, stderr := run(t, "demo", "now"); status != 2 || !strings.Contains(stderr, "allowed are no arguments, env, and env PORT") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}
