package sizing

import (
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	shortMean   = 45 * time.Second // of arrivals: three polls, so that one busy poll is no trend
	longMean    = 4 * time.Minute  // of arrivals: long enough to even out bursts of a minute
	jump        = 1.3              // ratio to the long mean from which the latest arrivals count alone
	jumpLeast   = 1.0              // LSNs per second that a jump has beside that: a few changes are no trend
	behindAfter = 15 * time.Second // age of the oldest change at which its owner is behind: three times the SDKs' feed poll delay
)

// load is what one partition brings.
type load struct {
	lease    string
	owner    string  // live; "" = nobody
	arrival  float64 // LSNs per second, long mean; the mean of the others if it was never measured
	backlog  float64 // LSNs that have waited for longer than an owner that keeps up takes
	moved    int64   // LSNs by which its position moved since the last poll, with the same owner
	waited   bool    // its oldest change is older than its owner leaves one if it keeps up
	excluded bool    // it asks for nothing
}

// arrivals measures each partition, takes what arrived into the means, and returns what arrived
// since the last poll; nil if that cannot be told.
func (in Input) arrivals(m *Memory) ([]load, *float64) {
	loads := make([]load, len(in.Lag.Partitions))
	m.Flows = nil // stays so without partitions, as if it came from a store
	if len(loads) > 0 {
		m.Flows = make(map[string]Flow, len(loads))
	}
	var arrived *float64
	usual, known := 0.0, 0 // long means, and partitions that have one
	for i := range in.Lag.Partitions {
		p := &in.Lag.Partitions[i]
		l, f := &loads[i], in.Memory.Flows[p.Lease]
		l.lease, l.excluded = p.Lease, p.Stuck || p.Wakes() == changefeed.StatusUncheckpointed
		if p.Live(in.Now, in.LeaseExpiration) {
			l.owner = p.Owner
		}
		if p.Lag != nil && !p.Carried() && p.SessionLSN != nil {
			rate, told := 0.0, false
			if f, rate, told, l.moved = f.measure(p, l.owner, in.Lag.Time); told && arrived == nil {
				arrived = new(float64)
			}
			if told {
				*arrived += rate
			}
		}
		if m.Flows[p.Lease] = f; f.Known {
			usual, known = usual+f.Arrival, known+1
		}
	}
	latest := 0.0
	if arrived != nil {
		latest = *arrived
	}
	for i := range loads {
		l, f := &loads[i], m.Flows[loads[i].lease]
		if l.arrival = f.Arrival; !f.Known && known > 0 {
			l.arrival = usual / float64(known)
		}
		if !f.Time.Equal(in.Lag.Time) {
			latest += l.arrival // it was not measured at this poll
		}
		// An owner that keeps up with long batches leaves a change for up to two of them.
		p, keepsUp := &in.Lag.Partitions[i], behindAfter.Seconds()+2*f.Batch
		if l.waited = p.Age != nil && float64(*p.Age) >= keepsUp; p.Lag != nil && l.waited {
			l.backlog = max(0, float64(*p.Lag)-2*keepsUp*l.arrival)
		}
	}
	if arrived != nil {
		span := in.Lag.Time.Sub(m.Time)
		m.Short = mean(m.Short, m.Known, latest, span, shortMean)
		m.Long = mean(m.Long, m.Known, latest, span, longMean)
		m.Latest, m.Known, m.Time = latest, true, in.Lag.Time
	}
	return loads, arrived
}

// measure takes a reading into the flow of a partition. It returns what arrived per second since the
// last one, if there was one, and by how much its owner has moved its position.
func (f Flow) measure(p *changefeed.Partition, owner string, now time.Time) (next Flow, rate float64, told bool, moved int64) {
	next = f
	if span := now.Sub(f.Time); !f.Time.IsZero() && span > 0 {
		rate, told = float64(max(0, *p.SessionLSN-f.Session))/span.Seconds(), true
		next.Arrival, next.Known = mean(f.Arrival, f.Known, rate, span, longMean), true
	}
	next.Session, next.Time, next.Owner = *p.SessionLSN, now, owner
	if p.CheckpointLSN == nil {
		return next, rate, told, 0
	}
	next.Checkpoint = *p.CheckpointLSN
	stood := next.Checkpoint <= f.Checkpoint
	if f.Checkpoint > 0 && owner == f.Owner {
		moved = max(0, next.Checkpoint-f.Checkpoint)
	}
	if moved > 0 { // a batch is over; one that began and ended between two polls is short
		if next.Batch = 0; f.Pending.Before(f.Time) && !f.Pending.IsZero() {
			next.Batch = now.Sub(f.Pending).Seconds()
		}
	}
	switch {
	case !p.Pending():
		next.Pending = time.Time{}
	case !stood || f.Pending.IsZero():
		next.Pending = now
	}
	return next, rate, told, moved
}

// mean takes a value into an exponential mean. The first one counts in full.
func mean(last float64, known bool, value float64, span, over time.Duration) float64 {
	if !known {
		return value
	}
	return last + (1-math.Exp(-max(0, span.Seconds())/over.Seconds()))*(value-last)
}
