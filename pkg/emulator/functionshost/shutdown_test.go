package functionshost_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// stop stops a host whose clock the test has, and waits for its end.
func stop(t *testing.T, r running, clock *functionshost.Clock, drain time.Duration) {
	t.Helper()
	stopped := stopping(t, r)
	clock.Advance(drain)
	testworld.Came(t, "the end of the host", stopped)
}

// stopping begins to stop a host, and returns what is closed when that is gone.
func stopping(t *testing.T, r running) <-chan struct{} {
	t.Helper()
	stopped := make(chan struct{})
	go func() {
		r.Stop()
		close(stopped)
	}()
	testworld.Eventually(t, "a closed port", func() bool { return errors.Is(get(t, r.URL()), syscall.ECONNREFUSED) })
	return stopped
}

func TestAStoppedHostDrainsForElevenSecondsAndKillsAnIdleHandler(t *testing.T) {
	t.Parallel()
	clock := functionshost.NewClock(noon())
	r := app{options: functionshost.Options{Clock: clock}}.start(t)
	stopped := stopping(t, r)
	clock.Advance(11 * time.Second)
	if err := get(t, r.HandlerURL()); err != nil {
		t.Errorf("while the host drains the handler says %v", err)
	}
	select {
	case <-stopped:
		t.Error("the host was gone before")
	default:
	}
	clock.Advance(time.Second)
	testworld.Came(t, "the end of the host", stopped)
	if err := get(t, r.HandlerURL()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the handler says %v, want connection refused", err)
	}
	if r.Orphan() != nil {
		t.Error("the handler was left behind")
	}
	r.Stop() // again is no error
}

func TestARunThatEndsWhileTheHostDrainsSucceeds(t *testing.T) {
	t.Parallel()
	clock := functionshost.NewClock(noon())
	r := app{functions: map[string]string{"slow": hourlyFunction}, options: functionshost.Options{Clock: clock}}.start(t)
	ended := make(chan error, 1)
	go func() {
		_, err := r.Timer(t.Context(), "slow", functionshost.Tick{})
		ended <- err
	}()
	testworld.Eventually(t, "the invocation", func() bool { return len(r.seen(t)) == 1 })
	stopped := stopping(t, r)
	clock.Advance(10 * time.Second)
	release(t, r)
	if err := testworld.Came(t, "the end of the run", ended); err != nil {
		t.Error(err)
	}
	clock.Advance(2 * time.Second)
	testworld.Came(t, "the end of the host", stopped)
	if r.Orphan() != nil {
		t.Error("a handler that was done was left behind")
	}
}

func TestAHandlerInTheMiddleOfAnInvocationIsLeftBehind(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		end  func(t *testing.T, r running, clock *functionshost.Clock)
	}{
		{"by SIGTERM of the host", func(t *testing.T, r running, clock *functionshost.Clock) { stop(t, r, clock, 12*time.Second) }},
		{"by SIGKILL of the host", func(_ *testing.T, r running, _ *functionshost.Clock) { r.Crash() }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := functionshost.NewClock(noon())
			r := app{functions: map[string]string{"slow": hourlyFunction}, options: functionshost.Options{Clock: clock}}.start(t)
			ended := make(chan error, 1)
			go func() {
				_, err := r.Timer(t.Context(), "slow", functionshost.Tick{})
				ended <- err
			}()
			testworld.Eventually(t, "the invocation", func() bool { return len(r.seen(t)) == 1 })
			parent := r.parent(t)
			c.end(t, r, clock)
			if err := testworld.Came(t, "the end of the run", ended); err == nil {
				t.Error("the invocation of a host that is gone succeeded")
			}
			orphan := r.Orphan()
			if orphan == nil {
				t.Fatal("no handler was left behind")
			}
			if err := orphan.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the handler that was left behind is gone: %v", err)
			}
			testworld.Eventually(t, "another parent", func() bool { return r.parent(t) != parent })
			if now := r.parent(t); now == os.Getpid() {
				t.Error("its parent is the test")
			}
			r.Close()
			testworld.Eventually(t, "the end of the orphan", func() bool { return errors.Is(get(t, r.HandlerURL()), syscall.ECONNREFUSED) })
		})
	}
}

// parent is the process id that the handler has for its parent.
func (r running) parent(t *testing.T) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.HandlerURL()+"/test/parent", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(body))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
