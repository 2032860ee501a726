package sizing

import (
	"math"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// load is the work of one partition, with its memory.
type load struct {
	Partition
	lease, owner string  // a live owner; "" = none
	excluded     bool    // it asks for no replica
	rate         float64 // LSNs per second that arrived since the last measurement; -1 = unknown
	came, moved  int64   // LSNs since then: that arrived, and that the position moved
	backlog      float64 // LSNs that are older than an owner that keeps up would leave them
	waited       bool    // its oldest change is older than that
}

// loads measures each partition and updates the means of arrivals. It returns LSNs that arrived per
// second since the last poll, over all partitions; nil if that is unknown.
func (in Input) loads(m *Memory) ([]load, *float64) {
	loads := make([]load, len(in.Lag.Partitions))
	m.Partitions = nil // nil, as it is after it was stored as JSON
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
	arrived, latest := 0.0, 0.0 // measured; with the expected value of the partitions that were not
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
		// With long batches, a change waits for up to two of them even if the owner keeps up.
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

// read updates the memory of the partition from a measurement.
//
// A batch takes every change that waits, up to its size. So a move of the position that stays below
// the head of the poll before the last move shows that a full batch left changes behind.
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
	case again && l.Checkpoint > last.Checkpoint:
		// A batch has ended. If it also began since the last poll, it counts as short.
		l.Behind, l.Head, l.Waits, l.Batch = l.Checkpoint < last.Head, last.Session, now, 0
		if last.Waits.Before(last.Time) && !last.Waits.IsZero() {
			l.Batch = now.Sub(last.Waits).Seconds()
		}
	case l.Checkpoint < last.Checkpoint: // the position was set back
		l.Behind, l.Head, l.Waits = false, last.Session, now
	case last.Waits.IsZero():
		l.Waits = now
	}
}

// capacity returns how many LSNs per second a replica can process. An owner that is behind works at
// its full rate. Otherwise its rate is a lower bound.
//
// A high age alone does not show that an owner is behind: its batches may be long. So a window
// counts in full only if a batch was full, or if the owners processed clearly more or less than
// arrived.
func (in Input) capacity(m *Memory, loads []load) float64 {
	now := make(map[string]Owner) // each owner's work since the last poll
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
	if m.Owners = nil; len(now) > 0 { // nil, as it is after it was stored as JSON
		m.Owners = make(map[string]Owner, len(now))
	}
	// full windows; the sum of those that may be behind; owners that work
	full, all, working := make(map[string]Owner), Owner{}, 0.0
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
			// the window may contain one batch too many
			bound = max(bound, rate*(1-1/float64(w.Moves)))
		}
	}
	span := in.Lag.Time.Sub(m.Time)
	if !m.Time.IsZero() && span > 0 {
		m.Done = mean(m.Done, true, done/span.Seconds(), span, window)
		if in.Capacity == 0 && bound == 0 && working > 0 {
			bound = done / span.Seconds() / working // until a window is full
		}
	}
	return in.learn(m, exact, bound)
}

// add adds an owner's work since the last poll to its window. It returns the open window and, if it
// is now full, the closed one. A full window begins and ends with a move of a position, and its
// owner was behind at all of its polls or at none.
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

// differs reports whether owners processed more or less than arrived, by more than chance and the
// batches at both ends of a window explain.
func (w Owner) differs() bool {
	off := math.Abs(float64(w.Done - w.Came))
	return off > chance*math.Sqrt(float64(w.Done+w.Came)) && off > chance*float64(w.Done)*math.Sqrt(float64(w.Leases))/float64(w.Moves)
}

// learn updates the capacity from the windows that this poll closed.
func (in Input) learn(m *Memory, exact []float64, bound float64) float64 {
	capacity, seen := in.Capacity, 0.0
	slices.Sort(exact) // so that the sum does not depend on the order of a map
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

// proven reports whether an owner was recently seen to work at its full rate.
func (m *Memory) proven(now time.Time) bool {
	return !m.ProvenAt.IsZero() && now.Sub(m.ProvenAt) < provenFor
}

// mean updates an exponential mean. The first value counts in full.
func mean(last float64, known bool, value float64, span, over time.Duration) float64 {
	if !known {
		return value
	}
	return last + (1-math.Exp(-max(0, span.Seconds())/over.Seconds()))*(value-last)
}
