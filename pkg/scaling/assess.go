package scaling

import (
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// assess prepares the decision: it carries the memory over, refines the status
// of each partition by what came before, and measures the rates.
func (s *steps) assess() {
	s.next = s.Memory
	s.next.Progress = make(map[string]Progress, len(s.Lag.Partitions))
	if s.Lag.Known() {
		s.next.Failures = 0
	}
	s.Lag.Partitions = slices.Clone(s.Lag.Partitions)
	s.rates()
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		progress := s.progress(p)
		p.Status = s.status(p, progress)
		progress.Stalled = p.Status == changefeed.StatusStalled || p.Lag == nil && progress.Stalled
		s.next.Progress[p.Lease] = progress
	}
	if s.Lag.Error != "" {
		s.next.Progress = s.Memory.Progress
	}
}

// status refines what the reading alone said of a partition.
func (s *steps) status(p *changefeed.Partition, progress Progress) changefeed.Status {
	if p.Status != changefeed.StatusLagging {
		return p.Status
	}
	switch {
	case !s.live(p):
		return changefeed.StatusUnclaimed
	case s.Policy.StalledAfter > 0 && s.Now.Sub(progress.Since) >= s.Policy.StalledAfter && progress.Polls >= s.Policy.StalledPolls:
		return changefeed.StatusStalled
	default:
		return changefeed.StatusLagging
	}
}

// live tells whether a partition's owner renewed its lease lately.
func (s *steps) live(p *changefeed.Partition) bool {
	return p.Owner != "" && s.Now.Sub(p.LeaseTime) <= s.Policy.LeaseExpiration
}

// liveOwners counts the distinct owners of leases that were renewed lately.
func (s *steps) liveOwners() int {
	owners := make(map[string]bool)
	for i := range s.Lag.Partitions {
		if p := &s.Lag.Partitions[i]; s.live(p) {
			owners[p.Owner] = true
		}
	}
	return len(owners)
}

// progress notes how far a partition has come. One that could not be measured
// keeps what was known.
func (s *steps) progress(p *changefeed.Partition) Progress {
	last := s.Memory.Progress[p.Lease]
	if p.Lag == nil {
		return last
	}
	next := Progress{Position: p.Position, Time: s.Lag.Time, Pending: p.Pending()}
	if p.SessionLSN != nil {
		next.SessionLSN = *p.SessionLSN
	}
	if p.CheckpointLSN != nil {
		next.CheckpointLSN = *p.CheckpointLSN
	}
	if next.Pending && s.live(p) {
		next.Since, next.Polls = s.Now, 1
		if last.Position == next.Position && !last.Since.IsZero() {
			next.Since, next.Polls = last.Since, last.Polls+1
		}
	}
	return next
}

// rates measures, from this sample and the last: how fast changes arrive, and
// how fast one live owner works them off. Only partitions in which changes were
// pending tell how fast that is, and only their owners count.
//
// An owner whose checkpoint has not yet reached what was the newest change at
// the last poll was never without work: what it did is what it can do. One that
// was, can do at least as much as it did; taken for all it can do, it would ask
// for a replica more at every poll, however few there is work for.
func (s *steps) rates() {
	var arrived float64
	var owners []ownerRate // in the order of their leases: a map's would change the last digit of a sum
	index := make(map[string]int)
	s.next.Arrival = nil
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		last, seen := s.Memory.Progress[p.Lease]
		span := s.Lag.Time.Sub(last.Time)
		if !seen || p.Lag == nil || p.SessionLSN == nil || last.SessionLSN == 0 || span <= 0 {
			continue
		}
		arrived += perSecond(*p.SessionLSN-last.SessionLSN, span)
		s.next.Arrival = &arrived
		if last.Pending && p.Pending() && p.CheckpointLSN != nil && last.CheckpointLSN > 0 && s.live(p) {
			at, known := index[p.Owner]
			if !known {
				at, owners = len(owners), append(owners, ownerRate{})
				index[p.Owner] = at
			}
			owner := &owners[at]
			owner.drained += perSecond(*p.CheckpointLSN-last.CheckpointLSN, span)
			owner.busy = owner.busy || *p.CheckpointLSN <= last.SessionLSN
		}
	}
	var all, busy ownerRate
	busyOwners := 0
	for _, owner := range owners {
		all.drained += owner.drained
		if owner.busy {
			busy.drained += owner.drained
			busyOwners++
		}
	}
	switch {
	case busy.drained > 0:
		s.next.DrainPerReplica = busy.drained / float64(busyOwners)
	case all.drained > 0:
		s.next.DrainPerReplica = max(s.next.DrainPerReplica, all.drained/float64(len(owners)))
	}
}

// ownerRate is what one live owner did between two polls.
type ownerRate struct {
	drained float64 // LSNs per second
	busy    bool    // it had work all the while
}

func perSecond(lsns int64, span time.Duration) float64 {
	return float64(max(0, lsns)) / span.Seconds()
}
