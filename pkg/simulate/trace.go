package simulate

import (
	"fmt"
	"time"
)

// Trace is what arrives at the change feed of a processor, second by second.
type Trace struct {
	Name       string
	Start      time.Time // when the replay begins, which the schedules of a policy depend on
	Partitions int       // at least 1
	// Backlog is how many seconds at the head of Arrivals lie before Start: all
	// that arrived in them is pending there.
	Backlog int
	// Arrivals counts transactions, 0 or more: Partitions numbers for the first
	// second, then those of the next.
	Arrivals []int64
}

// Duration is how long the replay takes, in whole seconds.
func (t Trace) Duration() time.Duration {
	return time.Duration(t.rows()-t.Backlog) * time.Second
}

// Transactions is how many arrive, with those pending at the start.
func (t Trace) Transactions() int64 {
	var sum int64
	for _, n := range t.Arrivals {
		sum += n
	}
	return sum
}

// rows is the number of seconds, with those before the start.
func (t Trace) rows() int { return len(t.Arrivals) / max(1, t.Partitions) }

// maxArrivals bounds a trace to 400 MB: a week of 80 partitions, or 70 days of 8.
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
