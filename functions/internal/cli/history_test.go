package cli_test

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// recorded is a program, at noon, with a state file that has most of a day of polls in it, one every
// 10 min: an hour in the middle is missing, and the hour after it could not be measured.
func recorded(t *testing.T) feedscale {
	t.Helper()
	file, err := recording()
	testworld.Must(t, err)
	path := filepath.Join(t.TempDir(), "feedscale.db")
	testworld.Must(t, os.WriteFile(path, file, 0o600))
	return feedscale{settings: map[string]string{"FEEDSCALE_STATE": "bolt:" + path}, now: func() time.Time { return noon }}
}

// recording is the content of the file.
var recording = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "feedscale-recording")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "feedscale.db")
	store, err := boltstore.Open(path)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	var memory scaling.Memory
	var version state.Version
	for ago := 24*time.Hour - step; ago >= 0; ago -= step {
		if ago > 12*time.Hour && ago <= 13*time.Hour {
			continue
		}
		measured := measuredAt(noon.Add(-ago), ago)
		policy := config.DefaultPolicy()
		policy.Fallback.FailureThreshold = 1000
		o := scaling.Decide(scaling.Input{Now: measured.Time, Lag: measured, Policy: policy, Memory: memory})
		memory = o.Memory
		decided := state.State{Processor: "orders", AttemptedAt: measured.Time, Lag: measured, Decision: o.Decision, Memory: memory}
		if err := store.Commit(ctx, version, decided, nil); err != nil {
			return nil, err
		}
		record, err := storetest.Load(ctx, store, "orders")
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

const step = 10 * time.Minute

// measuredAt has eight partitions, of which one lags: by 750 in the last six hours, by 250 before.
func measuredAt(at time.Time, ago time.Duration) changefeed.ProcessorLag {
	if ago > 11*time.Hour && ago <= 12*time.Hour {
		return changefeed.ProcessorLag{Time: at, Error: "the leases cannot be read"}
	}
	lag := int64(250)
	if ago < 6*time.Hour {
		lag = 750
	}
	session := 100_000 - int64(ago.Seconds())
	measured := changefeed.ProcessorLag{Time: at, Partitions: []changefeed.Partition{{
		Lease: "0", Owner: "worker", LeaseTime: at, Status: changefeed.StatusLagging, Lag: &lag, Age: &lag,
		SessionLSN: &session, CheckpointLSN: new(session - lag), Position: at.String(),
	}}}
	for i := range 7 {
		measured.Partitions = append(measured.Partitions, changefeed.Partition{Lease: string(rune('1' + i)), Status: changefeed.StatusOK, Lag: new(int64)})
	}
	return measured
}

func TestHistoryDrawsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	for golden, width := range map[string]int{"history": 0, "history-terminal": 60} {
		t.Run(golden, func(t *testing.T) {
			t.Parallel()
			p := recorded(t)
			p.width = width
			r := p.run(t, "history", "orders")
			if r.Status != 0 || r.Stderr != "" {
				t.Errorf("status %d: %s", r.Status, r.Stderr)
			}
			testworld.Golden(t, *update, golden, r.Stdout)
		})
	}
}

func TestHistoryPrintsDataForOtherPrograms(t *testing.T) {
	t.Parallel()
	p := recorded(t)
	r := p.run(t, "history", "orders", "--since", "30m", "--output", "json")
	got := testworld.Decode[report.History](t, []byte(r.Stdout))
	if n := len(got.Samples); got.Processor != "orders" || n != 4 || *got.Samples[0].Lag != 750 || *got.Samples[n-1].Replicas != 8 {
		t.Errorf("%s with %d samples: %s", got.Processor, n, r.Stdout)
	}
	r = p.run(t, "history", "orders", "--since", "11h30m", "--output", "csv")
	lines, err := csv.NewReader(strings.NewReader(r.Stdout)).ReadAll()
	testworld.Must(t, err)
	first := lines[1]
	if lines[0][0] != "time" || lines[0][1] != "lag" || first[1] != "" || first[4] != "unknown" || first[12] != "3" {
		t.Errorf("unknown is not an empty field: %q\n%q", lines[0], first)
	}
}

func TestHistoryRefusesWhatItCannotShow(t *testing.T) {
	t.Parallel()
	p := recorded(t)
	r := p.run(t, "history", "--since", "-1h", "--output", "yaml")
	for _, want := range []string{"name one processor, as in feedscale history orders", `--since is "-1h"; allowed are durations from 0s`, `--output is "yaml"; allowed are chart, json and csv`} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("no %q in %s", want, r.Stderr)
		}
	}
	if r.Status != 2 || r.Stdout != "" {
		t.Errorf("%+v", r)
	}
	r = p.run(t, "history", "payments")
	if r.Status != 1 || !strings.Contains(r.Stderr, `nothing is recorded of processor "payments" from 2026-02-28T12:00:00Z to 2026-03-01T12:00:00Z`) {
		t.Errorf("%+v", r)
	}
}

func TestHistoryOfAMisspeltNameNamesTheNearest(t *testing.T) {
	t.Parallel()
	p := recorded(t)
	p.settings["FEEDSCALE_PROCESSORS"] = "{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders, leaseContainerId: leases}]}"
	p.settings["COSMOS"] = "AccountEndpoint=https://acct.documents.azure.com/;AccountKey=bm90IGEga2V5"
	for name, says := range map[string]string{"ordres": `nothing is recorded of processor "ordres"; did you mean orders?`, "payments": "names another feedscale"} {
		if r := p.run(t, "history", name); r.Status != 1 || !strings.Contains(r.Stderr, says) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestHistoryOfNoStateFileCreatesNone(t *testing.T) {
	t.Parallel()
	p := feedscale{settings: map[string]string{"FEEDSCALE_STATE": stateFile(t)}}
	if r := p.run(t, "history", "orders"); r.Status != 1 || !strings.Contains(r.Stderr, "nothing is recorded") {
		t.Errorf("%+v", r)
	}
	p.leavesNoFile(t)
}

func TestSimulateReplaysTheHistoryOfAProcessor(t *testing.T) {
	t.Parallel()
	p := recorded(t)
	r := p.run(t, "simulate", "--trace", "history:orders", "--since", "6h", "--output", "json")
	got := testworld.Decode[simulated](t, []byte(r.Stdout))
	if r.Status != 0 || got.Trace.Name != "orders" || got.Trace.Seconds != 6*3600 || len(got.Results) != 1 || got.Results[0].Policy != "default" {
		t.Errorf("status %d: %+v %s", r.Status, got.Trace, r.Stderr)
	}
	r = p.run(t, "simulate", "--trace", "history:payments")
	if r.Status != 1 || r.Stdout != "" || !strings.Contains(r.Stderr, `nothing is recorded of processor "payments" from 2026-02-22T12:00:00Z to 2026-03-01T12:00:00Z`) {
		t.Errorf("%+v", r)
	}
	r = p.run(t, "simulate", "--since", "2h")
	if r.Status != 2 || !strings.Contains(r.Stderr, "--since is for --trace history:PROCESSOR") {
		t.Errorf("--since beside a synthetic trace: %+v", r)
	}
	r = p.run(t, "simulate", "--trace", "history:")
	if r.Status != 2 || !strings.Contains(r.Stderr, "--trace: history: names no processor") {
		t.Errorf("no processor: %+v", r)
	}
}
