package functionshost_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// exitFunctions are a function that ends the process and one that does not.
func exitFunctions() map[string]string {
	return map[string]string{"exit": hourlyFunction, "poll": timerFunction}
}

func TestStartFailsWithTheHandler(t *testing.T) {
	t.Parallel()
	const impatient = `{"version":"2.0","customHandler":{"initializationTimeout":"00:00:00.2","description":{"defaultExecutablePath":"handler"}}}`
	cases := []struct {
		name string
		app  app
		want string
	}{
		{"a handler that exits with 0 is not started again", app{settings: map[string]string{"EXIT_AT_START": "0"}}, "exited with code 0, after which the host never restarts it"},
		{"the third failing start is the last", app{settings: map[string]string{"EXIT_AT_START": "1"}}, "exited with code 1, 3 times in a row: the host stops: cannot start; cannot start; cannot start"},
		{"one that never answers is given up", app{host: impatient, settings: map[string]string{"NEVER_LISTEN": "1"}}, "did not answer on port"},
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

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := functionshost.Start(ctx, app{settings: map[string]string{"NEVER_LISTEN": "1"}}.stage(t))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAnExitWithZeroLeavesTheAppWithoutHandler(t *testing.T) {
	t.Parallel()
	r := app{functions: exitFunctions(), settings: map[string]string{"EXIT_CODE": "0"}}.start(t)
	if _, err := r.Timer(t.Context(), "exit", functionshost.Tick{}); err == nil {
		t.Error("an invocation whose handler died succeeded")
	}
	if err := r.awaitEnd(t); err == nil || !strings.Contains(err.Error(), "never restarts") {
		t.Errorf("Ready says %v", err)
	}
	_, err := r.Timer(t.Context(), "poll", functionshost.Tick{})
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a later invocation says %v, want connection refused", err)
	}
	if got := r.do(t, "GET", "/admin/host/ping", "", nil); got.status != http.StatusOK {
		t.Errorf("the host's ping says %d", got.status)
	}
}

// awaitEnd waits until there will be no further handler, and says why.
func (r running) awaitEnd(t *testing.T) error {
	t.Helper()
	var err error
	testworld.Eventually(t, "the end of the handler", func() bool {
		err = r.Ready(t.Context())
		return err != nil
	})
	return err
}

func TestAnEndingHandlerIsRestarted(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name      string
		code      string
		restarts  int // that the handler survives
		wantError bool
	}{
		{"exit 200 asks for it, any number of times", "200", 5, false},
		{"exit 1 twice", "1", 2, false},
		{"exit 1 three times stops the host", "1", 3, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := app{functions: exitFunctions(), settings: map[string]string{"EXIT_CODE": c.code}}.start(t)
			for range c.restarts {
				if err := r.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				worker := r.worker(t)
				if _, err := r.Timer(t.Context(), "exit", functionshost.Tick{}); err == nil {
					t.Error("an invocation whose handler died succeeded")
				}
				testworld.Eventually(t, "another handler", func() bool {
					now := r.worker(t)
					return r.Ready(t.Context()) != nil || now != "" && now != worker
				})
			}
			err := r.Ready(t.Context())
			if (err != nil) != c.wantError {
				t.Errorf("got %v", err)
			}
			if err := get(t, r.URL()); (err != nil) != c.wantError {
				t.Errorf("the front says %v", err)
			}
		})
	}
}

// get tells whether anything answers at a URL.
func get(t *testing.T, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// worker is the id of the process that answers now, "" where none does.
func (r running) worker(t *testing.T) string {
	t.Helper()
	if _, err := r.Timer(t.Context(), "poll", functionshost.Tick{}); err != nil {
		return ""
	}
	for _, variable := range r.lastSeen(t).Environment {
		if id, ok := strings.CutPrefix(variable, "FUNCTIONS_CUSTOMHANDLER_WORKER_ID="); ok {
			return id
		}
	}
	return ""
}

func TestKillIsACrashThatTheHostMends(t *testing.T) {
	t.Parallel()
	r := app{}.start(t)
	before := r.worker(t)
	r.Kill()
	if err := r.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := r.worker(t); after == "" || after == before {
		t.Errorf("the process was %s and is %s", before, after)
	}
	if !slices.ContainsFunc(r.Logs(), func(l functionshost.LogLine) bool { return strings.Contains(l.Text, "exited with code 137") }) {
		t.Error("the log does not say exit code 137")
	}
}

func TestASignalReachesTheHandlerAndWhatComesOfItIsTheHostsPolicy(t *testing.T) {
	t.Parallel()
	r := app{}.start(t)
	before := r.worker(t)
	if err := r.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testworld.Eventually(t, "a crash", func() bool {
		return slices.ContainsFunc(r.Logs(), func(l functionshost.LogLine) bool { return strings.Contains(l.Text, "exited with code 143") })
	})
	if err := r.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := r.worker(t); after == "" || after == before {
		t.Errorf("the process was %s and is %s", before, after)
	}
}

func TestCrashesFarApartDoNotAddUp(t *testing.T) {
	t.Parallel()
	clock := functionshost.NewClock(time.Unix(0, 0))
	r := app{options: functionshost.Options{Clock: clock}}.start(t)
	for _, pause := range []time.Duration{0, 30, 31, 30} {
		clock.Advance(pause * time.Minute)
		r.Kill()
		if err := r.Ready(t.Context()); err != nil {
			t.Fatalf("after a pause of %d minutes: %v", pause, err)
		}
	}
	clock.Advance(30 * time.Minute)
	r.Kill()
	if err := r.Ready(t.Context()); err == nil {
		t.Error("the third crash within the interval left the host running")
	}
}

func TestAFunctionThatTimesOutTakesTheProcessWithItTwoSecondsLater(t *testing.T) {
	t.Parallel()
	clock := functionshost.NewClock(time.Unix(0, 0))
	r := app{
		host:      fiveMinutesHost,
		functions: map[string]string{"hang": hourlyFunction, "slow": hourlyFunction, "poll": timerFunction},
		options:   functionshost.Options{Clock: clock},
	}.start(t)
	for round := 1; round <= 3; round++ { // as many as there may be crashes
		before := r.worker(t)
		hanging, bystander := make(chan error, 1), make(chan error, 1)
		invocations := len(r.seen(t))
		go func() {
			_, err := r.Timer(t.Context(), "hang", functionshost.Tick{})
			hanging <- err
		}()
		testworld.Eventually(t, "the invocation", func() bool { return len(r.seen(t)) == invocations+1 })
		clock.Advance(time.Minute)
		go func() {
			_, err := r.Timer(t.Context(), "slow", functionshost.Tick{})
			bystander <- err
		}()
		testworld.Eventually(t, "the other invocation", func() bool { return len(r.seen(t)) == invocations+2 })
		clock.Advance(4 * time.Minute)
		testworld.Eventually(t, "the failure", func() bool {
			return r.logged(functionshost.Error, "'Functions.hang' (Failed") == round
		})
		if after := r.worker(t); after != before {
			t.Errorf("the process was %s and is %s, want the same until the delay is over", before, after)
		}
		clock.Advance(2 * time.Second)
		if err := testworld.Came(t, "the end of the run that hangs", hanging); err == nil || !strings.Contains(err.Error(), "timeout value of 5m0s was exceeded") {
			t.Errorf("got %v", err)
		}
		if err := testworld.Came(t, "the end of the other run", bystander); err == nil {
			t.Error("a concurrent invocation survived the kill")
		}
		if err := r.Ready(t.Context()); err != nil {
			t.Fatalf("a timeout counted as a crash: %v", err)
		}
		if after := r.worker(t); after == "" || after == before {
			t.Errorf("the process was %s and is %s", before, after)
		}
	}
}

func TestAnAnswerWithinTheKillDelaySavesTheProcess(t *testing.T) {
	t.Parallel()
	clock := functionshost.NewClock(time.Unix(0, 0))
	r := app{
		host:      fiveMinutesHost,
		functions: map[string]string{"slow": hourlyFunction, "poll": timerFunction},
		options:   functionshost.Options{Clock: clock, KillDelay: time.Minute},
	}.start(t)
	before := r.worker(t)
	ended := make(chan error, 1)
	go func() {
		_, err := r.Timer(t.Context(), "slow", functionshost.Tick{})
		ended <- err
	}()
	testworld.Eventually(t, "the invocation", func() bool { return len(r.seen(t)) == 2 })
	clock.Advance(5 * time.Minute)
	r.awaitLog(t, functionshost.Error, "timeout value of 5m0s was exceeded")
	release(t, r)
	if err := testworld.Came(t, "the end of the run", ended); err == nil || !strings.Contains(err.Error(), "was exceeded") {
		t.Errorf("got %v, want a failure all the same", err)
	}
	if after := r.worker(t); after != before {
		t.Errorf("the process was %s and is %s", before, after)
	}
}

func TestCloseEndsTheHandlerAndTheFront(t *testing.T) {
	t.Parallel()
	h, err := functionshost.Start(t.Context(), app{}.stage(t))
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	h.Close() // again is no error
	for name, url := range map[string]string{"front": h.URL(), "handler": h.HandlerURL()} {
		if err := get(t, url); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the %s says %v", name, err)
		}
	}
	if err := h.Ready(t.Context()); err == nil {
		t.Error("a closed host is ready")
	}
}

func TestWhatTheHandlerPrints(t *testing.T) {
	t.Parallel()
	const lenient = `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler","useStdErrorStreamForErrorsOnly":false}}}`
	cases := []struct {
		name string
		host string
		want []functionshost.LogLine
	}{
		{"stderr is an error, unless it warns", plainHost, []functionshost.LogLine{
			{Level: functionshost.Information, Category: functionshost.CategoryConsole, Text: "on stdout"},
			{Level: functionshost.Information, Category: functionshost.CategoryWorker, Text: " of the worker"},
			{Level: functionshost.Error, Category: functionshost.CategoryConsole, Text: "on stderr"},
			{Level: functionshost.Warning, Category: functionshost.CategoryConsole, Text: "a WARNing"},
			{Level: functionshost.Error, Category: functionshost.CategoryConsole, Text: "without an end"},
		}},
		{"stderr is information where host.json says so", lenient, []functionshost.LogLine{
			{Level: functionshost.Information, Category: functionshost.CategoryConsole, Text: "on stderr"},
			{Level: functionshost.Warning, Category: functionshost.CategoryConsole, Text: "a WARNing"},
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := app{host: c.host, functions: map[string]string{"print": hourlyFunction}}.start(t)
			if _, err := r.Timer(t.Context(), "print", functionshost.Tick{}); err != nil {
				t.Fatal(err)
			}
			r.Close() // ends the last line
			logs := r.Logs()
			for _, want := range c.want {
				if !slices.Contains(logs, want) {
					t.Errorf("%v is not in the log %v", want, logs)
				}
			}
		})
	}
}
