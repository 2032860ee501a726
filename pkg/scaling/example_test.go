package scaling_test

import (
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// Two polls, a minute apart, of a processor with two partitions: a decision depends on the
// measurement, and on the memory that the decision before left.
func ExampleDecide() {
	policy := scaling.Policy{
		Threshold: 100, // one replica per 100 pending transactions
		Cooldown:  5 * time.Minute,
		Health:    health.Policy{LeaseExpiration: time.Minute},
		Behavior:  scaling.Behavior{ScaleDown: scaling.Rules{StabilizationWindow: 5 * time.Minute}},
		Fallback:  scaling.Fallback{FailureThreshold: 3, Behavior: scaling.FallbackMax},
	}
	measured := func(at time.Time, lags ...int64) changefeed.ProcessorLag {
		l := changefeed.ProcessorLag{Time: at}
		for i := range lags {
			p := changefeed.Partition{Lease: fmt.Sprint(i), Owner: "worker-1", LeaseTime: at, Lag: &lags[i], Status: changefeed.StatusOK}
			if lags[i] > 0 {
				p.Status = changefeed.StatusLagging
			}
			l.Partitions = append(l.Partitions, p)
		}
		return l
	}
	show := func(d *scaling.Decision) {
		fmt.Printf("%d replicas (%s)\n", d.Replicas, d.Direction)
		for _, r := range d.Reasons {
			fmt.Printf("  %s: %s\n", r.Step, r.Why)
		}
	}

	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	first := scaling.Decide(scaling.Input{Now: now, Lag: measured(now, 130, 25), Policy: policy})
	show(first.Decision)

	now = now.Add(time.Minute)
	second := scaling.Decide(scaling.Input{Now: now, Lag: measured(now, 40, 0), Policy: policy, Memory: first.Memory})
	show(second.Decision)
	// Output: 2 replicas (out)
	//   threshold: lag 155 at 100 per replica
	// 2 replicas (none)
	//   threshold: lag 40 at 100 per replica
	//   behavior: 1 asked for, from 2: the scaleDown window of 5m0s holds 2
}
