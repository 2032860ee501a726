package simulate

import (
	"context"
	"slices"
	"sync"
)

// Comparison is scalers against the same traces, one for each seed.
type Comparison struct {
	Trace      func(seed uint64) Trace // asked once for each seed; a recorded trace is the same for all
	Seeds      int                     // at least 1: Conditions.Seed and those after it
	Workers    Workers
	Conditions Conditions
	Objective  Objective
	Scalers    []Scaler
	Yardsticks bool // whether the best fixed count and the clairvoyant bound follow the scalers
}

// Run replays every trace against every scaler, in parallel, and returns the means: of each scaler, in
// their order, then of the best fixed count and of the bound. What runs beside what makes no difference
// to them. It fails where the context is done before.
func (c Comparison) Run(ctx context.Context, progress Progress) ([]Result, error) {
	traces := make([]lentTrace, c.Seeds)
	first := traces[0].take(c, 0)
	duration := first.Duration()
	own, scalers := len(c.Scalers), slices.Clone(c.Scalers)
	each := own
	if c.Yardsticks {
		for _, n := range FixedCounts(first.Partitions) {
			scalers = append(scalers, Fixed(n))
		}
		each = len(scalers) + 1
	}
	done := counter{all: each * c.Seeds, progress: progress}
	results := make([][]Result, each)
	for i := range results {
		results[i] = make([]Result, c.Seeds)
	}
	err := parallel(ctx, done.all, func(i int) {
		which, seed := i%each, i/each
		t := traces[seed].take(c, seed)
		defer traces[seed].giveBack(each)
		conditions := c.Conditions
		conditions.Seed += uint64(seed)
		if which >= own {
			conditions.Delay = 0 // nothing is decided
		}
		if which < len(scalers) {
			results[which][seed] = Run(t, c.Workers, scalers[which], conditions, c.Objective)
		} else {
			results[which][seed] = Bound(t, c.Workers, c.Objective)
		}
		done.one()
	})
	if err != nil {
		return nil, err
	}
	means := make([]Result, each)
	for i := range means {
		means[i] = Mean(results[i])
	}
	if !c.Yardsticks {
		return means, nil
	}
	return append(means[:own:own], BestFixed(means[own:len(scalers)], duration, c.Objective), means[each-1]), nil
}

// lentTrace is the trace of one seed, which is there only while it is replayed: some hundred seeds of
// it would not fit into memory.
type lentTrace struct {
	sync.Mutex
	trace    *Trace
	returned int
}

func (l *lentTrace) take(c Comparison, seed int) Trace {
	l.Lock()
	defer l.Unlock()
	if l.trace == nil {
		l.trace = new(c.Trace(c.Conditions.Seed + uint64(seed)))
	}
	return *l.trace
}

// giveBack says that one of so many replays is done.
func (l *lentTrace) giveBack(replays int) {
	l.Lock()
	defer l.Unlock()
	if l.returned++; l.returned == replays {
		l.trace = nil
	}
}
