package sizing

import (
	"math"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// load is what one partition brings, with what is remembered of it.
type load struct {
	Partition
	lease, owner string  // the owner is live; "" = nobody
	excluded     bool    // it asks for nothing
	rate         float64 // LSNs per second that arrived since its last measurement; -1 = unknown
	came, moved  int64   // LSNs that arrived since then, and by which its owner moved its position
	backlog      float64 // LSNs that have waited for longer than an owner that keeps up lets them
	waited       bool    // its oldest change has
}

// loads measures each partition, takes what arrived into the means, and returns what arrived since the
// last poll; nil if that cannot be told.
func (in Input) loads(m *Memory) ([]load, *float64) {
	loads := make([]load, len(in.Lag.Partitions))
	m.Partitions = nil // stays so without partitions, as if it came from a store
	if len(loads) > 0 {
		m.Partitions = make(map[string]Partition, len(loads))
	}
	usual, known, told := 0.0, 0.0, false
	for i := range loads {
		p, l := &in.Lag.Partitions[i], &loads[i]
		*l = load{Partition: in.Memory.Partitions[p.Lease], lease: p.Lease, rate: -1}
		l.excluded = p.Stuck || p.Wakes() == changefeed.StatusUncheckpointed
		if p.Live(in.Now, in.LeaseExpiration) {
			l.owner = p.Owner
		}
		if p.Lag != nil && !p.Carried() && p.SessionLSN != nil {
			l.read(p, in.Lag.Time)
		}
		if m.Partitions[p.Lease] = l.Partition; l.Known {
			usual, known = usual+l.Arrival, known+1
		}
		told = told || l.rate >= 0
	}
	arrived, latest := 0.0, 0.0 // what was measured; with what can be expected of the others
	for i := range loads {
		p, l := &in.Lag.Partitions[i], &loads[i]
		if !l.Known && known > 0 {
			l.Arrival = usual / known
		}
		if l.rate >= 0 {
			arrived, latest = arrived+l.rate, latest+l.rate
		} else {
			latest += l.Arrival
		}
		// An owner that keeps up with long batches leaves a change for up to two of them.
		keepsUp := patience.Seconds() + 2*l.Batch
		if l.waited = p.Lag != nil && p.Age != nil && float64(*p.Age) >= keepsUp; l.waited {
			l.backlog = max(0, float64(*p.Lag)-2*keepsUp*l.Arrival)
		}
	}
	if !told {
		return loads, nil
	}
	span := in.Lag.Time.Sub(m.Time)
	m.Short, m.Long = mean(m.Short, m.Known, latest, span, window), mean(m.Long, m.Known, latest, span, longMean)
	m.Latest, m.Known = latest, true
	return loads, &arrived
}

// read takes a measurement of the partition.
//
// Each move of a position reaches at least what was there at the poll before the last move, however
// long the batches are, if each of them takes all that waits. What stays below that was left by a
// full batch.
func (l *load) read(p *changefeed.Partition, now time.Time) {
	last := l.Partition
	span := now.Sub(last.Time)
	again := !last.Time.IsZero() && span > 0
	if again {
		l.came = max(0, *p.SessionLSN-last.Session)
		l.rate = float64(l.came) / span.Seconds()
		l.Arrival, l.Known = mean(last.Arrival, last.Known, l.rate, span, longMean), true
	}
	l.Time, l.Session, l.Owner = now, *p.SessionLSN, l.owner
	if p.CheckpointLSN == nil {
		return
	}
	l.Checkpoint = *p.CheckpointLSN
	if again && last.Checkpoint > 0 && l.owner == last.Owner {
		l.moved = max(0, l.Checkpoint-last.Checkpoint)
	}
	switch {
	case !p.Pending():
		l.Behind, l.Head, l.Waits, l.Batch = false, l.Session, time.Time{}, 0
	case again && l.Checkpoint > last.Checkpoint: // a batch is over; one that began and ended between two polls is short
		l.Behind, l.Head, l.Waits, l.Batch = l.Checkpoint < last.Head, last.Session, now, 0
		if last.Waits.Before(last.Time) && !last.Waits.IsZero() {
			l.Batch = now.Sub(last.Waits).Seconds()
		}
	case l.Checkpoint < last.Checkpoint: // it was set back
		l.Behind, l.Head, l.Waits = false, last.Session, now
	case last.Waits.IsZero():
		l.Waits = now
	}
}

// capacity measures what a replica can do, in LSNs per second. An owner that is behind shows all that
// it can do. What it does otherwise is a lower bound.
//
// The age of its changes alone does not tell that it is behind: its batches may be long. So a window
// counts in full only if a batch was full, or if the owners did not do about what arrived.
func (in Input) capacity(m *Memory, loads []load) float64 {
	now := make(map[string]Owner) // since the last poll
	left, done := make(map[string]bool), 0.0
	for i := range loads {
		l := &loads[i]
		if l.owner == "" {
			continue
		}
		o := now[l.owner]
		o.Leases, o.Done, o.Came, o.Behind = o.Leases+1, o.Done+l.moved, o.Came+l.came, o.Behind || l.Behind || l.waited
		if l.moved > 0 {
			o.Moves++
		}
		now[l.owner], done, left[l.owner] = o, done+float64(l.moved), left[l.owner] || l.Behind
	}
	if m.Owners = nil; len(now) > 0 { // stays so without owners, as if it came from a store
		m.Owners = make(map[string]Owner, len(now))
	}
	full, all, working := make(map[string]Owner), Owner{}, 0.0 // windows that are full; those of all that may be behind
	for name, o := range now {
		if o.Moves > 0 {
			working++
		}
		next, w := in.Memory.Owners[name].add(in.Lag.Time, o)
		if m.Owners[name] = next; w.Since.IsZero() {
			continue
		}
		if full[name] = w; w.Behind {
			all.Done, all.Came, all.Moves, all.Leases = all.Done+w.Done, all.Came+w.Came, all.Moves+w.Moves, all.Leases+w.Leases
		}
	}
	var exact []float64
	bound := 0.0
	for name, w := range full {
		rate := float64(w.Done) / in.Lag.Time.Sub(w.Since).Seconds()
		if w.Behind && (left[name] || all.differs()) {
			exact = append(exact, rate)
		} else {
			bound = max(bound, rate*(1-1/float64(w.Moves))) // it may hold one batch too many
		}
	}
	span := in.Lag.Time.Sub(m.Time)
	if !m.Time.IsZero() && span > 0 {
		m.Done = mean(m.Done, true, done/span.Seconds(), span, window)
		if in.Capacity == 0 && bound == 0 && working > 0 {
			bound = done / span.Seconds() / working // better than nothing, until a window is full
		}
	}
	return in.learn(m, exact, bound)
}

// add takes what an owner did since the last poll into its window. It returns the window that goes on
// and the one that is full, if it is: it begins and ends with a move, and holds either polls at which
// the owner was behind or none.
func (w Owner) add(now time.Time, o Owner) (next, full Owner) {
	begin := Owner{}
	if o.Moves > 0 {
		begin = Owner{Since: now, Behind: o.Behind, Leases: o.Leases}
	}
	if w.Since.IsZero() || w.Behind != o.Behind || w.Leases != o.Leases {
		return begin, Owner{}
	}
	w.Done, w.Came, w.Moves = w.Done+o.Done, w.Came+o.Came, w.Moves+o.Moves
	if o.Moves == 0 || now.Sub(w.Since) < window || w.Moves < 2*o.Leases {
		return w, Owner{}
	}
	return begin, w
}

// differs reports whether owners did more or less than what arrived, by more than chance and the
// batches at both ends of a window make.
func (w Owner) differs() bool {
	off := math.Abs(float64(w.Done - w.Came))
	return off > chance*math.Sqrt(float64(w.Done+w.Came)) && off > chance*float64(w.Done)*math.Sqrt(float64(w.Leases))/float64(w.Moves)
}

// learn takes the windows of this poll into the capacity.
func (in Input) learn(m *Memory, exact []float64, bound float64) float64 {
	capacity, seen := in.Capacity, 0.0
	slices.Sort(exact) // so that the sum is always the same
	for _, rate := range exact {
		seen += rate / float64(len(exact))
	}
	if len(exact) > 0 {
		if capacity += follow * (seen - capacity); !m.proven(in.Now) {
			capacity = seen
		}
		m.ProvenAt = in.Now
	}
	if in.Capacity == 0 {
		return max(capacity, bound)
	}
	return capacity + follow*max(0, bound-capacity)
}

// proven reports whether an owner was lately seen to do all that it can.
func (m *Memory) proven(now time.Time) bool {
	return !m.ProvenAt.IsZero() && now.Sub(m.ProvenAt) < provenFor
}

// mean takes a value into an exponential mean. The first one counts in full.
func mean(last float64, known bool, value float64, span, over time.Duration) float64 {
	if !known {
		return value
	}
	return last + (1-math.Exp(-max(0, span.Seconds())/over.Seconds()))*(value-last)
}
