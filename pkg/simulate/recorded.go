package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// Recording is a trace made of samples, and what else they say. If no arrival rate was recorded, that of
// the last sample with one is used, or else of the next.
type Recording struct {
	Trace
	Guessed time.Duration // for which no arrival rate was recorded
	Drain   float64       // median transactions per second that one replica processed; 0 if never recorded
}

// maxBacklog, in transactions, keeps sums within 64 bits.
const maxBacklog = 1_000_000_000_000_000

// FromSamples makes a trace of recorded history. It begins at the first complete sample that has a lag,
// with that lag pending. From there on the arrival rate of each sample holds for the time since the one
// before, spread evenly over the partitions: the argument or, if that is 0, the greatest number recorded.
// The error says what the samples lack.
func FromSamples(name string, samples []state.Sample, partitions int) (Recording, error) {
	refused := func(format string, args ...any) (Recording, error) {
		return Recording{}, fmt.Errorf("recording %s: %s", name, fmt.Sprintf(format, args...))
	}
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b state.Sample) int { return a.Time.Compare(b.Time) })
	first := slices.IndexFunc(samples, func(s state.Sample) bool { return s.Lag != nil && s.Complete })
	if first < 0 {
		return refused("no sample knows the lag of every partition, so there is nothing to begin with; record a longer time")
	}
	samples = samples[first:]
	// The lag and the rate of a part of the partitions are not the whole.
	known := func(s state.Sample) bool { return s.Arrival != nil && s.Complete }
	next, seen := slices.IndexFunc(samples, known), 0
	var drains []float64
	for i, s := range samples {
		if s.PartitionCount != nil {
			seen = max(seen, *s.PartitionCount)
		}
		if s.DrainPerReplica != nil && *s.DrainPerReplica > 0 && *s.DrainPerReplica <= MaxRate {
			drains = append(drains, *s.DrainPerReplica)
		}
		if known(s) && !(*s.Arrival >= 0 && *s.Arrival <= MaxRate) {
			return refused("sample %d has the arrival rate %v; allowed are numbers from 0 to %d", i+1, *s.Arrival, MaxRate)
		}
	}
	if partitions = cmp.Or(partitions, seen); partitions == 0 {
		return refused("no sample knows the number of partitions; give it")
	}
	if next < 0 {
		return refused("no sample has an arrival rate, which takes two polls in a row that measured something; record a longer time")
	}
	begin := samples[0]
	seconds := int(samples[len(samples)-1].Time.Sub(begin.Time) / time.Second)
	if seconds < 1 || seconds > maxArrivals {
		return refused("its samples span %d seconds; allowed are 1 to %d", seconds, maxArrivals)
	}
	backlog, age := *begin.Lag, int64(0)
	if backlog < 0 || backlog > maxBacklog {
		return refused("it begins with a lag of %d; allowed are numbers from 0 to %d", backlog, int64(maxBacklog))
	}
	if backlog > 0 {
		age = max(1, min(*cmp.Or(begin.Age, new(int64)), maxArrivals))
	}
	if err := checkSize(name, int(age)+seconds, partitions); err != nil {
		return Recording{}, err
	}
	r := Recording{Trace: Trace{
		Name: name, Start: begin.Time.UTC(), Partitions: partitions, Backlog: int(age),
		Arrivals: make([]int64, 0, (int(age)+seconds)*partitions),
	}}
	if n := len(drains); n > 0 {
		slices.Sort(drains)
		r.Drain = (drains[(n-1)/2] + drains[n/2]) / 2
	}
	turn := 0
	for second := range age {
		// The remainder of the division is spread evenly, too.
		odd := backlog % age
		r.spread(backlog/age+odd*(second+1)/age-odd*second/age, &turn)
	}
	rate, carry := *samples[next].Arrival, 0.0
	for _, s := range samples[1:] {
		if known(s) {
			rate = *s.Arrival
		}
		for until := int(s.Time.Sub(begin.Time) / time.Second); r.rows()-r.Backlog < until; {
			carry += rate
			r.spread(int64(carry), &turn)
			carry -= float64(int64(carry))
			if !known(s) {
				r.Guessed += time.Second
			}
		}
	}
	return r, nil
}

// spread adds a second, and spreads its transactions over the partitions, the remainder in turn.
func (t *Trace) spread(transactions int64, turn *int) {
	partitions := int64(t.Partitions)
	row := slices.Repeat([]int64{transactions / partitions}, t.Partitions)
	for range transactions % partitions {
		row[*turn]++
		*turn = (*turn + 1) % t.Partitions
	}
	t.Arrivals = append(t.Arrivals, row...)
}
