package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Trace is the number of transactions that arrive at the change feed, second by second.
type Trace struct {
	Name       string
	Start      time.Time // of the replay; the schedules of a policy depend on it
	Partitions int       // at least 1
	Backlog    int       // seconds of Arrivals that lie before Start: these are pending then
	Arrivals   []int64   // of each partition, 0 or more, for the first second, then for the next one, and so on
}

// Duration returns the length of the replay, in whole seconds.
func (t Trace) Duration() time.Duration { return time.Duration(t.rows()-t.Backlog) * time.Second }

// Transactions returns how many transactions arrive, those pending at the start included.
func (t Trace) Transactions() (sum int64) {
	for _, n := range t.Arrivals {
		sum += n
	}
	return sum
}

// rows returns the number of seconds, those before the start included.
func (t Trace) rows() int { return len(t.Arrivals) / max(1, t.Partitions) }

// maxArrivals is the greatest length of Arrivals, 400 MB: a week with 80 partitions, or 70 days
// with 8.
const maxArrivals = 50_000_000

// checkSize holds a trace to maxArrivals.
func checkSize(name string, seconds, partitions int) error {
	if partitions < 1 || seconds < 1 || seconds > maxArrivals/partitions {
		return fmt.Errorf("trace %s: %d seconds with %d partitions; allowed are from 1 second and 1 partition up to %d for seconds x partitions",
			name, seconds, partitions, maxArrivals)
	}
	return nil
}

// Shape is the mean of a synthetic trace. Its functions are called for each second in order.
type Shape struct {
	Rate   func(second int) float64   // transactions per second over all partitions
	Shares func(second int) []float64 // of each partition, with a sum of 1; nil = evenly
}

// syntheticStart is a Monday, so that schedules find weekdays and a weekend.
var syntheticStart = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// Draw makes a trace of a shape: whole transactions of a Poisson process. It has at least one second and one partition.
func (s Shape) Draw(name string, seconds, partitions int, r *rand.Rand) Trace {
	t := Trace{Name: name, Start: syntheticStart, Partitions: partitions, Arrivals: make([]int64, 0, seconds*partitions)}
	shares := slices.Repeat([]float64{1 / float64(partitions)}, partitions)
	for second := range seconds {
		rate := s.Rate(second)
		if s.Shares != nil {
			shares = s.Shares(second)
		}
		for _, share := range shares[:partitions] {
			t.Arrivals = append(t.Arrivals, poisson(r, rate*share))
		}
	}
	return t
}

// poisson draws a number of events of which mean are expected: exactly up to 30, by the normal
// distribution above.
func poisson(r *rand.Rand, mean float64) (n int64) {
	if mean <= 0 {
		return 0
	}
	if mean > 30 {
		return max(0, int64(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	limit := math.Exp(-mean)
	for product := r.Float64(); product > limit; product *= r.Float64() {
		n++
	}
	return n
}
