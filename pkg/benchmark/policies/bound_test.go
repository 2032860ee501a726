package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// byHand tries every number of replicas in every slot of 15 s, for one partition's work that
// arrives at the beginning of each slot. It returns the fewest replica-seconds that never leave
// more than allowed at the end of a slot.
func byHand(arrivals []float64, replicas int, speed, allowed float64, startUp int) int {
	best := math.MaxInt
	var try func(slot, now, paid int, pending float64)
	try = func(slot, now, paid int, pending float64) {
		if slot == len(arrivals) {
			best = min(best, paid)
			return
		}
		for n := range replicas + 1 {
			left := max(0, pending+arrivals[slot]-15*speed*float64(n))
			if left <= allowed {
				try(slot+1, n, paid+15*n+max(0, n-now)*startUp, left)
			}
		}
	}
	try(0, 0, 0, 0)
	return best
}

func TestTheBoundIsTheBestOfAllPlans(t *testing.T) {
	t.Parallel()
	const partitions, slots, speed = 3, 6, 4
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 9))
		allowed, startUp := int64(random.IntN(200)), random.IntN(40)
		tr := trace(partitions, quiet(partitions, slots*15)...)
		arrivals := make([]float64, slots)
		for slot := range slots {
			// Arrivals are even, in the first second of a slot, and no more than the full fleet
			// processes in it.
			for p := range partitions {
				n := int64(random.IntN(14 * speed))
				tr.Arrivals[slot*15*partitions+p] = n
				arrivals[slot] += float64(n)
			}
		}
		w := simulate.Workers{Throughput: speed, StartUp: time.Duration(startUp) * time.Second}
		r := Bound(tr, w, simulate.Objective{Lag: allowed, Age: time.Hour})
		if want := byHand(arrivals, partitions, speed, float64(allowed), startUp); int(math.Round(r.ReplicaHours*3600)) != want {
			t.Errorf("seed %d: %.0f replica-seconds, want %d", seed, r.ReplicaHours*3600, want)
		}
	}
}

func TestTheBoundOfWhatCanBeReckonedInTheHead(t *testing.T) {
	t.Parallel()
	each := func(seconds int, row ...int64) simulate.Trace {
		rows := make([][]int64, seconds)
		for i := range rows {
			rows[i] = slices.Clone(row)
		}
		return trace(len(row), rows...)
	}
	strict := simulate.Objective{Lag: 30, Age: time.Minute}
	for _, c := range []struct {
		rule    string
		trace   simulate.Trace
		o       simulate.Objective
		seconds float64 // replica-seconds
		over    time.Duration
	}{
		{"nothing arrives: nothing is needed", each(600, 0, 0), strict, 0, 0},
		{"two thirds of a replica: it sleeps through one slot in three, for a start-up each time", each(900, 4, 4), simulate.Objective{Lag: 240, Age: time.Hour}, 900.0 / 45 * (30 + 10), 0},
		{"a partition that outruns its replica is over from then on, with one replica all the time", each(900, 15), simulate.Objective{Lag: 300, Age: time.Hour}, 910, 804 * time.Second},
		{"the others' replica is paid as well, since nobody else can do their part", each(900, 15, 1), simulate.Objective{Lag: 0, Age: time.Hour}, 910 + 910, 900 * time.Second},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := Bound(c.trace, simulate.Workers{Throughput: 12, StartUp: 10 * time.Second}, c.o)
			if math.Abs(r.ReplicaHours*3600-c.seconds) > 25 || r.OverLag != c.over || r.Scaler != "bound" {
				t.Errorf("%.0f replica-seconds, %s over the lag; want about %.0f and %s", r.ReplicaHours*3600, r.OverLag, c.seconds, c.over)
			}
		})
	}
}

func TestNoFixedCountThatKeepsTheObjectivesIsBelowTheBound(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		t.Run(shape.Name, func(t *testing.T) {
			t.Parallel()
			shape.Times, shape.Share = 0, 0
			tr := arrivals(t, shape, 2, Load{Duration: 6 * time.Hour, Partitions: 8, Rate: 50, Throughput: 25})
			o := simulate.Objective{Lag: 1000, Age: time.Minute}
			w := simulate.Workers{Throughput: 25, PollDelay: 5 * time.Second}
			bound := Bound(tr, w, o)
			if bound.ReplicaHours <= 0 || bound.ReplicaHours > 8*6 {
				t.Errorf("a bound of %v hours, of 48 at most", bound.ReplicaHours)
			}
			for n := 1; n <= 8; n++ {
				r := simulate.Run(tr, w, simulate.FixedCount(n), simulate.Conditions{}, o)
				if r.ReplicaHours < bound.ReplicaHours && r.OverLag <= bound.OverLag && r.OverAge <= bound.OverAge {
					t.Errorf("%d replicas keep the objectives as well for %v hours, the bound is %v", n, r.ReplicaHours, bound.ReplicaHours)
				}
				if r.OverLag < bound.OverLag || r.OverAge < bound.OverAge {
					t.Errorf("%d replicas are over for %s and %s, the full fleet for %s and %s", n, r.OverLag, r.OverAge, bound.OverLag, bound.OverAge)
				}
			}
		})
	}
}

func BenchmarkBound(b *testing.B) {
	tr, err := simulate.Generate("daily", simulate.Options{Seed: 1, Duration: 24 * time.Hour, Partitions: 8, Rate: 50})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Bound(tr, simulate.Workers{Throughput: 25, StartUp: 30 * time.Second}, simulate.Objective{Lag: 1000, Age: time.Minute})
	}
}
