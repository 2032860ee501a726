package simulate

import (
	"fmt"
	"time"
)

// Trace is the number of transactions that arrive at the change feed of a processor, second by
// second.
type Trace struct {
	Name       string
	Start      time.Time // time at which the replay begins, on which the schedules of a policy depend
	Partitions int       // at least 1
	// Backlog is the number of seconds at the beginning of Arrivals that lie before Start. What
	// arrived in them is pending at Start.
	Backlog int
	// Arrivals are numbers of transactions, 0 or more: one per partition for the first second, then
	// those of the next one, and so on.
	Arrivals []int64
}

// Duration returns the length of the replay, in whole seconds.
func (t Trace) Duration() time.Duration {
	return time.Duration(t.rows()-t.Backlog) * time.Second
}

// Transactions returns how many transactions arrive, those pending at the start included.
func (t Trace) Transactions() int64 {
	var sum int64
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

// newTrace makes a trace in which nothing arrives.
func newTrace(name string, start time.Time, seconds, backlog, partitions int) (Trace, error) {
	if rows := seconds + backlog; partitions < 1 || seconds < 1 || rows > maxArrivals/partitions {
		return Trace{}, fmt.Errorf("trace %s: %d seconds with %d partitions; allowed are from 1 second and 1 partition up to %d for seconds x partitions", name, rows, partitions, maxArrivals)
	}
	return Trace{
		Name: name, Start: start, Partitions: partitions, Backlog: backlog,
		Arrivals: make([]int64, (seconds+backlog)*partitions),
	}, nil
}
