package simulate

import (
	"context"
	"time"
)

// Matrix is every trace under every start-up time, delay and way of acting.
type Matrix struct {
	Traces     []string   // names of synthetic traces
	Options    Options    // Seed is the first one; weekly lasts seven times as long, and hot has half the rate, since its hot partition would outrun a replica otherwise
	Seeds      int        // at least 1
	Workers    Workers    // but for StartUp
	Conditions Conditions // but for Acting, Delay and Seed
	Objective  Objective
	StartUps   []time.Duration
	Delays     []time.Duration
	Policies   []Scaler // of feedscale: each under every way of acting
}

// Cell is the mean result of one scaler under one set of conditions.
type Cell struct {
	Trace   string
	StartUp time.Duration
	Delay   time.Duration
	Acting  Acting // "" for the best fixed count and the bound, on which nobody acts
	Result  Result
}

// RecordStartUps and RecordDelays are those of docs/decisions/0011-default-policy.md.
var (
	RecordStartUps = []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, 60 * time.Second}
	RecordDelays   = []time.Duration{0, 5 * time.Second, 15 * time.Second, 30 * time.Second}
)

// job is what one goroutine does at a time: all of one trace and start-up time, for one seed.
type job struct {
	trace, startUp, seed int
}

// Run replays all of it, in parallel. The cells come in the order of the traces, start-up times and
// delays; within them the policies, each in every way of acting, then KEDA, the best fixed count and
// the bound, which are the same for every delay.
func (m Matrix) Run(ctx context.Context, progress Progress) ([]Cell, error) {
	counts := FixedCounts(m.Options.Partitions)
	rows := m.rows()
	replays := len(rows)*len(m.Delays) + len(counts) + 1
	jobs := len(m.Traces) * len(m.StartUps) * m.Seeds
	done := counter{all: jobs * replays, progress: progress}
	// By trace and start-up time, and there by row of the table, by seed.
	results := make([][][]Result, len(m.Traces)*len(m.StartUps))
	for i := range results {
		results[i] = make([][]Result, replays)
		for j := range results[i] {
			results[i][j] = make([]Result, m.Seeds)
		}
	}
	failed := make([]error, jobs)
	err := parallel(ctx, jobs, func(i int) {
		j := job{trace: i / (len(m.StartUps) * m.Seeds), seed: i / len(m.StartUps) % m.Seeds, startUp: i % len(m.StartUps)}
		at := 0
		failed[i] = m.replay(ctx, j, func(r Result) {
			r.Series = nil
			results[j.trace*len(m.StartUps)+j.startUp][at][j.seed] = r
			at++
			done.one()
		})
	})
	for _, e := range failed {
		if err == nil {
			err = e
		}
	}
	if err != nil {
		return nil, err
	}
	var cells []Cell
	for i, of := range results {
		means := make([]Result, len(of))
		for j := range of {
			means[j] = Mean(of[j])
		}
		name := m.Traces[i/len(m.StartUps)]
		at := len(rows) * len(m.Delays)
		fixed, bound := BestFixed(means[at:at+len(counts)], m.options(name).Duration, m.Objective), means[len(means)-1]
		for d, delay := range m.Delays {
			cell := Cell{Trace: name, StartUp: m.StartUps[i%len(m.StartUps)], Delay: delay}
			for r, row := range rows {
				cell.Acting, cell.Result = row.acting, means[d*len(rows)+r]
				cells = append(cells, cell)
			}
			cell.Acting = ""
			for _, cell.Result = range []Result{fixed, bound} {
				cells = append(cells, cell)
			}
		}
	}
	return cells, nil
}

// row is a scaler and who acts on it.
type row struct {
	scaler Scaler
	acting Acting
}

func (m Matrix) rows() (rows []row) {
	for _, s := range m.Policies {
		for _, acting := range Ways() {
			rows = append(rows, row{s, acting})
		}
	}
	return append(rows, row{KEDA(), KEDATrigger})
}

// options are those of one trace.
func (m Matrix) options(name string) Options {
	o := m.Options
	switch name {
	case "weekly":
		o.Duration *= 7
	case "hot":
		o.Rate /= 2
	}
	return o
}

// replay does one job, and hands each result on: of the rows for each delay, of the fixed counts, and
// of the bound.
func (m Matrix) replay(ctx context.Context, j job, result func(Result)) error {
	options := m.options(m.Traces[j.trace])
	options.Seed += uint64(j.seed)
	t, err := Generate(m.Traces[j.trace], options)
	if err != nil {
		return err
	}
	w, c := m.Workers, m.Conditions
	w.StartUp, c.Seed = m.StartUps[j.startUp], options.Seed
	for _, c.Delay = range m.Delays {
		for _, row := range m.rows() {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.Acting = row.acting
			result(Run(t, w, row.scaler, c, m.Objective))
		}
	}
	for _, n := range FixedCounts(t.Partitions) {
		result(Run(t, w, Fixed(n), Conditions{Seed: c.Seed}, m.Objective))
	}
	result(Bound(t, w, m.Objective))
	return nil
}
