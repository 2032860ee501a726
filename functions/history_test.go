package main_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// record leaves a state file with most of a day of polls in it, one every 30 s:
// an hour in the middle is missing, and the hour after it could not be measured. It
// returns the settings that name it.
func record(t *testing.T) map[string]string {
	t.Helper()
	file, err := recording()
	must(t, err)
	path := filepath.Join(t.TempDir(), "feedscale.db")
	must(t, os.WriteFile(path, file, 0o600))
	return map[string]string{"FEEDSCALE_STATE": "bolt:" + path}
}

// recording is the content of the file, which takes some seconds to write.
var recording = sync.OnceValues(func() ([]byte, error) {
	path := filepath.Join(scratch, "recording.db")
	store, err := boltstore.Open(path)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	var memory scaling.Memory
	var version state.Version
	const step = 30 * time.Second
	now := time.Now().UTC().Truncate(step)
	for at := now.Add(-23*time.Hour - 50*time.Minute); !at.After(now); at = at.Add(step) {
		ago := now.Sub(at)
		if ago > 12*time.Hour && ago <= 13*time.Hour {
			continue
		}
		lag := int64(250)
		if ago < 6*time.Hour {
			lag = 750
		}
		session, checkpoint := int64(100_000)-int64(ago.Seconds()), int64(100_000)-int64(ago.Seconds())-lag
		measured := changefeed.ProcessorLag{Time: at, Partitions: []changefeed.Partition{
			{Lease: "0", Owner: "worker", LeaseTime: at, Status: changefeed.StatusLagging, Lag: &lag, Age: &lag, SessionLSN: &session, CheckpointLSN: &checkpoint, Position: at.String()},
		}}
		for i := range 7 {
			measured.Partitions = append(measured.Partitions, changefeed.Partition{Lease: string(rune('1' + i)), Status: changefeed.StatusOK, Lag: new(int64)})
		}
		if ago > 11*time.Hour && ago <= 12*time.Hour {
			measured = changefeed.ProcessorLag{Time: at, Error: "the leases cannot be read"}
		}
		policy := config.DefaultPolicy()
		policy.Fallback.FailureThreshold = 1000
		o := scaling.Decide(scaling.Input{Now: at, Lag: measured, Policy: policy, Memory: memory})
		memory = o.Memory
		if err := store.Commit(ctx, version, state.State{Processor: "orders", AttemptedAt: at, Lag: o.Lag, Decision: o.Decision, Memory: memory}, nil); err != nil {
			return nil, err
		}
		record, err := store.Load(ctx, "orders")
		if err != nil {
			return nil, err
		}
		version = record.Version
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func TestHistoryDrawsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	settings := record(t)
	r := command(t, t.TempDir(), settings, "history", "orders")
	if r.status != 0 {
		t.Fatalf("%+v", r)
	}
	charts := strings.Split(r.stdout, "\n\n")
	if len(charts) != 5 {
		t.Fatalf("%d parts, want a head, three charts and the changes:\n%s", len(charts), r.stdout)
	}
	if want := "2741 samples, 120 unknown, 2 changes"; !strings.Contains(charts[0], want) {
		t.Errorf("%q has no %q", charts[0], want)
	}
	for i, title := range []string{"lag, transactions", "age of the oldest change, seconds", "replicas"} {
		if !strings.HasPrefix(charts[i+1], title+"\n") {
			t.Errorf("chart %d is not of %s", i+1, title)
		}
	}
	// Two hours of 24 are a gap in the lag, but only one in the replicas, which held.
	if axis := line(charts[1], "└"); strings.Count(axis, "?") < 6 || strings.Count(axis, "?") > 10 {
		t.Errorf("the axis of the lag: %s", axis)
	}
	if axis := line(charts[3], "└"); strings.Count(axis, "?") < 2 || strings.Count(axis, "?") > 6 {
		t.Errorf("the axis of the replicas: %s", axis)
	}
	matches(t, charts[4],
		`TIME +REPLICAS +LAG +AGE +STATUS +WHY`,
		`\S+Z +none → 3  250   4m  lagging  threshold: lag 250 at 100 per replica`,
		`\S+Z +3 → 8  750  12m  lagging  threshold: lag 750 at 100 per replica`,
	)
}

// line returns the first line that holds a text.
func line(text, holds string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, holds) {
			return line
		}
	}
	return ""
}

func TestHistoryPrintsDataForOtherPrograms(t *testing.T) {
	t.Parallel()
	settings := record(t)
	var report struct {
		Processor string         `json:"processor"`
		Samples   []state.Sample `json:"samples"`
	}
	r := command(t, t.TempDir(), settings, "history", "orders", "--since", "30m", "--output", "json")
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("%v in %+v", err, r)
	}
	if n := len(report.Samples); report.Processor != "orders" || n < 55 || n > 61 || *report.Samples[0].Lag != 750 || *report.Samples[n-1].Replicas != 8 {
		t.Errorf("%s with %d samples", report.Processor, n)
	}
	r = command(t, t.TempDir(), settings, "history", "orders", "--since", "11h30m", "--output", "csv")
	lines, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	first := lines[1]
	if lines[0][0] != "time" || lines[0][1] != "lag" || first[1] != "" || first[4] != "unknown" || first[12] != "3" {
		t.Errorf("unknown is not an empty field: %q\n%q", lines[0], first)
	}
}

func TestHistoryRefusesWhatItCannotShow(t *testing.T) {
	t.Parallel()
	settings := record(t)
	r := command(t, t.TempDir(), settings, "history", "--since", "-1h", "--output", "yaml")
	for _, want := range []string{"the name of a processor is missing", "--since is -1h0m0s", `--output is "yaml"; allowed are chart, json and csv`} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in %s", want, r.stderr)
		}
	}
	if r.status != 2 || r.stdout != "" {
		t.Errorf("%+v", r)
	}
	r = command(t, t.TempDir(), settings, "history", "payments")
	if r.status != 1 || !strings.Contains(r.stderr, `nothing is recorded of processor "payments" in the last 24h0m0s`) {
		t.Errorf("%+v", r)
	}
}

func TestHistoryAsksTheProcessThatHasTheStateFileOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder, settings := t.TempDir(), w.local()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	settings["FEEDSCALE_LISTEN"] = free.Addr().String()
	must(t, free.Close())
	run := prepare(t, folder, settings, "run")
	stdout, err := run.StdoutPipe()
	must(t, err)
	must(t, run.Start())
	newLines(stdout).await(t, `"orders-000000000001"`)

	var report struct{ Samples []state.Sample }
	r := command(t, folder, settings, "history", "orders", "--output", "json")
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || r.status != 0 || len(report.Samples) != 1 || *report.Samples[0].Replicas != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	if r := command(t, folder, settings, "history", "payments"); r.status != 2 || !strings.Contains(r.stderr, "404") {
		t.Errorf("of a processor without any: %+v", r)
	}
	settings["FEEDSCALE_LISTEN"] = "127.0.0.1:1"
	if r := command(t, folder, settings, "history", "orders"); r.status != 2 || !strings.Contains(r.stderr, "another process has the state file open") || !strings.Contains(r.stderr, "FEEDSCALE_LISTEN") {
		t.Errorf("where nobody answers: %+v", r)
	}
	must(t, run.Process.Signal(os.Interrupt))
	must(t, run.Wait())
}

func TestSimulateReplaysTheHistoryOfAProcessor(t *testing.T) {
	t.Parallel()
	settings := record(t)
	r := command(t, t.TempDir(), settings, "simulate", "--trace", "history:orders", "--since", "6h", "--output", "json")
	var report struct {
		Trace struct {
			Name    string
			Seconds int
		}
		Results []struct{ Policy string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || r.status != 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	if report.Trace.Name != "orders" || report.Trace.Seconds < 6*3600-240 || report.Trace.Seconds > 6*3600 || len(report.Results) != 1 || report.Results[0].Policy != "default" {
		t.Errorf("%+v", report)
	}
	r = command(t, t.TempDir(), settings, "simulate", "--trace", "history:payments")
	if r.status != 1 || r.stdout != "" || !strings.Contains(r.stderr, `nothing is recorded of processor "payments" in the last 168h`) {
		t.Errorf("%+v", r)
	}
	r = command(t, t.TempDir(), settings, "simulate", "--since", "2h")
	if r.status != 2 || !strings.Contains(r.stderr, "--since is for --trace history:PROCESSOR") {
		t.Errorf("--since beside a synthetic trace: %+v", r)
	}
}
