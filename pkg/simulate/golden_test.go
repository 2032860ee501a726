package simulate_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/simulate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestTheModelGivesTheSameResults holds what half a day of each built-in trace comes to. A change of
// the model changes the file; anything else leaves it.
func TestTheModelGivesTheSameResults(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("trace scaler: replica-hours, over lag, over age, out, in, max lag, max age, p99 age, arrived, left\n")
	for _, name := range simulate.Names() {
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
	testworld.Golden(t, *update, "traces", b.String())
}
