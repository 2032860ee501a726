package scaling

import (
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	// minCarried is the least time for which a reading may be carried and still count as known.
	minCarried = time.Minute
	// longUnknown is how long a partition is unknown until it counts as the mean of the others: one
	// that can never be read would otherwise refuse every scale-in.
	longUnknown = time.Hour
)

// measurement is what the steps see of a ProcessorLag.
type measurement struct {
	lag    changefeed.ProcessorLag // partitions that are unknown now have what still counts of them
	known  bool                    // at least one partition, or that there are no leases, was measured
	gaps   string                  // in one sentence, which partitions step 7 cannot count on; "" = none
	owners int                     // live ones

	wake           changefeed.Status // worst status that wakes the processor; "" = none
	uncheckpointed int               // partitions without a checkpoint

	partitions int // the cap of steps 1 and 10; 0 if no poll ever measured it
	remembered int // of partitions, for the next decision

	all     int64  // pending transactions
	pending int64  // of those, in partitions that ask for replicas
	age     *int64 // seconds since the oldest pending change in them was written; nil if nothing is pending
	lagging int    // of them, those with pending changes
	unknown int    // partitions that nothing is known of
	unsure  bool   // a partition was not measured, whether or not an earlier reading still counts

	excluded    int   // partitions that ask for no replica, by excludeStalled
	excludedLag int64 // pending transactions in them
}

// measure sums up the measurement. Here alone excludeStalled, step 5 of docs/decide.md, leaves
// partitions out: those that an earlier poll reported as stalled, and whose position has not moved
// since. More replicas do not help them; KEDA's excludePersistentLag is the same rule for Kafka.
func (in Input) measure() measurement {
	m := measurement{known: in.Lag.Known()}
	m.lag, m.gaps = in.fill()
	limitInherited(m.lag.Partitions, in.Policy.Threshold)
	m.unsure = m.gaps != "" || !in.Lag.Complete()
	if owners := in.Lag.LiveOwners(in.Now, in.Policy.Health.LeaseExpiration); owners != nil {
		m.owners = *owners
	}
	for i := range m.lag.Partitions {
		p := &m.lag.Partitions[i]
		wakes := p.Wakes()
		m.wake = changefeed.Worse(m.wake, wakes)
		if wakes == changefeed.StatusUncheckpointed {
			m.uncheckpointed++
		}
		p.Stuck = p.Stuck && in.Policy.ExcludeStalled
		switch {
		case p.Lag == nil:
			m.unknown += p.Count()
			continue
		case p.Stuck:
			m.excluded++
			m.excludedLag = changefeed.AddLag(m.excludedLag, *p.Lag)
			continue
		}
		m.pending = changefeed.AddLag(m.pending, *p.Lag)
		if p.Pending() {
			m.lagging++
		}
		if p.Age != nil && (m.age == nil || *p.Age > *m.age) {
			m.age = p.Age
		}
	}
	if in.Lag.Uncovered() { // as ProcessorLag.Lag has it
		m.wake, m.pending = changefeed.Worse(m.wake, changefeed.StatusUncovered), changefeed.AddLag(m.pending, 1)
	}
	if m.uncheckpointed > 0 {
		m.pending = max(1, m.pending)
	}
	if in.Lag.Bootstrap {
		m.wake, m.pending, m.lagging = changefeed.StatusBootstrap, 1, 1
	}
	if all := m.lag.Lag(); all != nil {
		m.all = *all
	}
	m.partitions, m.remembered = in.partitions(m)
	return m
}

// limitInherited keeps a split from asking for more than one replica per new lease. Leases that began at the
// position of one that was split each count what was pending before. The greatest of them counts in full,
// the others up to one changeFeedLagThreshold each.
func limitInherited(partitions []changefeed.Partition, threshold int64) {
	inherits := func(p *changefeed.Partition) bool { return p.Inherited && p.Lag != nil }
	most := -1
	for i := range partitions {
		if p := &partitions[i]; inherits(p) && (most < 0 || *p.Lag > *partitions[most].Lag) {
			most = i
		}
	}
	for i := range partitions {
		if p := &partitions[i]; i != most && inherits(p) {
			p.Lag = new(min(*p.Lag, threshold))
		}
	}
}

// partitions counts the partitions that cap the replicas. While anything is unknown there are no
// fewer than the last complete poll counted.
func (in Input) partitions(m measurement) (useful, remembered int) {
	n := in.Lag.PartitionCount()
	switch {
	case !m.known: // the leases may have been read, though no partition could be measured
		if n = max(n, in.Memory.Partitions); in.Memory.Partitions == 0 {
			return n, 0
		}
	case m.unsure:
		n = max(1, n, in.Memory.Partitions)
	default:
		n = max(1, n)
	}
	return n, n
}

// fill returns the measurement with what still counts of partitions that are unknown now: their last
// reading, if it is recent, or the mean of the others, if they have been unknown for an hour. It says
// in one sentence which partitions step 7 cannot count on, "" if there are none: those that nothing
// is known of, and those that were carried for longer than the scale-down window, since a scale-in
// would rest on nothing but old readings.
func (in Input) fill() (changefeed.ProcessorLag, string) {
	lag := in.Lag
	lag.Partitions = slices.Clone(lag.Partitions)
	longest := max(minCarried, in.Policy.Behavior.ScaleDown.StabilizationWindow)
	known, sum, unknown, old := int64(0), int64(0), 0, 0
	for i := range lag.Partitions {
		p := &lag.Partitions[i]
		switch {
		case p.Known() && p.Carried() && in.Now.Sub(p.Measured) > longest:
			old++
		case p.Known():
			known, sum = known+1, changefeed.AddLag(sum, *p.Lag)
		}
	}
	for i := range lag.Partitions {
		p := &lag.Partitions[i]
		switch e := p.Earlier; {
		case p.Known():
		case known > 0 && e != nil && e.Lag != nil:
			p.Lag = e.Lag
		case known > 0 && e != nil && in.Now.Sub(e.Since) >= longUnknown:
			p.Lag = new(sum / known)
		default:
			unknown++
		}
	}
	all := len(lag.Partitions)
	switch {
	case unknown > 0 && old > 0:
		return lag, fmt.Sprintf("%d of %d partitions are unknown, and %d were last read more than %s ago", unknown, all, old, longest)
	case unknown > 0:
		return lag, fmt.Sprintf("%d of %d partitions are unknown", unknown, all)
	case old > 0:
		return lag, fmt.Sprintf("%d of %d partitions were last read more than %s ago", old, all, longest)
	}
	return lag, ""
}
