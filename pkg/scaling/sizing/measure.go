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
	of      *changefeed.Partition
	owner   string   // live; "" = none
	rate    *float64 // LSNs per second that arrived since the last measurement; nil = unknown
	moved   int64    // LSNs that the position moved since then
	backlog float64  // LSNs that are older than an owner that keeps up would leave them
	waited  bool     // its oldest change is older than that
	late    bool     // and older by half an interval of polls, to which batches are measured
}

// loads measures each partition and updates the means of arrivals. It also returns LSNs that
// arrived per second over all partitions: since the last poll in those that were measured (nil if
// none was), and of late, with the expected value of the others.
func (in Input) loads(m *Memory) (loads []load, arrived *float64, latest float64) {
	loads = make([]load, len(in.Lag.Partitions))
	m.Partitions = make(map[string]Partition, len(loads))
	usual, known, polled := 0.0, 0.0, 0.0
	span := in.Lag.Time.Sub(m.Time).Seconds()
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
		rate := *cmp.Or(l.rate, &l.Arrival)
		if l.rate != nil {
			arrived = new(*cmp.Or(arrived, new(0.0)) + rate)
		}
		polled += rate
		if l.of.Lag != nil && l.of.Age != nil {
			age := float64(*l.of.Age)
			// With long batches, a change waits for up to two of them even if the owner keeps up.
			keepsUp := patience.Seconds() + 2*l.Batch
			if l.waited, l.late = age >= keepsUp, age >= keepsUp+span/2; l.waited {
				l.backlog = max(0, float64(*l.of.Lag)-2*keepsUp*l.Arrival)
			}
			// What is pending arrived within its age, which may be much less than the time between two polls.
			if l.rate != nil && age >= feedPollDelay.Seconds() && age < span {
				rate = max(rate, float64(*l.of.Lag)/age)
			}
		}
		latest += rate
	}
	if arrived != nil {
		m.Short, m.Known = mean(m.Short, m.Known, polled, in.Lag.Time.Sub(m.Time), window), true
	}
	return loads, arrived, latest
}

// read updates the memory of the partition from a measurement.
func (l *load) read(now time.Time) {
	p, last := l.of, l.Partition
	span := now.Sub(last.Time)
	again := !last.Time.IsZero() && span > 0
	if again {
		l.rate = new(float64(max(0, *p.SessionLSN-last.Session)) / span.Seconds())
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
		l.Waits, l.Batch = time.Time{}, 0
	case again && l.Checkpoint > last.Checkpoint:
		// A batch has ended. If it also began since the last poll, its length is not known, and the
		// earlier ones count.
		l.Waits, l.Batch = now, batchKept*last.Batch
		if last.Waits.Before(last.Time) && !last.Waits.IsZero() {
			l.Batch = max(l.Batch, now.Sub(last.Waits).Seconds())
		}
	case l.Checkpoint < last.Checkpoint, last.Waits.IsZero(): // the position was set back, or changes have come
		l.Waits = now
	}
}

// capacity returns how many LSNs per second a replica can process. If an owner was behind all the
// time, its window shows that rate, with an error of one batch: the capacity moves half of the way
// to it, and at least into the range of the error. Any other window is a lower bound.
func (in Input) capacity(m *Memory, loads []load) float64 {
	now, span := in.Lag.Time, in.Lag.Time.Sub(m.Time)
	polled, done, working := make(map[string]Owner), 0.0, 0.0 // each owner's work since the last poll
	for i := range loads {
		l := &loads[i]
		if l.owner == "" {
			continue
		}
		o := polled[l.owner]
		o.Leases, o.Done, o.Behind, o.late = o.Leases+1, o.Done+l.moved, o.Behind || l.waited, o.late || l.late
		o.Pending += *cmp.Or(l.of.Lag, new(int64))
		if l.moved > 0 {
			o.Moves++
		}
		polled[l.owner], done = o, done+float64(l.moved)
	}
	m.Owners = make(map[string]Owner, len(polled))
	least, seen, most, proofs, bound := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, name := range slices.Sorted(maps.Keys(polled)) { // so that the sum does not depend on the order of a map
		o := polled[name]
		if o.Moves > 0 {
			working++
		}
		next, w := in.Memory.Owners[name].add(now, o)
		if m.Owners[name] = next; w.Since.IsZero() {
			continue
		}
		seconds := now.Sub(w.Since).Seconds()
		rate := float64(w.Done) / seconds
		batch := rate / float64(w.Moves)
		lowest := rate - min(batch, float64(w.Pending)/seconds) // part of the first batch was done before the window
		m.Best = max(m.Best, lowest)
		if w.Behind && o.late {
			least, seen, most, proofs = least+lowest, seen+rate, most+rate+batch, proofs+1
		} else {
			bound = max(bound, lowest)
		}
	}
	if !m.Time.IsZero() && span > 0 {
		m.Done = mean(m.Done, true, done/span.Seconds(), span, window)
		if in.Capacity == 0 && bound == 0 && working > 0 {
			bound = done / span.Seconds() / working // until a window is full
		}
	}
	capacity := max(in.Capacity, bound)
	if proofs == 0 {
		m.Best = min(m.Best, mean(m.Best, true, capacity, span, provenFor))
		return mean(capacity, true, max(capacity, m.Best), span, regain)
	}
	if in.Capacity == 0 {
		capacity = seen / proofs
	}
	if !in.Now.Before(m.ScaleOut.Until) { // otherwise something else limits all replicas
		m.ProvenAt = in.Now
	}
	return max(least/proofs, min(most/proofs, (capacity+seen/proofs)/2))
}

// add adds an owner's work since the last poll to its window. It returns the open window and, if it
// is now full, the closed one. A full window begins and ends with a move of a position, and has one
// for each lease.
func (w Owner) add(now time.Time, o Owner) (next, full Owner) {
	if o.Moves > 0 {
		next = Owner{Since: now, Pending: o.Pending, Behind: o.Behind, Leases: o.Leases}
	}
	if w.Since.IsZero() || w.Leases != o.Leases {
		return next, Owner{}
	}
	w.Done, w.Moves, w.Behind = w.Done+o.Done, w.Moves+o.Moves, w.Behind && o.Behind
	if o.Moves == 0 || now.Sub(w.Since) < window || w.Moves < o.Leases {
		return w, Owner{}
	}
	return next, w
}

// mean updates an exponential mean. The first value counts in full.
func mean(last float64, known bool, value float64, span, over time.Duration) float64 {
	if !known {
		return value
	}
	return last + (1-math.Exp(-max(0, span.Seconds())/over.Seconds()))*(value-last)
}
