package main

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// Cell is one set of conditions.
type Cell struct {
	Shape      Shape
	Partitions int
	StartUp    time.Duration // of a replica
}

// cells returns all combinations.
func cells(shapes []Shape, partitions []int, startUps []time.Duration) (all []Cell) {
	for _, shape := range shapes {
		for _, n := range partitions {
			for _, startUp := range startUps {
				all = append(all, Cell{shape, n, startUp})
			}
		}
	}
	return all
}

// Matrix is contenders and the cells in which they are compared.
type Matrix struct {
	Load       Load // all fields but Partitions
	Workers    simulate.Workers
	Objective  simulate.Objective
	Container  Container // the container that the replicas use
	Contenders []Contender
	Seed       uint64 // of the first trace
	Seeds      int    // number of seeds, at least 1
}

// Result is the result of one contender in a cell: the mean over the seeds.
type Result struct {
	simulate.Result
	RUHours float64 // of the container, in RU/s-hours; 0 if nothing is limited
	PeakRU  float64 // the highest RU/s
}

// Meeting is all results of a cell.
type Meeting struct {
	Cell
	Results []Result // in the order of the contenders
	Fixed   Result   // of the best fixed count
	Bound   Result   // of the clairvoyant
}

// Run replays every cell, in parallel over cells and seeds, and reports each cell and seed that is
// done. The results do not depend on the parallelism.
func (m Matrix) Run(ctx context.Context, cells []Cell, told func(done, all int)) ([]Meeting, error) {
	var lock sync.Mutex
	done, all := 0, len(cells)*m.Seeds
	replays := make([][]Result, all) // by cell, by seed
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range replays {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			replays[i], err = m.replay(cells[i/m.Seeds], m.Seed+uint64(i%m.Seeds))
			lock.Lock()
			defer lock.Unlock()
			done++
			told(done, all)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	meetings := make([]Meeting, len(cells))
	for i, cell := range cells {
		meetings[i] = m.meeting(cell, replays[i*m.Seeds:][:m.Seeds])
	}
	return meetings, nil
}

// replay runs one cell with one seed: the contenders, every fixed count, and the bound.
func (m Matrix) replay(cell Cell, seed uint64) (results []Result, err error) {
	load, w := m.Load, m.Workers
	load.Partitions, load.Throughput, w.StartUp = cell.Partitions, w.Throughput, cell.StartUp
	t, err := cell.Shape.Arrivals(load, seed)
	if err != nil {
		return nil, err
	}
	run := func(s simulate.Scaler) {
		var r Result
		if m.Container.limited() {
			on := newMeter(s, m.Container, t, w)
			r.Result = simulate.Run(t, w, on, simulate.Conditions{Seed: seed}, m.Objective)
			r.RUHours, r.PeakRU = on.ruHours(), float64(on.peak)
		} else {
			r.Result = simulate.Run(t, w, s, simulate.Conditions{Seed: seed}, m.Objective)
		}
		r.Series = nil // the series of all cells would not fit into memory
		results = append(results, r)
	}
	for _, c := range m.Contenders {
		run(c)
	}
	for _, count := range simulate.FixedCounts(cell.Partitions) {
		run(simulate.FixedCount(count))
		results[len(results)-1].Fixed = count
	}
	return append(results, Result{Result: Bound(t, w, m.Objective)}), nil
}

// meeting returns the means of a cell from the replays of its seeds.
func (m Matrix) meeting(cell Cell, replays [][]Result) Meeting {
	means := make([]Result, len(replays[0]))
	for i := range means {
		plain := make([]simulate.Result, len(replays))
		for seed := range replays {
			plain[seed] = replays[seed][i].Result
			means[i].RUHours += replays[seed][i].RUHours / float64(len(replays))
			means[i].PeakRU += replays[seed][i].PeakRU / float64(len(replays))
		}
		means[i].Result = simulate.Mean(plain)
	}
	own, last := len(m.Contenders), len(means)-1
	var counts []simulate.Result
	for _, r := range means[own:last] {
		counts = append(counts, r.Result)
	}
	best := simulate.BestFixed(counts, cell.Shape.of(m.Load).Duration, m.Objective).Fixed
	fixed := slices.IndexFunc(means, func(r Result) bool { return r.Fixed == best })
	return Meeting{Cell: cell, Results: means[:own], Fixed: means[fixed], Bound: means[last]}
}
