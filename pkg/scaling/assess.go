package scaling

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// assess prepares the decision: it takes over the memory, refines the lag and the status of each
// partition by earlier polls (docs/status.md), and measures the rates.
func (s *steps) assess() {
	s.Memory = s.Memory.until(s.Now)
	s.next = s.Memory
	s.next.Progress = make(map[string]Progress, len(s.Lag.Partitions))
	if s.Lag.Known() {
		s.next.Failures = 0
	}
	s.Lag.Partitions = slices.Clone(s.Lag.Partitions)
	s.rates()
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		// Before other statuses hide it: what wakes a processor does so, stalled or not.
		if p.Status.Wakes() {
			s.wake = changefeed.Worse(s.wake, p.Status)
		}
		if p.Status == changefeed.StatusUncheckpointed {
			s.uncheckpointed++
		}
		baseline := s.sinceOwned(p)
		progress := s.progress(p)
		progress.Baseline, progress.Flow = baseline, s.flows[i]
		s.refine(p, &progress)
		s.next.Progress[p.Lease] = progress
	}
	switch {
	case s.Lag.Bootstrap:
		s.wake = changefeed.StatusBootstrap
	case s.Lag.Error != "":
		s.next.Progress = s.Memory.Progress
	}
}

// sinceOwned measures a partition without a checkpoint whose processor starts from now: what its
// range has advanced since the first poll that saw its present owner, whose LSN it returns; nothing
// where nobody owns it (docs/lag.md, Leases without a continuation).
func (s *steps) sinceOwned(p *changefeed.Partition) (baseline *int64) {
	last := s.Memory.Progress[p.Lease]
	switch {
	case p.Lag == nil:
		return last.Baseline
	case p.Status != changefeed.StatusUncheckpointed || p.SessionLSN == nil:
		return nil
	}
	lag := int64(0)
	if s.live(p) {
		baseline = new(*p.SessionLSN)
		if last.Baseline != nil && last.Owner == p.Owner {
			baseline = last.Baseline
			lag = max(0, *p.SessionLSN-*baseline)
		}
	}
	p.Lag, p.Approximate = &lag, true
	return baseline
}

// refine gives a partition the status, and what belongs to it, that the reading alone could not
// tell.
func (s *steps) refine(p *changefeed.Partition, progress *Progress) {
	p.Rewound = progress.Rewound
	if p.Status == changefeed.StatusUnknown || !p.Pending() {
		return
	}
	progress.Stalled = progress.Stalled || s.stalled(progress)
	switch {
	case progress.Stalled && !s.quiet(progress.Quiet):
		p.Status = changefeed.StatusStalled
		p.Stall = &changefeed.Stall{Kind: s.stallKind(p, progress), Since: progress.Since.Time(), Owners: slices.Clone(progress.Owners)}
	case s.expiring(p):
		p.Status = changefeed.StatusExpiring
	case s.unclaimed(progress):
		p.Status = changefeed.Worse(p.Status, changefeed.StatusUnclaimed)
	}
}

// retention returns how long a change can be read; 0 for ever, or where nobody knows.
func (s *steps) retention() time.Duration {
	return cmp.Or(s.Policy.Retention, s.Lag.Retention)
}

// expiring reports whether the oldest pending change leaves its retention within a quarter of it.
func (s *steps) expiring(p *changefeed.Partition) bool {
	retention := s.retention()
	return retention > 0 && p.Age != nil && 4*float64(*p.Age) > 3*retention.Seconds()
}

// unclaimed reports whether nobody has come for stalledAfter, though replicas were asked for.
func (s *steps) unclaimed(progress *Progress) bool {
	current, _ := s.current()
	if current == 0 {
		return false
	}
	return s.quiet(progress.Quiet) && s.Now.Sub(s.Memory.Asked) >= s.Policy.StalledAfter
}

// quiet reports whether stalledAfter has passed since a moment; not where there is none.
func (s *steps) quiet(since Moment) bool {
	return s.Policy.StalledAfter > 0 && !since.IsZero() && MomentOf(s.Now).Sub(since) >= s.Policy.StalledAfter
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
