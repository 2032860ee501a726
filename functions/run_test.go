package main_test

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
)

// runs are settings of `feedscale run` that scale a shop.
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

func TestHistoryAsksTheProcessThatHasTheStateFileOpen(t *testing.T) {
	t.Parallel()
	_, settings := runs(t)
	folder := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	testworld.Must(t, err)
	settings["FEEDSCALE_LISTEN"] = free.Addr().String()
	testworld.Must(t, free.Close())
	run := start(t, folder, settings, "run")
	run.stdout.await(t, `-000000000001"`)

	r := command(t, folder, settings, "history", "orders", "--output", "json")
	if samples := testworld.Decode[report.History](t, []byte(r.Stdout)).Samples; r.Status != 0 || len(samples) != 1 || *samples[0].Replicas != 0 {
		t.Errorf("%+v", r)
	}
	if r := command(t, folder, settings, "history", "payments"); r.Status != 2 || !strings.Contains(r.Stderr, "404") {
		t.Errorf("of a processor without any: %+v", r)
	}
	settings["FEEDSCALE_LISTEN"] = "127.0.0.1:1"
	if r := command(t, folder, settings, "history", "orders"); r.Status != 2 || !strings.Contains(r.Stderr, "another process has the state file open") || !strings.Contains(r.Stderr, "FEEDSCALE_LISTEN") {
		t.Errorf("where nobody answers: %+v", r)
	}
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
	_ = c.Wait() // the status is looked at
	got := testworld.Decode[check.Report](t, stdout.Bytes())
	if got.OK || c.ProcessState.ExitCode() != 1 || !strings.Contains(stdout.String(), "the check was interrupted") || strings.Contains(stdout.String(), `"fail"`) {
		t.Errorf("status %d: %s", c.ProcessState.ExitCode(), stdout.String())
	}
}
