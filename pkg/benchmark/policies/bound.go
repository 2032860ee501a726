package main

import (
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// credit is the unit in which capacity is counted, so that fractions of a transaction add up
// exactly: a millionth.
const credit = 1_000_000

func credits(rate float64) int64 { return int64(math.Round(rate * credit)) }

// boundSlot is the step of the clairvoyant, in seconds: as often as the fastest of the loops looks.
const boundSlot = 15

// boundName is the Scaler of the clairvoyant's results, which know only hours, times over the
// objectives and changes.
const boundName = "bound"

// Bound is a clairvoyant: the fewest replica-hours with which anybody could have kept the objectives
// wherever they can be kept at all. It is a lower bound of what a scaler of this model needs that
// keeps them as well, not a plan: a dynamic programme over slots of 15 seconds, whose state is the
// replicas and how much more is pending than in a full fleet.
//
// The full fleet has a replica for each partition, all the time. Nobody can have less pending than
// it has: a partition is worked on by one replica at a time. Wherever it keeps the objectives, so
// does the clairvoyant at the end of each slot; wherever even the full fleet breaks them, the
// clairvoyant may not be further behind than it is. So its time over the objectives is the full
// fleet's, which is what the result says, and it is judged by replica-hours alone.
//
// The clairvoyant knows all that will arrive, pays for replicas while they start up, and is bound to
// whole replicas of the given throughput. It is free of all else, which makes its hours too few
// rather than too many: leases move at once and any share of the work is anybody's, handlers have no
// batches and never wait for a poll delay, what arrives in a slot can be processed at any time of
// it, and an age is kept where as much is processed as is due, whichever changes that are.
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

// slot is what the full fleet leaves to the clairvoyant for some seconds.
type slot struct {
	seconds int64
	demand  int64 // what the full fleet processes, in credits
	slack   int64 // how much more may be pending at the end, in credits
}

// ideal is what becomes of the full fleet.
type ideal struct {
	slots            []slot
	overLag, overAge time.Duration
}

func fullFleet(t simulate.Trace, w simulate.Workers, o simulate.Objective) (i ideal) {
	n, speed, age := t.Partitions, credits(w.Throughput), int(min(o.Age/time.Second, math.MaxInt32))
	allowed := min(o.Lag, math.MaxInt64/credit) * credit
	pending, recent := make([]int64, n), make([]int64, n) // recent: what is not older than the objective
	var all, fresh int64                                  // their sums
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

// plan is one way to have come so far.
type plan struct {
	seconds int64 // replica-seconds paid
	extra   int64 // pending beyond the full fleet, in credits
	out, in int   // changes of the replicas
	moved   bool  // whether one of them is this slot's
}

// frontier are plans of which none is both dearer and further behind than another: the cheapest
// first, each the next less behind.
type frontier []plan

// add puts a plan that is no cheaper than the last one where it belongs.
func (f frontier) add(p plan) frontier {
	if last := len(f) - 1; last >= 0 && p.extra >= f[last].extra {
		return f
	} else if last >= 0 && p.seconds == f[last].seconds {
		f = f[:last]
	}
	return append(f, p)
}

// join makes one frontier, in the place of into, of stay and of from; each of from pays for a change
// of the replicas, to more (out) or to fewer.
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

// maxPlans bounds a frontier. Where it is longer, two neighbours become one that is as cheap as the
// one and as little behind as the other, which can only lower the bound.
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

// clairvoyant holds a frontier for each number of replicas.
type clairvoyant struct {
	speed   int64 // credits per second and replica
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

// slot has every plan choose its replicas for a slot, and go through it. More replicas cost their
// start-up, fewer nothing.
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

// best is the cheapest plan.
func (d *clairvoyant) best() (best plan) {
	best.seconds = math.MaxInt64
	for _, f := range d.plans {
		if len(f) > 0 && f[0].seconds < best.seconds {
			best = f[0]
		}
	}
	return best
}
