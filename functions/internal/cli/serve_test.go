package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// printed is what a command prints while others read it.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func TestServeEndsSoThatAFunctionsHostStartsItAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, command string
		end           func(parent *atomic.Int64, interrupt context.CancelFunc)
		status        int
		says          string
	}{
		{"after a signal", "serve", func(_ *atomic.Int64, interrupt context.CancelFunc) { interrupt() }, 200, `"msg":"the handler ends"`},
		{"without its parent", "serve", func(parent *atomic.Int64, _ context.CancelFunc) { parent.Store(1) }, 200, `"cause":"the Functions host that started it is gone"`},
		{"which nobody does with run", "run", func(_ *atomic.Int64, interrupt context.CancelFunc) { interrupt() }, 0, `"msg":"tick"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, _, p := watching(t)
			p.settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
			w.Write(testworld.Orders, 5)
			var parent atomic.Int64
			parent.Store(42)
			var output printed
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := make(chan int, 1)
			go func() {
				ended <- program.Main(ctx, program.Env{
					Args: []string{c.command}, Environ: testworld.Environ(p.settings), Stdout: &output, Stderr: &output, Now: p.now, Version: version,
					Parent: func() int { return int(parent.Load()) },
				}, commands(), "")
			}()
			var address string
			testworld.Eventually(t, "the address", func() bool {
				_, after, ok := strings.Cut(output.String(), `"msg":"listening","address":"`)
				address, _, _ = strings.Cut(after, `"`)
				return ok && (c.command == "serve" || strings.Contains(output.String(), `"msg":"tick"`))
			})
			response, err := http.Get("http://" + address + "/")
			testworld.Must(t, err)
			testworld.Must(t, response.Body.Close())
			c.end(&parent, interrupt)
			if status := <-ended; status != c.status || !strings.Contains(output.String(), c.says) {
				t.Errorf("status %d, want %d and %s:\n%s", status, c.status, c.says, &output)
			}
		})
	}
}

// TestServeThatCannotStartSaysSoInOneLineAndHasAnotherStatusThanZero holds what a Functions host needs, which
// never restarts a handler that ended with 0, and logs each line of standard error.
func TestServeThatCannotStartSaysSoInOneLineAndHasAnotherStatusThanZero(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		setting func(w *testworld.Shop, settings map[string]string)
		says    []string
	}{
		{"mistakes", func(_ *testworld.Shop, settings map[string]string) {
			settings["FEEDSCALE_CONCURRENCY"], settings["FEEDSCALE_LISTEN"] = "none", "nowhere"
		}, []string{"nothing was started", "FEEDSCALE_CONCURRENCY", "FEEDSCALE_LISTEN"}},
		{"an address that is taken", func(w *testworld.Shop, settings map[string]string) {
			settings["FEEDSCALE_LISTEN"] = strings.TrimSuffix(strings.TrimPrefix(w.Account.Endpoint(), "http://"), "/")
		}, []string{"the handler cannot start", "set FEEDSCALE_LISTEN to another address"}},
		{"a state that is no file", func(_ *testworld.Shop, settings map[string]string) { settings["FEEDSCALE_STATE"] = "bolt:/dev" }, []string{"the handler cannot start"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, _, p := watching(t)
			p.settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
			c.setting(w, p.settings)
			r := p.run(t, "serve")
			if r.Status != 2 || r.Stdout != "" || strings.Count(r.Stderr, "\n") != 1 || !json.Valid([]byte(r.Stderr)) {
				t.Errorf("%+v", r)
			}
			for _, want := range c.says {
				if !strings.Contains(r.Stderr, want) {
					t.Errorf("%q is missing in %s", want, r.Stderr)
				}
			}
		})
	}
}
