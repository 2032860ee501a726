package scaling

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	// minCarried is the shortest time for which a carried reading counts as known.
	minCarried = time.Minute
	// longUnknown is how long a partition is unknown before it counts as the mean of the others.
	// Without this, a partition that can never be read would refuse every scale-in.
	longUnknown = time.Hour
)

// measurement is a ProcessorLag with the sums that the steps use.
type measurement struct {
	lag    changefeed.ProcessorLag // unknown partitions have their last reading, if that still counts
	known  bool                    // at least one partition was measured, or the lease container is known to have no lease
	gaps   string                  // the partitions without a usable reading, in words, for step 7; "" = there are none
	owners int                     // live owners of leases

	wake           changefeed.Status // the worst status that wakes the processor; "" = none
	uncheckpointed int               // partitions without a checkpoint

	partitions int // the cap of steps 1 and 10; while anything is unknown, at least as many as at the last complete poll

	all     int64  // pending transactions
	pending int64  // of these, in partitions that ask for replicas
	age     *int64 // age of the oldest change in pending, in seconds; nil if nothing is pending
	lagging int    // partitions with changes in pending
	unknown int    // partitions without a usable reading
	unsure  bool   // a partition was not measured at this poll, even if an earlier reading still counts

	excluded    []changefeed.Partition // ask for no replica, because of excludeStalled
	excludedLag int64                  // pending transactions in them
}

// measure sums up the measurement. It also applies excludeStalled, part of step 5 of
// docs/decide.md: it leaves out partitions that an earlier poll reported as stalled and whose
// position has not moved since, because more replicas do not help them. KEDA's excludePersistentLag
// is the same rule for Kafka.
func (in Input) measure() measurement {
	m := measurement{known: in.Lag.Known()}
	m.lag, m.gaps = in.fill()
	limitInherited(m.lag.Partitions, in.Policy.Threshold)
	m.unsure = m.gaps != "" || !in.Lag.Complete()
	m.owners = *cmp.Or(in.Lag.LiveOwners(in.Now, in.Policy.Health.LeaseExpiration, false), new(int))
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
			m.excluded = append(m.excluded, *p)
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
	if in.Lag.Uncovered() { // as ProcessorLag.Lag does
		m.wake, m.pending = changefeed.Worse(m.wake, changefeed.StatusUncovered), changefeed.AddLag(m.pending, 1)
	}
	if m.uncheckpointed > 0 {
		m.pending = max(1, m.pending)
	}
	if in.Lag.Bootstrap {
		m.wake, m.pending, m.lagging = changefeed.StatusBootstrap, 1, 1
	}
	m.all = *cmp.Or(m.lag.Lag(), new(int64))
	m.partitions = in.Lag.PartitionCount()
	if m.known {
		m.partitions = max(1, m.partitions)
	}
	if m.unsure {
		m.partitions = max(m.partitions, in.Memory.Partitions)
	}
	return m
}

// limitInherited keeps a split from asking for more than one replica for each new lease. New leases
// begin at the position of the old one, so each counts the changes that were pending before the
// split. The greatest lag counts in full, the others up to one changeFeedLagThreshold each.
func limitInherited(partitions []changefeed.Partition, threshold int64) {
	var most *changefeed.Partition
	for i := range partitions {
		if p := &partitions[i]; p.Inherited && p.Lag != nil && (most == nil || *p.Lag > *most.Lag) {
			most = p
		}
	}
	for i := range partitions {
		if p := &partitions[i]; p.Inherited && p.Lag != nil && p != most {
			p.Lag = new(min(*p.Lag, threshold))
		}
	}
}

// fill replaces unknown partitions by their last reading, if it is recent, or by the mean of the
// others, if they have been unknown for an hour. It also returns a sentence that names the
// partitions that step 7 cannot use, "" if there are none: the unknown ones, and those carried for
// longer than the scale-down window, since a scale-in would then rest only on old readings.
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
	switch {
	case unknown > 0:
		return lag, fmt.Sprintf("%d of %d partitions are unknown", unknown, len(lag.Partitions))
	case old > 0:
		return lag, fmt.Sprintf("%d of %d partitions were last read more than %s ago", old, len(lag.Partitions), longest)
	}
	return lag, ""
}
