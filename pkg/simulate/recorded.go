package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Sample is one poll of a processor in its history. nil means unknown.
type Sample struct {
	Time       time.Time
	Lag        *int64   // pending transactions
	Age        *int64   // seconds since the oldest pending change was written
	Arrival    *float64 // transactions per second that arrived since the sample before
	Drain      *float64 // transactions per second that one replica processed
	Partitions *int
	Incomplete bool // a partition could not be measured, so that lag and arrival are not the whole
}

// Recording is a trace made of samples, and what else they say.
type Recording struct {
	Trace
	Guessed time.Duration // time for which no arrival rate was recorded; the rate of the last sample before it that has one is used, or else of the next
	Drain   *float64      // median transactions per second that one replica processed; nil where never recorded
}

// maxBacklog, in transactions, keeps sums within 64 bits.
const maxBacklog = 1_000_000_000_000_000

// FromSamples makes a trace of recorded history. It begins at the first complete sample that has a
// lag, with that lag pending. From there on the arrival rate of each sample holds for the time
// since the one before, spread evenly over the partitions: the greatest number recorded or, where
// that is not 0, the argument. The error says what the samples lack.
func FromSamples(name string, samples []Sample, partitions int) (Recording, error) {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b Sample) int { return a.Time.Compare(b.Time) })
	first := slices.IndexFunc(samples, func(s Sample) bool { return s.Lag != nil && !s.Incomplete })
	if first < 0 {
		return Recording{}, fmt.Errorf("recording %s: no sample knows the lag of every partition, so there is nothing to begin with; record a longer time", name)
	}
	samples = samples[first:]
	if partitions == 0 {
		partitions = partitionsOf(samples)
	}
	if partitions == 0 {
		return Recording{}, fmt.Errorf("recording %s: no sample knows the number of partitions; give it", name)
	}
	rates, guessed, err := arrivals(name, samples)
	if err != nil {
		return Recording{}, err
	}
	begin := samples[0]
	backlog, age := *begin.Lag, 0
	if backlog < 0 || backlog > maxBacklog {
		return Recording{}, fmt.Errorf("recording %s: it begins with a lag of %d; allowed are numbers from 0 to %d", name, backlog, int64(maxBacklog))
	}
	if backlog > 0 {
		age = 1
		if begin.Age != nil {
			age = int(min(max(1, *begin.Age), maxArrivals))
		}
	}
	t, err := newTrace(name, begin.Time.UTC(), len(rates), age, partitions)
	if err != nil {
		return Recording{}, err
	}
	s := spreader{trace: t}
	for second := range int64(age) {
		// The remainder of the division is spread evenly, too.
		odd, span := backlog%int64(age), int64(age)
		s.row(backlog/span + odd*(second+1)/span - odd*second/span)
	}
	carry := 0.0
	for _, rate := range rates {
		carry += rate
		whole := int64(carry)
		carry -= float64(whole)
		s.row(whole)
	}
	return Recording{Trace: t, Guessed: guessed, Drain: medianDrain(samples)}, nil
}

// arrivals returns the arrival rate, in transactions per second, of each second from the first
// sample to the last.
func arrivals(name string, samples []Sample) (rates []float64, guessed time.Duration, err error) {
	known := func(s Sample) bool { return s.Arrival != nil && !s.Incomplete }
	next := slices.IndexFunc(samples, known)
	if next < 0 {
		return nil, 0, fmt.Errorf("recording %s: no sample has an arrival rate, which takes two polls in a row that measured something; record a longer time", name)
	}
	start, rate := samples[0].Time, *samples[next].Arrival
	if seconds := samples[len(samples)-1].Time.Sub(start) / time.Second; seconds < 1 || seconds > maxArrivals {
		return nil, 0, fmt.Errorf("recording %s: its samples span %d seconds; allowed are 1 to %d", name, seconds, maxArrivals)
	}
	for i, s := range samples {
		if known(s) && !(*s.Arrival >= 0 && *s.Arrival <= MaxRate) {
			return nil, 0, fmt.Errorf("recording %s: sample %d has the arrival rate %v; allowed are numbers from 0 to %d", name, i+1, *s.Arrival, MaxRate)
		}
	}
	for _, s := range samples[1:] {
		if known(s) {
			rate = *s.Arrival
		}
		for until := int(s.Time.Sub(start) / time.Second); len(rates) < until; rates = append(rates, rate) {
			if !known(s) {
				guessed += time.Second
			}
		}
	}
	return rates, guessed, nil
}

func partitionsOf(samples []Sample) int {
	most := 0
	for _, s := range samples {
		if s.Partitions != nil {
			most = max(most, *s.Partitions)
		}
	}
	return most
}

func medianDrain(samples []Sample) *float64 {
	var drains []float64
	for _, s := range samples {
		if s.Drain != nil && *s.Drain > 0 && *s.Drain <= MaxRate {
			drains = append(drains, *s.Drain)
		}
	}
	if len(drains) == 0 {
		return nil
	}
	slices.SortFunc(drains, cmp.Compare[float64])
	middle := len(drains) / 2
	median := drains[middle]
	if len(drains)%2 == 0 {
		median = (drains[middle-1] + drains[middle]) / 2
	}
	return &median
}

// spreader fills a trace from its beginning. Remainders go to the partitions in turn.
type spreader struct {
	trace Trace
	next  int // index of the next row
	turn  int // partition that gets the next transaction of a remainder
}

// row spreads the transactions of one second over the partitions.
func (s *spreader) row(transactions int64) {
	partitions := s.trace.Partitions
	row := s.trace.Arrivals[s.next:][:partitions]
	for p := range row {
		row[p] = transactions / int64(partitions)
	}
	for range transactions % int64(partitions) {
		row[s.turn]++
		s.turn = (s.turn + 1) % partitions
	}
	s.next += partitions
}
