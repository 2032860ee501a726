package main_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	chaosSeed  = flag.Uint64("seed", 1, "of the first world of chaos")
	chaosTicks = flag.Int("ticks", 60, "that all worlds of chaos have together")
)

// A world has phases; all faults end after each of them.
const (
	phases        = 3
	stepsOfAPhase = 12
)

// The kinds of worlds; the seed chooses one. Those under a host need less time.
var chaosKinds = []string{"a host", "two hosts", "run, with a file", "three hosts", "run, with a table", "a host", "two hosts", "a host and run", "a host, and 5,000 events that wait"}

// TestEverythingIsRightAgainWhateverFailedAndWhoeverWasKilled_Long runs real processes against
// stand-ins that fail, kills them at every step, and checks what is visible from outside: the
// queue, the API, the logs and the exits. docs/reliability.md has the promises.
func TestEverythingIsRightAgainWhateverFailedAndWhoeverWasKilled_Long(t *testing.T) {
	t.Parallel()
	total := &record{kills: map[string]int{}}
	defer func() {
		t.Logf("%d ticks, %d faults, %d events, %d times all was right again, after %.1f ticks of each process on average and %d at most",
			total.ticks, total.faults, total.events, total.settled, float64(total.rounds)/float64(max(1, total.settled)), total.longest)
		for _, step := range slices.Sorted(maps.Keys(total.kills)) {
			t.Logf("%4d ended at %s", total.kills[step], step)
		}
	}()
	const worlds = 3 // running in parallel
	var all sync.WaitGroup
	var seeds atomic.Uint64
	seeds.Store(*chaosSeed)
	for range worlds {
		all.Go(func() {
			for !total.enough(*chaosTicks) && !t.Failed() {
				seed := seeds.Add(1) - 1
				kind := chaosKinds[seed%uint64(len(chaosKinds))]
				t.Run(fmt.Sprintf("seed %d: %s", seed, kind), func(t *testing.T) { newChaos(t, seed, kind, total).run(*chaosTicks) })
			}
		})
	}
	all.Wait()
}

// run goes through the phases, until all worlds together have had enough ticks.
func (w *chaos) run(enough int) {
	defer func() { w.record.add(func(r *record) { r.events += w.judge.events() }) }()
	for range phases {
		for range stepsOfAPhase {
			w.step()
			if w.t.Failed() {
				return
			}
		}
		w.settle()
		w.holds()
		if w.record.enough(enough) {
			return
		}
	}
}

// holds compares what the processes hold at the end with what they held at first.
func (w *chaos) holds() {
	for _, i := range w.processes {
		u, err := usageOf(i.pid())
		if err != nil {
			w.breaks("a process that answered cannot be looked at: %v", err)
			continue
		}
		w.tell("%d descriptors, %d threads, %d KiB", u.descriptors, u.threads, u.memory)
		if u.descriptors > 80 || u.threads > 60 || u.memory > 150<<10 {
			w.breaks("a process holds %d descriptors, %d threads, %d KiB", u.descriptors, u.threads, u.memory)
		}
	}
}
