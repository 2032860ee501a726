package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// runs are the settings of a `feedscale run` that scales a shop.
func runs(t *testing.T) (*testworld.Shop, map[string]string) {
	t.Helper()
	w := testworld.NewShop(t, testworld.Options{})
	settings := w.Settings()
	settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
	return w, settings
}

func TestASecondProcessOnAStateFileIsRefused(t *testing.T) {
	t.Parallel()
	_, settings := runs(t)
	folder := t.TempDir()
	first := start(t, folder, settings, "run")
	first.stdout.await(t, `-000000000001"`)
	r := command(t, folder, settings, "poll")
	if r.Status != 2 || !strings.Contains(r.Stderr, "another process") {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
	first.interrupt(t)
}

func TestRunPollsAtOnceAndThenByTheTimer(t *testing.T) {
	t.Parallel()
	w, settings := runs(t)
	settings["FEEDSCALE_TIMER_SCHEDULE"] = "* * * * * *"
	run := start(t, t.TempDir(), settings, "run")
	if first := run.stdout.await(t, `-000000000001"`); !strings.Contains(first, `"desiredReplicas":0`) {
		t.Errorf("the first event is %s", first)
	}
	w.Write(testworld.Orders, 5)
	if second := run.stdout.await(t, `-000000000002"`); !strings.Contains(second, `"desiredReplicas":1`) {
		t.Errorf("the second event is %s", second)
	}
	run.interrupt(t)
}

// TestRunTakesUpAChangedFile also checks that a file with a mistake changes nothing, that SIGHUP
// reloads at once, and that address and state stay.
func TestRunTakesUpAChangedFile(t *testing.T) {
	t.Parallel()
	w, settings := runs(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "processors.yaml")
	one := settings["FEEDSCALE_PROCESSORS"]
	delete(settings, "FEEDSCALE_PROCESSORS")
	// not available on this machine
	settings["OTHER__accountEndpoint"], settings["OTHER__credential"] = "https://other.documents.azure.com/", "workloadidentity"
	two := strings.Replace(one, "}]", "}, {name: payments, connection: COSMOS, databaseId: shop, containerId: orders, processorName: payments}]", 1)
	write := func(text string) {
		t.Helper()
		testworld.Must(t, os.WriteFile(file+".new", []byte(text), 0o600))
		testworld.Must(t, os.Rename(file+".new", file)) // as editors do
	}
	write(one)
	run, log := startLogged(t, folder, settings, "run")
	address := addressIn(t, log.await(t, `"listening"`))
	run.stdout.await(t, `"orders-`)

	write(strings.Replace(one, "containerId", "containerID", 1))
	if said := log.await(t, `"level":"ERROR"`); !strings.Contains(said, "what was read before goes on") || !strings.Contains(said, "did you mean containerId?") {
		t.Errorf("of a file with a mistake it says %s", said)
	}
	status := func() string {
		return command(t, t.TempDir(), map[string]string{"FEEDSCALE_URL": "http://" + address}, "status").Stdout
	}
	if before := status(); !strings.Contains(before, "orders") {
		t.Errorf("beside a file with a mistake, status is %s", before)
	}

	write(strings.Replace(one, "connection: COSMOS", "connection: OTHER", 1))
	if said := log.await(t, `"level":"ERROR"`); !strings.Contains(said, "what was read before goes on") || !strings.Contains(said, "processor orders") {
		t.Errorf("of a file that cannot be run it says %s", said)
	}
	if before := status(); !strings.Contains(before, "orders") {
		t.Errorf("beside a file that cannot be run, status is %s", before)
	}

	write(two)
	log.await(t, `"the processors file is read again"`)
	if again := addressIn(t, log.await(t, `"listening"`)); again != address {
		t.Errorf("it listens on %s, and before on %s", again, address)
	}
	run.stdout.await(t, `"payments-`)

	w.Write(testworld.Orders, 5)
	write(one)
	testworld.Must(t, run.Process.Signal(syscall.SIGHUP))
	log.await(t, `"the processors file is read again"`)
	if event := run.stdout.await(t, `"orders-`); !strings.Contains(event, `-000000000002"`) {
		t.Errorf("the state was lost: %s", event)
	}
	if after := status(); strings.Contains(after, "payments") {
		t.Errorf("a processor that was removed is there: %s", after)
	}
	run.interrupt(t)
}

// addressIn returns the address in the line listening of the log.
func addressIn(t *testing.T, line string) string {
	t.Helper()
	return testworld.Decode[struct{ Address string }](t, []byte(line)).Address
}

// TestWhatOnlyReadsAsksTheProcessThatHasTheStateFileOpen runs each read-only command beside a
// process that polls, with and without a key.
func TestWhatOnlyReadsAsksTheProcessThatHasTheStateFileOpen(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "k-1"} {
		t.Run("key "+key, func(t *testing.T) {
			t.Parallel()
			w, settings := runs(t)
			folder := t.TempDir()
			settings["FEEDSCALE_LISTEN"], settings["FEEDSCALE_API_KEY"] = testworld.FreeAddress(t), key
			w.Write(testworld.Orders, 5)
			run := start(t, folder, settings, "run")
			run.stdout.await(t, `-000000000001"`)

			for _, c := range []struct {
				args []string
				says string
			}{
				{[]string{"history", "orders", "--output", "json"}, `"replicas":1`},
				{[]string{"status"}, "orders     lagging  "},
				{[]string{"status", "orders", "--output", "json"}, `"desiredReplicas":1`},
				// as the process that was asked decided
				{[]string{"poll", "--dry-run", "--explain"}, "orders: 1 replica; the last decision was 1."},
			} {
				r := command(t, folder, settings, c.args...)
				if r.Status != 0 || !strings.Contains(r.Stdout, c.says) || strings.Count(r.Stderr, "another process has the state file open, and is asked at http://"+settings["FEEDSCALE_LISTEN"]) != 1 {
					t.Errorf("%v: %+v", c.args, r)
				}
			}
			// One or two polls are too few to replay, and the error says so; a slow machine may
			// have more.
			r := command(t, folder, settings, "simulate", "--trace", "history:orders")
			if read := r.Status == 0 || strings.Contains(r.Stderr, "--trace: recording orders: "); !read || !strings.Contains(r.Stderr, "is asked at") {
				t.Errorf("simulate: %+v", r)
			}
			for _, args := range [][]string{{"history", "payments"}, {"status", "payments"}} {
				if r := command(t, folder, settings, args...); r.Status != 2 || !strings.Contains(r.Stderr, `no processor or group is named "payments"`) {
					t.Errorf("of a processor that there is not: %+v", r)
				}
			}
			settings["FEEDSCALE_LISTEN"] = "127.0.0.1:1"
			for _, args := range [][]string{{"history", "orders"}, {"status"}} {
				if r := command(t, folder, settings, args...); r.Status != 2 || !strings.Contains(r.Stderr, "another process has the state file open") || !strings.Contains(r.Stderr, "set FEEDSCALE_LISTEN") {
					t.Errorf("where nobody answers: %+v", r)
				}
			}
			if r := command(t, folder, settings, "poll", "--dry-run"); r.Status != 1 || !strings.Contains(r.Stdout, "set FEEDSCALE_LISTEN") {
				t.Errorf("where nobody answers a poll: %+v", r)
			}
			run.interrupt(t)
		})
	}
}

func TestStatusIsWatchedUntilInterrupted(t *testing.T) {
	t.Parallel()
	w, settings := runs(t)
	folder := t.TempDir()
	settings["FEEDSCALE_LISTEN"], settings["FEEDSCALE_TIMER_SCHEDULE"] = testworld.FreeAddress(t), "* * * * * *"
	run := start(t, folder, settings, "run")
	run.stdout.await(t, `-000000000001"`)
	watch := start(t, folder, settings, "status", "--watch")
	watch.stdout.await(t, "orders     ok ")
	w.Write(testworld.Orders, 5)
	watch.stdout.await(t, "orders     lagging ")
	watch.interrupt(t)
	run.interrupt(t)
}

func TestAnInterruptEndsTheCheck(t *testing.T) {
	t.Parallel()
	w := testworld.NewShop(t, testworld.Options{})
	asked := make(chan struct{}, 100)
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.QueryDocuments {
			return nil
		}
		asked <- struct{}{}
		return &cosmosfake.Answer{Delay: time.Hour}
	})
	c := prepare(t, t.TempDir(), w.Settings(), "check", "--output", "json", "--timeout", "1h")
	var stdout bytes.Buffer
	c.Stdout = &stdout
	testworld.Must(t, c.Start())
	<-asked
	testworld.Must(t, c.Process.Signal(os.Interrupt))
	_ = c.Wait() // the status is checked elsewhere
	got := testworld.Decode[check.Report](t, stdout.Bytes())
	if got.OK || c.ProcessState.ExitCode() != 1 || !strings.Contains(stdout.String(), "the check was interrupted") || strings.Contains(stdout.String(), `"fail"`) {
		t.Errorf("status %d: %s", c.ProcessState.ExitCode(), stdout.String())
	}
}
