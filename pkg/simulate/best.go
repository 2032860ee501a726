package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// FixedCounts are the numbers of replicas of which one is the best fixed count: those at which the
// fullest replica has fewer leases than with one replica less.
func FixedCounts(partitions int) []int {
	var counts []int
	for n := 1; n <= partitions; n++ {
		fullest := func(n int) int { return (partitions + n - 1) / n }
		if n == 1 || fullest(n) < fullest(n-1) {
			counts = append(counts, n)
		}
	}
	return counts
}

// nearlyAsGood is the share by which a fixed count may be worse than the best of all.
const nearlyAsGood = 0.001

// BestFixed chooses among results of fixed counts, in the order of FixedCounts, each a mean over the
// same replays of so long a trace: the lowest count that is over the objectives for no more than a
// thousandth of the time longer than the best of all, and that at the end leaves no more pending than
// that one, but for as much as the objective allows. Without the second rule one replica would do
// where no count keeps the objectives.
func BestFixed(results []Result, replay time.Duration, o Objective) Result {
	over := func(r Result) time.Duration { return r.OverLag + r.OverAge }
	best := slices.MinFunc(results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(over(a), over(b)), cmp.Compare(a.Left, b.Left))
	})
	longest := over(best) + time.Duration(nearlyAsGood*float64(replay))
	left := best.Left + int64(nearlyAsGood*float64(best.Left)) + min(o.Lag, math.MaxInt64/2)
	return results[slices.IndexFunc(results, func(r Result) bool { return over(r) <= longest && r.Left <= left })]
}

// Mean is the mean of results of one scaler: whole numbers are rounded, and the series is that of the
// first.
func Mean(results []Result) Result {
	mean, n := results[0], float64(len(results))
	if len(results) == 1 {
		return mean
	}
	of := func(value func(Result) float64) float64 {
		sum := 0.0
		for _, r := range results {
			sum += value(r)
		}
		return sum / n
	}
	whole := func(value func(Result) int64) int64 {
		return int64(math.Round(of(func(r Result) float64 { return float64(value(r)) })))
	}
	seconds := func(value func(Result) time.Duration) time.Duration {
		return time.Duration(whole(func(r Result) int64 { return int64(value(r) / time.Second) })) * time.Second
	}
	mean.ReplicaHours = of(func(r Result) float64 { return r.ReplicaHours })
	mean.OverLag = seconds(func(r Result) time.Duration { return r.OverLag })
	mean.OverAge = seconds(func(r Result) time.Duration { return r.OverAge })
	mean.Out = int(whole(func(r Result) int64 { return int64(r.Out) }))
	mean.In = int(whole(func(r Result) int64 { return int64(r.In) }))
	mean.MaxLag = whole(func(r Result) int64 { return r.MaxLag })
	mean.MaxAge = seconds(func(r Result) time.Duration { return r.MaxAge })
	mean.P99Age = seconds(func(r Result) time.Duration { return r.P99Age })
	mean.Arrived = whole(func(r Result) int64 { return r.Arrived })
	mean.Left = whole(func(r Result) int64 { return r.Left })
	mean.Processed = mean.Arrived - mean.Left
	mean.RUHours = of(func(r Result) float64 { return r.RUHours })
	mean.PeakRU = int(whole(func(r Result) int64 { return int64(r.PeakRU) }))
	mean.Throttled = seconds(func(r Result) time.Duration { return r.Throttled })
	return mean
}
