package simulate

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Comparison is scalers against the same traces, one for each seed.
type Comparison struct {
	Trace     func(seed uint64) Trace // called once for each seed; a recorded trace is the same for all
	Seed      uint64                  // the first one
	Seeds     int                     // at least 1: Seed and those after it
	Workers   Workers
	Objective Objective
	Scalers   []Scaler
	BestFixed bool               // whether the best fixed count follows the scalers
	Told      func(done float64) // after each hour of a replay, the share of all that is done, 0 to 1; may be nil
}

// Run replays every trace against every scaler, in parallel, and returns the mean of each scaler, in their
// order, then the best fixed count. The results do not depend on what runs at once. Its error is that of a
// context that ends before.
func (c Comparison) Run(ctx context.Context) ([]Result, error) {
	trace := c.Trace(c.Seed) // one at a time, since those of a hundred seeds would not fit into memory
	duration, scalers := trace.Duration(), slices.Clone(c.Scalers)
	if c.BestFixed {
		for _, count := range FixedCounts(trace.Partitions) {
			scalers = append(scalers, FixedCount(count))
		}
	}
	var hours atomic.Int64 // replayed
	hour := func() bool {
		if c.Told != nil {
			c.Told(float64(hours.Add(1)) / (duration.Hours() * float64(c.Seeds*len(scalers))))
		}
		return ctx.Err() == nil
	}
	results := make([][]Result, len(scalers)) // by scaler, by seed
	for n := range uint64(c.Seeds) {
		if n > 0 {
			trace = c.Trace(c.Seed + n)
		}
		var g errgroup.Group
		g.SetLimit(runtime.GOMAXPROCS(0))
		for i, s := range scalers {
			g.Go(func() error {
				results[i] = append(results[i], Run(trace, c.Workers, s, Conditions{Seed: c.Seed + n, Hour: hour}, c.Objective))
				return ctx.Err()
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	means := make([]Result, len(scalers))
	for i := range means {
		means[i] = Mean(results[i])
	}
	if own := len(c.Scalers); c.BestFixed {
		means = append(means[:own], BestFixed(means[own:], duration, c.Objective))
	}
	return means, nil
}

// FixedCounts are the numbers of replicas of which one is the best fixed count: those at which the
// fullest replica has fewer leases than with one replica less.
func FixedCounts(partitions int) (counts []int) {
	before := partitions + 1
	for n := 1; n <= partitions; n++ {
		if fullest := (partitions + n - 1) / n; fullest < before {
			counts, before = append(counts, n), fullest
		}
	}
	return counts
}

// nearlyAsGood is the share by which a fixed count may be worse than the best of all.
const nearlyAsGood = 0.001

// BestFixed chooses among results of fixed counts, in the order of FixedCounts, each a mean over the same
// replays of so long a trace. It takes the lowest count that is about as good as the best: over the
// objectives for at most a thousandth of the time longer, and with at most what the objective allows more
// pending at the end. The second rule matters if no count keeps the objectives.
func BestFixed(results []Result, replay time.Duration, o Objective) Result {
	over := func(r Result) time.Duration { return r.OverLag + r.OverAge }
	best := slices.MinFunc(results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(over(a), over(b)), cmp.Compare(a.Left, b.Left))
	})
	longest := over(best) + time.Duration(nearlyAsGood*float64(replay))
	left := best.Left + int64(nearlyAsGood*float64(best.Left)) + min(o.Lag, math.MaxInt64/2)
	return results[slices.IndexFunc(results, func(r Result) bool { return over(r) <= longest && r.Left <= left })]
}

// Mean is the mean of results of one scaler. Whole numbers are rounded; the series is that of the first.
func Mean(results []Result) Result {
	mean := results[0]
	for _, r := range results[1:] {
		mean.ReplicaHours += r.ReplicaHours
	}
	mean.ReplicaHours /= float64(len(results))
	mean.OverLag = meanOf(results, time.Second, func(r Result) time.Duration { return r.OverLag })
	mean.OverAge = meanOf(results, time.Second, func(r Result) time.Duration { return r.OverAge })
	mean.Over = meanOf(results, time.Second, func(r Result) time.Duration { return r.Over })
	mean.Out = meanOf(results, 1, func(r Result) int { return r.Out })
	mean.In = meanOf(results, 1, func(r Result) int { return r.In })
	mean.MaxLag = meanOf(results, 1, func(r Result) int64 { return r.MaxLag })
	mean.MaxAge = meanOf(results, time.Second, func(r Result) time.Duration { return r.MaxAge })
	mean.P99Age = meanOf(results, time.Second, func(r Result) time.Duration { return r.P99Age })
	mean.Arrived = meanOf(results, 1, func(r Result) int64 { return r.Arrived })
	mean.Left = meanOf(results, 1, func(r Result) int64 { return r.Left })
	mean.Processed = mean.Arrived - mean.Left
	return mean
}

// meanOf is a mean, rounded to units.
func meanOf[N ~int | ~int64](results []Result, unit N, value func(Result) N) N {
	sum := 0.0
	for _, r := range results {
		sum += float64(value(r) / unit)
	}
	return N(math.Round(sum/float64(len(results)))) * unit
}
