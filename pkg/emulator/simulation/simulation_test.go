//go:debug randseednop=0

// Package simulation holds the whole of a tick against faults that a seed chooses: real pollers, estimators,
// decisions, events and throughput, between accounts, a table and a broker in memory, on virtual time.
//
// docs/reliability.md has the promises, and docs/decisions/0019 how they are proved. Start with world.run;
// rules_test.go has what has to hold, dice_test.go what may happen.
package simulation_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seed    = flag.Uint64("seed", 1, "first seed")
	stride  = flag.Uint64("stride", 1, "from one seed to the next")
	ticks   = flag.Int("ticks", 200, "ticks of pollers, over all seeds")
	workers = flag.Int("workers", 1, "processes that run seeds side by side")
	stories = flag.Int("stories", 12, "seeds whose story is told twice")
	shrinks = flag.Duration("shrink", time.Minute, "time to make a failing run smaller; 0 = as it is")
)

const ticksOfARun = 150

// simulate runs one plan. The story is told where there is somebody to listen.
func simulate(t *testing.T, p plan, story *[]string) (w *world) {
	t.Helper()
	// The retries of azcore draw their jitter from here, and nothing else lets one seed that.
	//lint:ignore SA1019 go:debug randseednop has it work
	rand.Seed(int64(p.seed))
	synctest.Test(t, func(*testing.T) {
		w = newWorld(p, story)
		w.run()
	})
	return w
}

// TestNoFaultBreaksAPromise runs one seed after the other. `make chaos` runs a million ticks.
func TestNoFaultBreaksAPromise(t *testing.T) {
	if *workers > 1 && *ticks >= 1000 {
		runSideBySide(t)
		return
	}
	polls, runs, choices := 0, 0, 0
	for s := *seed; polls < *ticks; s += *stride {
		w := simulate(t, plan{seed: s, ticks: ticksOfARun}, nil)
		polls, runs, choices = polls+w.polls, runs+1, choices+len(w.choices)
		if w.failure != nil {
			t.Fatalf("seed %d: %s (after %d ticks)\n%s", s, w.failure, polls, shrunk(t, w))
		}
	}
	t.Logf("%d ticks in %d runs, %d faults and other events", polls, runs, choices)
}

// runSideBySide has other processes run the seeds: jitter is drawn from what is global in one.
func runSideBySide(t *testing.T) {
	var running sync.WaitGroup
	for i := range *workers {
		running.Go(func() {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestNoFaultBreaksAPromise$", "-test.v", "-test.timeout", "0",
				"-seed", fmt.Sprint(*seed+uint64(i)), "-stride", fmt.Sprint(*workers), "-ticks", fmt.Sprint(*ticks / *workers), "-shrink", shrinks.String())
			out, err := command.CombinedOutput()
			if err != nil {
				t.Errorf("%v", err)
			}
			t.Logf("%s", out)
		})
	}
	running.Wait()
}

// shrunk makes a run that fails smaller, by leaving out processors and what happens for as long as the same
// rule is broken, and returns its story and how to repeat it.
func shrunk(t *testing.T, w *world) string {
	end := time.Now().Add(*shrinks)
	p, rule, choices := w.plan, w.failure.rule, w.choices
	try := func(p plan) bool {
		if time.Now().After(end) {
			return false
		}
		again := simulate(t, p, nil)
		if again.failure == nil || again.failure.rule != rule {
			return false
		}
		choices = again.choices
		return true
	}
	fewer := func() {
		for _, c := range w.all {
			smaller := p
			smaller.alone = nil
			for _, other := range w.all {
				if other != c && (p.alone == nil || slices.Contains(p.alone, other.name)) {
					smaller.alone = append(smaller.alone, other.name)
				}
			}
			if len(smaller.alone) > 0 && try(smaller) {
				p = smaller
			}
		}
	}
	fewer()
	for chunk := len(choices); chunk > 0; chunk /= 2 {
		for from := 0; from < len(choices); from += chunk {
			smaller := p
			smaller.without = map[choice]bool{}
			for c := range p.without {
				smaller.without[c] = true
			}
			for _, c := range choices[from:min(from+chunk, len(choices))] {
				smaller.without[c] = true
			}
			if try(smaller) {
				p = smaller
				from -= chunk // what was behind it has moved up
			}
		}
	}
	fewer()
	var story []string
	w = simulate(t, p, &story)
	var text strings.Builder
	fmt.Fprintf(&text, "repeat it with: make chaos SEED=%d TICKS=1\nwhat has to happen for it (%d of what did):\n", p.seed, len(w.choices))
	for _, c := range w.choices {
		fmt.Fprintf(&text, "  %s\n", c)
	}
	fmt.Fprintf(&text, "processors: %s\nthe end of the story:\n%s\n", names(w), strings.Join(story[max(0, len(story)-80):], "\n"))
	return text.String()
}

func names(w *world) string {
	var all []string
	for _, c := range w.configured() {
		all = append(all, fmt.Sprintf("%s at %s", c.name, c.account.host))
	}
	return strings.Join(all, ", ")
}

// told returns what a run is known by: a hash of its story, and how it ended; and its world.
func told(t *testing.T, p plan) (story string, w *world) {
	var lines []string
	w = simulate(t, p, &lines)
	h := fnv.New64a()
	for _, line := range lines {
		_, _ = io.WriteString(h, line+"\n")
	}
	return fmt.Sprintf("%x of %d lines, %d events, %v", h.Sum64(), len(lines), len(w.choices), w.failure), w
}

// TestASeedTellsTheSameStoryTwice_Long has seeds too in which one process has several requests at once at one
// account. Where containers share an account and its one slot, the runtime chooses which of them goes first.
func TestASeedTellsTheSameStoryTwice_Long(t *testing.T) {
	atOnce := 0
	for s := *seed; s < *seed+uint64(*stories); s++ {
		p := plan{seed: s, ticks: 20}
		first, w := told(t, p)
		if second, _ := told(t, p); first != second && !w.neighbours {
			t.Errorf("seed %d: %s, and then %s", s, first, second)
		}
		atOnce = max(atOnce, w.atOnce)
	}
	if atOnce < 2 {
		t.Error("no account has had two requests of one process at once")
	}
}

// TestWhatIsLeftOutMovesNothingElse_Long holds what shrinking rests on.
func TestWhatIsLeftOutMovesNothingElse_Long(t *testing.T) {
	p := plan{seed: *seed, ticks: 60}
	w := simulate(t, p, nil)
	last := w.choices[len(w.choices)-1]
	p.without = map[choice]bool{last: true}
	if again := simulate(t, p, nil); len(again.choices) < len(w.choices)-1 || again.choices[0] != w.choices[0] {
		t.Errorf("without %s, %d events are left of %d", last, len(again.choices), len(w.choices))
	}
}

// TestMemoryDoesNotGrowWithTicks_Long looks at the heap after a third of a long run, and at its end.
func TestMemoryDoesNotGrowWithTicks_Long(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const length, allowed = 300, 1 << 20
	var early, late int64
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(plan{seed: *seed, ticks: length}, nil)
		w.unrecorded = true
		w.rates["split"], w.rates["merge"] = 0, 0 // the fakes remember each
		w.behind = func() {
			switch w.tick {
			case length / 3:
				early = heap()
			case length - 1:
				late = heap()
			}
		}
		w.run()
		if w.failure != nil {
			t.Error(w.failure)
		}
	})
	t.Logf("%d KiB, and %d KiB %d ticks later", early>>10, late>>10, length*2/3)
	if late > early+allowed {
		t.Errorf("the heap has grown from %d to %d bytes", early, late)
	}
}
