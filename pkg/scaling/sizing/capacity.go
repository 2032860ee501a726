package sizing

import (
	"slices"
	"time"
)

const (
	window    = 45 * time.Second // in which an owner is measured, at least: several batches of most handlers
	moves     = 2                // of each position in a window, at least: a position moves once per batch
	longest   = 5 * time.Minute  // window, after which it begins anew
	faster    = 0.5              // weight of a window that shows more than was known: too few replicas cost more than one too many
	slower    = 0.3              // weight of one that shows less
	provenFor = time.Hour        // for which a capacity counts after an owner was seen to do all that it can
	bestFor   = 24 * time.Hour   // for which the best capacity is remembered: the period of most loads
	recovery  = time.Hour        // over which a capacity that is not proven returns to the best one
)

// owner is what one poll finds of a live owner.
type owner struct {
	leases int
	busy   bool
	done   int64 // LSNs since the last poll
	moves  int   // positions that moved since then
}

// capacity measures what a replica can do, and returns it in LSNs per second. What an owner does
// while it has a backlog is all that it can do. What it does otherwise is a lower bound.
func (in Input) capacity(m *Memory, loads []load) float64 {
	owners := make(map[string]*owner)
	done := 0.0
	for _, l := range loads {
		if l.owner == "" {
			continue
		}
		o := owners[l.owner]
		if o == nil {
			o = &owner{}
			owners[l.owner] = o
		}
		o.leases++
		o.busy = o.busy || l.waited
		o.done += l.moved
		if l.moved > 0 {
			o.moves++
		}
		done += float64(l.moved)
	}
	if span := in.Lag.Time.Sub(m.LookedAt); !m.LookedAt.IsZero() && span > 0 {
		m.Done = mean(m.Done, true, done/span.Seconds(), span, time.Minute)
	}
	m.LookedAt = in.Lag.Time
	var exact []float64
	bound := 0.0
	m.Windows = nil // stays so without owners, as if it came from a store
	if len(owners) > 0 {
		m.Windows = make(map[string]Window, len(owners))
	}
	working := 0
	for name, o := range owners {
		if o.moves > 0 {
			working++
		}
		next, full := in.Memory.Windows[name].add(in.Lag.Time, o)
		m.Windows[name] = next
		if full.Since.IsZero() {
			continue
		}
		rate := float64(full.Done) / in.Lag.Time.Sub(full.Since).Seconds()
		if full.Busy {
			exact = append(exact, rate)
		} else {
			bound = max(bound, rate*(1-1/float64(full.Moves))) // the window may hold one batch too many
		}
	}
	if span := in.Lag.Time.Sub(in.Memory.LookedAt); in.Capacity == 0 && bound == 0 && !in.Memory.LookedAt.IsZero() && working > 0 && span > 0 {
		bound = done / span.Seconds() / float64(working) // better than nothing, until a window is full
	}
	return in.learn(m, exact, bound)
}

// add takes a poll into the window of an owner, and returns the window that goes on and, once it is
// long enough, the one that is full. A window begins and ends with a move, and holds either busy polls
// alone or idle ones alone.
func (w Window) add(now time.Time, o *owner) (next, full Window) {
	begin := Window{}
	if o.moves > 0 {
		begin = Window{Since: now, Busy: o.busy, Leases: o.leases}
	}
	span := now.Sub(w.Since)
	if w.Since.IsZero() || w.Busy != o.busy || w.Leases != o.leases || span > longest {
		return begin, Window{}
	}
	w.Done += o.done
	w.Moves += o.moves
	if o.moves == 0 || span < window || w.Moves < moves*o.leases {
		return w, Window{}
	}
	return begin, w
}

// learn takes the windows of this poll into the capacity.
func (in Input) learn(m *Memory, exact []float64, bound float64) float64 {
	capacity := in.Capacity
	if len(exact) > 0 {
		slices.Sort(exact) // so that the sum is always the same
		sum := 0.0
		for _, rate := range exact {
			sum += rate
		}
		seen := sum / float64(len(exact))
		weight := slower
		if seen > capacity {
			weight = faster
		}
		if !m.proven(in.Now) {
			weight = 1
		}
		capacity += weight * (seen - capacity)
		m.ProvenAt = in.Now
	}
	if capacity == 0 {
		capacity = bound
	} else if bound > capacity {
		capacity += faster * (bound - capacity)
	}
	if capacity >= m.Best || in.Now.Sub(m.BestAt) > bestFor {
		m.Best, m.BestAt = capacity, in.Now
	}
	if !m.proven(in.Now) && capacity > 0 {
		capacity = mean(capacity, true, m.Best, in.Lag.Time.Sub(in.Memory.LookedAt), recovery)
	}
	return capacity
}

// proven reports whether an owner was lately seen to do all that it can.
func (m *Memory) proven(now time.Time) bool {
	return !m.ProvenAt.IsZero() && now.Sub(m.ProvenAt) < provenFor
}
