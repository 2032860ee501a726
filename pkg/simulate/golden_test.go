package simulate_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/simulate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestTheModelGivesTheSameResults compares with a part of the file that TestTheModelGivesTheSameResults_Long
// writes.
func TestTheModelGivesTheSameResults(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/traces.golden")
	testworld.Must(t, err)
	got := results(t, "step", "burst")
	for line := range strings.Lines(string(file)) {
		if name, _, _ := strings.Cut(line, " "); (name == "step" || name == "burst") && !strings.Contains(got, line) {
			t.Errorf("want %sin\n%s", line, got)
		}
	}
}

// TestTheModelGivesTheSameResults_Long holds what half a day of each built-in trace comes to. A change of
// the model changes the file; anything else leaves it.
func TestTheModelGivesTheSameResults_Long(t *testing.T) {
	t.Parallel()
	testworld.Golden(t, *update, "traces", results(t, simulate.Names()...))
}

func results(t *testing.T, names ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("trace scaler: replica-hours, over lag, over age, out, in, max lag, max age, p99 age, arrived, left\n")
	for _, name := range names {
		c := simulate.Comparison{
			Trace: func(seed uint64) simulate.Trace {
				return generate(t, name, simulate.Options{Seed: seed, Duration: 12 * time.Hour, Partitions: 8, Rate: 40})
			},
			Seed: 7, Seeds: 1, Workers: simulate.DefaultWorkers(), Objective: simulate.Objective{Lag: 1000, Age: time.Minute},
			Scalers:   []simulate.Scaler{simulate.Feedscale("default", config.DefaultPolicy(), simulate.DefaultEvery), simulate.KEDA()},
			BestFixed: true,
		}
		results, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			fmt.Fprintf(&b, "%s %s: %.4f %.0f %.0f %d %d %d %.0f %.0f %d %d\n", name, r.Scaler, r.ReplicaHours, r.OverLag.Seconds(),
				r.OverAge.Seconds(), r.Out, r.In, r.MaxLag, r.MaxAge.Seconds(), r.P99Age.Seconds(), r.Arrived, r.Left)
		}
	}
	return b.String()
}
