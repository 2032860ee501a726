package main_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// drained is the time in which a handler must end; a host gives 11 to 12 s.
const drained = 10 * time.Second

// logged counts the log lines of a host that contain a text.
func logged(h *functionshost.Host, text string) int {
	n := 0
	for _, line := range h.Logs() {
		if strings.Contains(line.Text, text) {
			n++
		}
	}
	return n
}

// end sends a signal to the handler and waits until the host has started another.
func end(t *testing.T, h *functionshost.Host, signal os.Signal) (took time.Duration) {
	t.Helper()
	restarts := logged(h, "restarting the handler")
	began := time.Now()
	testworld.Must(t, h.Signal(signal))
	testworld.Eventually(t, "another handler", func() bool { return logged(h, "restarting the handler") > restarts })
	took = time.Since(began)
	testworld.Must(t, h.Ready(t.Context()))
	return took
}

func TestAHandlerThatIsSignalledIsStartedAgainAndPollsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host(w.settings())
	var polled time.Time
	// One more than the number of crashes that end a host.
	for i, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGTERM, os.Interrupt} {
		end(t, h, signal)
		tick(t, h)
		record, err := storetest.Load(t.Context(), w.store(), "orders")
		testworld.Must(t, err)
		if !record.State.PolledAt.After(polled) {
			t.Errorf("after %d signals it was last polled at %s, as before", i+1, record.State.PolledAt)
		}
		polled = record.State.PolledAt
	}
	if n := logged(h, "exited with code"); n > 0 {
		t.Errorf("%d of 4 signals counted as a crash: %v", n, h.Logs())
	}
}

func TestAConfigurationWithMistakesEndsTheHostWithAllOfThemInOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.settings()
	settings["FEEDSCALE_CONCURRENCY"], settings["FEEDSCALE_TICK_TIMEOUT"] = "none", "5"
	h, err := functionshost.Start(t.Context(), functionshost.Options{Root: made(t, stage), Settings: settings, Environment: []string{"HOME=" + t.TempDir()}})
	if err == nil {
		h.Close()
		t.Fatal("the handler started")
	}
	_, printed, ok := strings.Cut(err.Error(), "exited with code 2, 3 times in a row: the host stops: ")
	lines := strings.Split(printed, "; {")
	if !ok || len(lines) != 3 {
		t.Fatalf("three starts printed %d lines: %v", len(lines), err)
	}
	for _, line := range lines {
		if !strings.Contains(line, "nothing was started") || !strings.Contains(line, "FEEDSCALE_CONCURRENCY") || !strings.Contains(line, "FEEDSCALE_TICK_TIMEOUT") {
			t.Errorf("a start printed %s", line)
		}
	}
}

// silent returns the address of a listener that accepts connections and never answers.
func silent(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testworld.Must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			defer connection.Close()
		}
	}()
	t.Cleanup(func() {
		testworld.Must(t, listener.Close())
		<-ended
	})
	return listener.Addr().String()
}

// silentSettings are the settings of an app to which nothing answers.
func silentSettings(t *testing.T) map[string]string {
	t.Helper()
	settings := map[string]string{
		"AzureWebJobsStorage":      "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;TableEndpoint=http://" + silent(t) + "/a;",
		"FEEDSCALE_STATE":          "table:AzureWebJobsStorage/feedscale",
		"SERVICEBUS":               "Endpoint=sb://" + silent(t) + ";SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true",
		"FEEDSCALE_EVENTS":         "servicebus:SERVICEBUS/" + testworld.Queue,
		"FEEDSCALE_TIMER_SCHEDULE": "* * * * * *",
		// of a managed identity
		"IDENTITY_ENDPOINT": "http://" + silent(t) + "/token", "IDENTITY_HEADER": "secret",
		"COSMOS__accountEndpoint": "http://" + silent(t) + "/",
	}
	document := "{processors: [{name: identity, connection: COSMOS, databaseId: shop, containerId: orders, changeFeedLagThreshold: 10}"
	for i := range 3 {
		settings[fmt.Sprintf("ACCOUNT%d", i)] = "AccountEndpoint=http://" + silent(t) + "/;AccountKey=c2VjcmV0;"
		document += fmt.Sprintf(", {name: orders%d, connection: ACCOUNT%d, databaseId: shop, containerId: orders, changeFeedLagThreshold: 10}", i, i)
	}
	settings["FEEDSCALE_PROCESSORS"] = document + "]}"
	return settings
}

func TestAHandlerListensAtOnceAndEndsInTimeWhileNobodyAnswersIt(t *testing.T) {
	t.Parallel()
	settings := silentSettings(t)
	h := startHost(t, functionshost.Options{Settings: settings, Storage: &functionshost.Storage{}})
	ping := func(when string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testworld.Busy)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.HandlerURL()+"/", nil)
		testworld.Must(t, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", when, response.StatusCode)
		}
	}
	ping("at its start")
	testworld.Eventually(t, "a tick", func() bool { return logged(h, "Executing 'Functions.poll'") > 0 })
	ping("in the middle of a tick")

	// A caller whose answer waits for the store is cut off, like the tick.
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if status, _, body := ask(t, h, "/api/processors", h.MasterKey()); status == http.StatusOK && !strings.Contains(string(body), "the state cannot be read") {
			t.Error("processors are known without the store")
		}
	}()
	testworld.Eventually(t, "a request", func() bool { return logged(h, "Executing 'Functions.processors'") > 0 })
	if took := end(t, h, syscall.SIGTERM); took > drained+testworld.Busy {
		t.Errorf("it took %s to end", took)
	}
	<-asked
}

// isGone reports whether a process has ended, even if nobody has waited for it.
func isGone(process *os.Process) bool {
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(process.Pid), "stat"))
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(status), ") Z ")
}

func TestAHandlerWhoseHostIsGoneFinishesWhatIsDecidedAndLeaves(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a handler can be left behind on Linux only")
	}
	for rule, end := range map[string]func(*functionshost.Host){
		"after it drained": (*functionshost.Host).Stop,
		"killed":           (*functionshost.Host).Crash,
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			w, other := newWorld(t), testworld.NewShop(t, testworld.Options{})
			settings := w.settings()
			tables := newFront(t)
			settings["AzureWebJobsStorage"] = tables.connection
			settings["OTHER"] = other.Account.ConnectionString()
			settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "}]}",
				"}, {name: hanging, connection: OTHER, databaseId: shop, containerId: orders, accountHost: "+testworld.OrdersHost+", changeFeedLagThreshold: 10}]}", 1)
			h := startHost(t, functionshost.Options{Settings: settings, DrainTime: 200 * time.Millisecond})
			tick(t, h)
			before, err := storetest.Load(t.Context(), w.store(), "hanging")
			testworld.Must(t, err)

			w.Write(testworld.Orders, 25)
			asked := make(chan struct{}, 100)
			remove := other.Account.Control(func(*cosmosfake.Request) *cosmosfake.Answer {
				asked <- struct{}{}
				return &cosmosfake.Answer{Delay: time.Hour}
			})
			reached, release := make(chan struct{}, 100), make(chan struct{})
			tables.control(func(r *http.Request) {
				if r.Method == http.MethodGet {
					return
				}
				reached <- struct{}{}
				select {
				case <-release:
				case <-r.Context().Done():
				}
			})
			ticked := make(chan error, 1)
			go func() {
				_, err := h.Timer(context.WithoutCancel(t.Context()), "poll", functionshost.Tick{})
				ticked <- err
			}()
			<-asked
			<-reached // by the decision on orders
			end(h)
			if err := <-ticked; err == nil {
				t.Error("the invocation of a host that is gone succeeded")
			}
			orphan := h.Orphan()
			if orphan == nil {
				t.Fatal("no handler was left behind")
			}
			began := time.Now()
			testworld.Eventually(t, "a handler that has noticed", func() bool {
				connection, err := net.Dial("tcp", strings.TrimPrefix(h.HandlerURL(), "http://"))
				if err == nil {
					_ = connection.Close()
				}
				return err != nil
			})
			close(release)
			testworld.Eventually(t, "the end of a handler without a host", func() bool { return isGone(orphan) })
			if took := time.Since(began); took > drained+testworld.Busy {
				t.Errorf("it took %s to end", took)
			}

			orders, err := storetest.Load(t.Context(), w.store(), "orders")
			testworld.Must(t, err)
			if orders.State.Sequence != 2 || len(orders.Outbox) != 1 {
				t.Errorf("what was decided on orders is not committed: sequence %d, %d events in the outbox", orders.State.Sequence, len(orders.Outbox))
			}
			after, err := storetest.Load(t.Context(), w.store(), "hanging")
			testworld.Must(t, err)
			if after.Version != before.Version || !after.State.AttemptedAt.Equal(before.State.AttemptedAt) {
				t.Errorf("what was not measured is written: polled at %s, and before at %s", after.State.AttemptedAt, before.State.AttemptedAt)
			}

			remove()
			tick(t, startHost(t, functionshost.Options{Settings: settings}))
			if orders, err = storetest.Load(t.Context(), w.store(), "orders"); err != nil || len(orders.Outbox) != 0 {
				t.Errorf("the next host left %d events in the outbox, %v", len(orders.Outbox), err)
			}
		})
	}
}
