package sizing

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// load is the work of one partition, with its memory.
type load struct {
	Partition
	of          *changefeed.Partition
	owner       string   // live; "" = none
	rate        *float64 // LSNs per second that arrived since the last measurement; nil = unknown
	came, moved int64    // LSNs since then: that arrived, and that the position moved
	backlog     float64  // LSNs that are older than an owner that keeps up would leave them
	waited      bool     // its oldest change is older than that
}

// loads measures each partition and updates the means of arrivals. It also returns LSNs that
// arrived per second since the last poll, over all partitions: those that were measured (nil if
// none was), and with the expected value of the others.
func (in Input) loads(m *Memory) (loads []load, arrived *float64, latest float64) {
	loads = make([]load, len(in.Lag.Partitions))
	m.Partitions = make(map[string]Partition, len(loads))
	usual, known := 0.0, 0.0
	for i := range loads {
		p, l := &in.Lag.Partitions[i], &loads[i]
		*l = load{Partition: in.Memory.Partitions[p.Lease], of: p}
		if p.Live(in.Now, in.LeaseExpiration) {
			l.owner = p.Owner
		}
		if p.Lag != nil && !p.Carried() && p.SessionLSN != nil {
			l.read(in.Lag.Time)
		}
		if m.Partitions[p.Lease] = l.Partition; l.Known {
			usual, known = usual+l.Arrival, known+1
		}
	}
	for i := range loads {
		l := &loads[i]
		if !l.Known && known > 0 {
			l.Arrival = usual / known
		}
		if l.rate == nil {
			latest += l.Arrival
		} else {
			latest += *l.rate
			arrived = new(*cmp.Or(arrived, new(0.0)) + *l.rate)
		}
		// With long batches, a change waits for up to two of them even if the owner keeps up.
		keepsUp := patience.Seconds() + 2*l.Batch
		if l.waited = l.of.Lag != nil && l.of.Age != nil && float64(*l.of.Age) >= keepsUp; l.waited {
			l.backlog = max(0, float64(*l.of.Lag)-2*keepsUp*l.Arrival)
		}
	}
	if arrived != nil {
		m.Short, m.Known = mean(m.Short, m.Known, latest, in.Lag.Time.Sub(m.Time), window), true
	}
	return loads, arrived, latest
}

// read updates the memory of the partition from a measurement.
//
// A batch takes every change that waits, up to its size. So a move of the position that stays below
// the head of the poll before the last move shows that a full batch left changes behind.
func (l *load) read(now time.Time) {
	p, last := l.of, l.Partition
	span := now.Sub(last.Time)
	again := !last.Time.IsZero() && span > 0
	if again {
		l.came = max(0, *p.SessionLSN-last.Session)
		l.rate = new(float64(l.came) / span.Seconds())
		l.Arrival, l.Known = mean(last.Arrival, last.Known, *l.rate, span, longMean), true
	}
	l.Time, l.Session = now, *p.SessionLSN
	if p.CheckpointLSN == nil {
		return
	}
	l.Checkpoint = *p.CheckpointLSN
	if again && last.Checkpoint > 0 {
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
	polled := make(map[string]Owner) // each owner's work since the last poll
	left, done, working := make(map[string]bool), 0.0, 0.0
	for i := range loads {
		l := &loads[i]
		if l.owner == "" {
			continue
		}
		o := polled[l.owner]
		o.Leases, o.Done, o.Came, o.Behind = o.Leases+1, o.Done+l.moved, o.Came+l.came, o.Behind || l.Behind || l.waited
		if l.moved > 0 {
			o.Moves++
		}
		polled[l.owner], done, left[l.owner] = o, done+float64(l.moved), left[l.owner] || l.Behind
	}
	m.Owners = make(map[string]Owner, len(polled))
	full, all := make(map[string]Owner), Owner{} // full windows; the sum of those that may be behind
	for name, o := range polled {
		if o.Moves > 0 {
			working++
		}
		next, w := in.Memory.Owners[name].add(in.Lag.Time, o)
		if m.Owners[name] = next; !w.Since.IsZero() {
			full[name] = w
		}
		if w.Behind {
			all.Done, all.Came, all.Moves, all.Leases = all.Done+w.Done, all.Came+w.Came, all.Moves+w.Moves, all.Leases+w.Leases
		}
	}
	seen, bound, proofs := 0.0, 0.0, 0.0
	for _, name := range slices.Sorted(maps.Keys(full)) { // so that the sum does not depend on the order of a map
		w := full[name]
		rate := float64(w.Done) / in.Lag.Time.Sub(w.Since).Seconds()
		if w.Behind && (left[name] || all.differs()) {
			seen, proofs = seen+rate, proofs+1
		} else {
			bound = max(bound, rate*(1-1/float64(w.Moves))) // the window may contain one batch too many
		}
	}
	if span := in.Lag.Time.Sub(m.Time); !m.Time.IsZero() && span > 0 {
		m.Done = mean(m.Done, true, done/span.Seconds(), span, window)
		if in.Capacity == 0 && bound == 0 && working > 0 {
			bound = done / span.Seconds() / working // until a window is full
		}
	}
	capacity := in.Capacity
	if proofs > 0 {
		if capacity += follow * (seen/proofs - capacity); in.Now.Sub(m.ProvenAt) >= provenFor {
			capacity = seen / proofs
		}
		m.ProvenAt = in.Now
	}
	if in.Capacity == 0 {
		return max(capacity, bound)
	}
	return capacity + follow*max(0, bound-capacity)
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
// batches at both ends of a window explain. One test of each owner would find chance too often.
func (w Owner) differs() bool {
	off := math.Abs(float64(w.Done - w.Came))
	return off > chance*math.Sqrt(float64(w.Done+w.Came)) && off > chance*float64(w.Done)*math.Sqrt(float64(w.Leases))/float64(w.Moves)
}

// mean updates an exponential mean. The first value counts in full.
func mean(last float64, known bool, value float64, span, over time.Duration) float64 {
	if !known {
		return value
	}
	return last + (1-math.Exp(-max(0, span.Seconds())/over.Seconds()))*(value-last)
}
