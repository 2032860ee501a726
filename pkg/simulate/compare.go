package simulate

import (
	"context"
	"slices"
)

// Comparison is scalers against the same traces, one trace for each seed.
type Comparison struct {
	Traces     []Trace // seed by seed; a recorded one stands here as often as there are seeds
	Workers    Workers
	Conditions Conditions // Seed is that of the first trace, the others follow
	Objective  Objective
	Scalers    []Scaler
	Yardsticks bool // whether the best fixed count and the clairvoyant bound follow the scalers
}

// Run replays every trace against every scaler, in parallel, and returns the means: of each scaler, in
// their order, then of the best fixed count and of the bound. What runs beside what makes no difference
// to them. It fails where the context is done before.
func (c Comparison) Run(ctx context.Context, progress Progress) ([]Result, error) {
	own, scalers := len(c.Scalers), slices.Clone(c.Scalers)
	if c.Yardsticks {
		for _, n := range FixedCounts(c.Traces[0].Partitions) {
			scalers = append(scalers, Fixed(n))
		}
	}
	each := len(scalers)
	if c.Yardsticks {
		each++
	}
	done := counter{all: each * len(c.Traces), progress: progress}
	results := make([][]Result, each)
	for i := range results {
		results[i] = make([]Result, len(c.Traces))
	}
	err := parallel(ctx, done.all, func(i int) {
		which, seed := i%each, i/each
		conditions := c.Conditions
		conditions.Seed += uint64(seed)
		if which >= own {
			conditions.Delay = 0 // nothing is decided
		}
		if which < len(scalers) {
			results[which][seed] = Run(c.Traces[seed], c.Workers, scalers[which], conditions, c.Objective)
		} else {
			results[which][seed] = Bound(c.Traces[seed], c.Workers, c.Objective)
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
	return append(means[:own:own], BestFixed(means[own:len(scalers)], c.Traces[0].Duration(), c.Objective), means[each-1]), nil
}
