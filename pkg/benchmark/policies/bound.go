package main

import (
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// credit is the unit of capacity, a millionth of a transaction, so that fractions add up exactly.
const credit = 1_000_000

func credits(rate float64) int64 { return int64(math.Round(rate * credit)) }

// boundSlot is the step of the clairvoyant in seconds: the interval of the fastest loop.
const boundSlot = 15

// boundName is the Scaler of the clairvoyant's results, which have only hours, times over the
// objectives and actions.
const boundName = "bound"

// Bound computes a lower bound: the fewest replica-hours of any scaler that keeps the objectives
// whenever they can be kept. It is not a plan. A dynamic programme goes through slots of 15
// seconds; its state is the number of replicas and how much more is pending than with a full fleet.
//
// The full fleet always has one replica for each partition. Nobody can have less pending, since one
// replica at a time works on a partition. When the full fleet keeps the objectives, the clairvoyant
// must keep them at the end of each slot. When the full fleet breaks them, the clairvoyant may not
// be further behind. So its time over the objectives is that of the full fleet, and only its
// replica-hours are compared.
//
// The clairvoyant knows all arrivals, pays for replicas while they start, and uses whole replicas
// of the given throughput. All other limits are left out, so its hours are too few rather than too
// many: leases move at once, any replica can do any share of the work, handlers have no batches and
// no poll delay, and what arrives in a slot can be processed at any time in it. An age counts as
// kept if as much is processed as is due, whichever changes that are.
func Bound(t simulate.Trace, w simulate.Workers, o simulate.Objective) simulate.Result {
	full := fullFleet(t, w, o)
	d := newClairvoyant(w, t.Partitions)
	for _, s := range full.slots {
		d.slot(s)
	}
	best := d.best()
	return simulate.Result{
		Scaler:       boundName,
		ReplicaHours: float64(best.seconds) / 3600, Out: best.out, In: best.in,
		OverLag: full.overLag, OverAge: full.overAge, Arrived: t.Transactions(),
	}
}

// slot is the work that one slot leaves to the clairvoyant.
type slot struct {
	seconds int64
	demand  int64 // what the full fleet processes, in credits
	slack   int64 // how much more than with the full fleet may be pending at the end, in credits
}

// ideal runs the full fleet through the trace.
type ideal struct {
	slots            []slot
	overLag, overAge time.Duration
}

func fullFleet(t simulate.Trace, w simulate.Workers, o simulate.Objective) (i ideal) {
	n, speed, age := t.Partitions, credits(w.Throughput), int(min(o.Age/time.Second, math.MaxInt32))
	allowed := min(o.Lag, math.MaxInt64/credit) * credit
	// recent: changes younger than the objective
	pending, recent := make([]int64, n), make([]int64, n)
	var all, fresh int64 // their sums
	var s slot
	rows := len(t.Arrivals) / n
	for row := range rows {
		working := row >= t.Backlog
		for p := range n {
			if working {
				done := min(pending[p], speed)
				pending[p] -= done
				all -= done
				s.demand += done
			}
			came := t.Arrivals[row*n+p] * credit
			if row >= age {
				fresh -= t.Arrivals[(row-age)*n+p] * credit
				recent[p] -= t.Arrivals[(row-age)*n+p] * credit
			}
			pending[p] += came
			recent[p] += came
			all += came
			fresh += came
		}
		if !working {
			continue
		}
		if all > allowed {
			i.overLag += time.Second
		}
		for p := range n {
			if pending[p] > recent[p] {
				i.overAge += time.Second
				break
			}
		}
		if s.seconds++; s.seconds == boundSlot || row == rows-1 {
			s.slack = max(0, min(allowed, fresh)-all)
			i.slots = append(i.slots, s)
			s = slot{}
		}
	}
	return i
}

// plan is one sequence of replicas up to a slot.
type plan struct {
	seconds int64 // replica-seconds so far
	extra   int64 // pending beyond the full fleet, in credits
	out, in int   // number of changes in each direction
	moved   bool  // one of the changes is in this slot
}

// frontier is a set of plans of which none is both dearer and further behind than another, the
// cheapest first.
type frontier []plan

// add inserts a plan that is at least as dear as the last one.
func (f frontier) add(p plan) frontier {
	if last := len(f) - 1; last >= 0 && p.extra >= f[last].extra {
		return f
	} else if last >= 0 && p.seconds == f[last].seconds {
		f = f[:last]
	}
	return append(f, p)
}

// join merges stay and from into one frontier, in into. Each plan of from pays for a change of the
// replicas, up if out is set.
func join(into, stay, from frontier, pays int64, out bool) frontier {
	into = into[:0]
	for len(stay) > 0 || len(from) > 0 {
		if len(from) == 0 || len(stay) > 0 && stay[0].seconds <= from[0].seconds+pays {
			into, stay = into.add(stay[0]), stay[1:]
			continue
		}
		p := from[0]
		from = from[1:]
		p.seconds += pays
		if !p.moved && out {
			p.out++
		} else if !p.moved {
			p.in++
		}
		p.moved = true
		into = into.add(p)
	}
	return into
}

// maxPlans bounds a frontier. In a longer one, two neighbours become one plan with the lower cost
// and the lower backlog of both, which can only lower the bound.
const maxPlans = 256

// thin keeps a frontier within maxPlans.
func (f frontier) thin() frontier {
	if len(f) <= maxPlans {
		return f
	}
	kept := f[:0]
	for i := 0; i < len(f); i += 2 {
		p := f[i]
		p.extra = f[min(i+1, len(f)-1)].extra
		kept = append(kept, p)
	}
	return kept
}

// clairvoyant has a frontier for each number of replicas.
type clairvoyant struct {
	speed   int64 // credits per second of one replica
	startUp int64 // seconds
	plans   []frontier
	grown   []frontier // scratch of slot
}

func newClairvoyant(w simulate.Workers, partitions int) *clairvoyant {
	d := &clairvoyant{
		speed: credits(w.Throughput), startUp: int64(math.Ceil(w.StartUp.Seconds())),
		plans: make([]frontier, partitions+1), grown: make([]frontier, partitions+1),
	}
	d.plans[0] = frontier{{}}
	return d
}

// slot lets every plan choose its replicas for a slot, and processes the slot. New replicas cost
// their start-up time; removing them costs nothing.
func (d *clairvoyant) slot(s slot) {
	for n := range d.plans {
		var fewer frontier
		if n > 0 {
			fewer = d.grown[n-1]
		}
		d.grown[n] = join(d.grown[n], d.plans[n], fewer, d.startUp, true)
	}
	for n := len(d.plans) - 1; n >= 0; n-- {
		var more frontier
		if n+1 < len(d.plans) {
			more = d.plans[n+1]
		}
		d.plans[n] = join(d.plans[n], d.grown[n], more, 0, false)
	}
	for n := range d.plans {
		kept := d.plans[n][:0]
		for _, p := range d.plans[n] {
			p.seconds += int64(n) * s.seconds
			p.extra = max(0, p.extra+s.demand-int64(n)*s.seconds*d.speed)
			p.moved = false
			if p.extra <= s.slack {
				kept = kept.add(p)
			}
		}
		d.plans[n] = kept.thin()
	}
}

// best returns the cheapest plan.
func (d *clairvoyant) best() (best plan) {
	best.seconds = math.MaxInt64
	for _, f := range d.plans {
		if len(f) > 0 && f[0].seconds < best.seconds {
			best = f[0]
		}
	}
	return best
}
