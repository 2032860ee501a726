package scaling

import (
	"slices"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// assess prepares the decision: it takes over the memory, refines the status of each partition by
// earlier polls (docs/lag.md, Statuses and what to do), and measures the rates.
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
		progress.Stalled = progress.Stalled || p.Status == changefeed.StatusStalled
		s.next.Progress[p.Lease] = progress
	}
	if s.Lag.Error != "" {
		s.next.Progress = s.Memory.Progress
	}
}

// status refines the status that the reading alone gave a partition.
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

// live reports whether a partition has an owner that renewed the lease within LeaseExpiration.
func (s *steps) live(p *changefeed.Partition) bool {
	return p.Owner != "" && s.Now.Sub(p.LeaseTime) <= s.Policy.LeaseExpiration
}

// liveOwners counts the distinct owners of leases that were renewed within LeaseExpiration.
func (s *steps) liveOwners() int {
	owners := make(map[string]bool)
	for i := range s.Lag.Partitions {
		if p := &s.Lag.Partitions[i]; s.live(p) {
			owners[p.Owner] = true
		}
	}
	return len(owners)
}

// progress returns the Progress of a partition at this poll. One that could not be measured keeps
// its last one.
func (s *steps) progress(p *changefeed.Partition) Progress {
	last := s.Memory.Progress[p.Lease]
	if p.Lag == nil {
		return last
	}
	next := Progress{Position: p.Position, Time: s.Lag.Time, Pending: p.Pending(), Owner: p.Owner}
	if p.SessionLSN != nil {
		next.SessionLSN = *p.SessionLSN
	}
	if p.CheckpointLSN != nil {
		next.CheckpointLSN = *p.CheckpointLSN
	}
	unmoved := next.Pending && last.Position == next.Position && !last.Since.IsZero()
	switch {
	case unmoved && s.live(p):
		next.Since, next.Polls = last.Since, last.Polls+1
	case unmoved && last.Stalled:
		// A scale-in due to excludeStalled may have stopped the owner of this very partition. Its
		// next owner meets the same change.
		next.Since, next.Polls = last.Since, last.Polls
	case next.Pending && s.live(p):
		next.Since, next.Polls = s.Now, 1
	}
	next.Stalled = unmoved && last.Stalled
	return next
}
