package report_test

import (
	"math"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

func TestCatchUpIsUnknownWhileAProcessorKeepsUpOrNothingMoves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule         string
		status       changefeed.Status
		lag, age     int64 // transactions, seconds
		arrival      float64
		want         float64
		wantsUnknown bool
	}{
		{"a lag that drains", changefeed.StatusLagging, 120, 1, 40, 2, false},
		{"a lag that grows for a minute", changefeed.StatusLagging, 120, 60, 200, math.Inf(1), false},
		{"a young lag, of a processor that keeps up", changefeed.StatusLagging, 120, 59, 200, 0, true},
		{"no lag", changefeed.StatusOK, 0, 0, 40, 0, true},
		{"nothing moves", changefeed.StatusStalled, 120, 600, 200, 0, true},
		{"nobody works", changefeed.StatusUnclaimed, 120, 600, 200, 0, true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			lag := changefeed.ProcessorLag{Time: time.Unix(1000, 0), Partitions: []changefeed.Partition{{Lease: "0", Owner: "worker", Status: c.status, Lag: &c.lag, Age: &c.age}}}
			got := report.CatchUpSeconds(state.State{
				Lag: lag, Decision: &scaling.Decision{Replicas: 2}, Memory: scaling.Memory{Arrival: &c.arrival, DrainPerReplica: 50},
			})
			if (got == nil) != c.wantsUnknown || got != nil && *got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
