// Package health turns a measurement and earlier ones into what only several polls together can
// tell: whether a partition is stalled, expiring, unclaimed or rewound, and what a partition
// without a checkpoint has pending. The rules are in docs/status.md and docs/lag.md.
//
// It stands between the estimator, which reads, and package scaling, which decides. It is pure: it
// does no I/O, reads no clock, and knows nothing of replicas beyond whether any are asked for.
// Start with [Assess].
//
// The package is internal to the program: its API may change in any release.
package health

import (
	"maps"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Policy says when a partition counts as what. Its fields are those of the processors file
// (docs/configure.md).
type Policy struct {
	StalledAfter    time.Duration // without progress, while pending and owned: it is stalled; 0 = never
	StalledPolls    int           // that have to see it so, the first one included
	LeaseExpiration time.Duration // an owner is live while its lease was renewed within this time
	Retention       time.Duration // how long a change can be read; 0 = what was measured with the lag
}

// Input is everything that an assessment depends on.
type Input struct {
	Now    time.Time
	Lag    changefeed.ProcessorLag // as measured
	Policy Policy
	Asked  time.Time // since when decisions have asked for replicas; zero = they do not
	Memory Memory    // of the last assessment; nil for the first
}

// Assess returns the measurement with the lag and the status of each partition as earlier polls
// refine them, and the memory for the next assessment. The Input is not changed.
func Assess(in Input) (changefeed.ProcessorLag, Memory) {
	if in.Policy.Retention > 0 {
		in.Lag.Retention = in.Policy.Retention
	}
	lag := in.Lag
	lag.Partitions = slices.Clone(lag.Partitions)
	if lag.Error != "" { // nothing was measured, so that nothing is forgotten
		memory := maps.Clone(in.Memory)
		for lease, p := range memory {
			memory[lease] = p.unmeasured(in.Now)
		}
		return lag, memory
	}
	next := make(Memory, len(lag.Partitions))
	for i := range lag.Partitions {
		p := &lag.Partitions[i]
		last := in.Memory[p.Lease]
		if r := last.Rewound; r != nil && in.Now.Sub(r.Time) >= rewoundShown {
			last.Rewound = nil
		}
		baseline := in.sinceOwned(p, last) // which changes the lag that progress sees
		progress := in.progress(p, last)
		progress.Baseline = baseline
		in.refine(p, last, &progress)
		progress.Ahead = in.ahead(p, last.Ahead)
		next[p.Lease] = progress
	}
	return lag, next
}

// sinceOwned measures a partition without a checkpoint whose processor starts from now: its lag is
// what its range has advanced since the first poll that saw its present owner, or 0 without an
// owner. It returns the LSN at that poll (docs/lag.md, Leases without a continuation).
func (in Input) sinceOwned(p *changefeed.Partition, last Progress) (baseline *int64) {
	switch {
	case p.Lag == nil:
		return last.Baseline
	case p.Status != changefeed.StatusUncheckpointed || p.SessionLSN == nil:
		return nil
	}
	p.Lag, p.Approximate = new(int64), true
	if !p.Live(in.Now, in.Policy.LeaseExpiration) {
		return nil
	}
	if last.Baseline == nil || last.Owner != p.Owner {
		return new(*p.SessionLSN)
	}
	*p.Lag = max(0, *p.SessionLSN-*last.Baseline)
	return last.Baseline
}

// refine gives a partition the status that its reading alone cannot tell.
func (in Input) refine(p *changefeed.Partition, last Progress, progress *Progress) {
	p.Rewound = progress.Rewound
	if p.Lag == nil {
		p.Earlier, p.Stuck = progress.earlier(in.Now), progress.Stalled
	}
	if p.Status == changefeed.StatusUnknown || !p.Pending() {
		return
	}
	// Somebody has been at work for stalledAfter, and the position has not moved.
	stalled := in.Policy.StalledAfter > 0 && progress.Held >= in.Policy.StalledAfter && progress.Polls >= in.Policy.StalledPolls
	progress.Stalled = progress.Stalled || stalled
	p.Stuck = progress.Stalled && last.Stalled
	reading, retention := p.Status, in.Lag.Retention
	switch {
	case progress.Stalled && !in.quiet(progress.Quiet):
		p.Status = changefeed.StatusStalled
		p.Stall = &changefeed.Stall{Kind: changefeed.StallFlapping, Since: progress.Since, Owners: slices.Clone(progress.Owners)}
		// An owner that has had the lease for less may have replaced those of a handler that throws.
		if p.Owner != "" && !progress.HeldSince.IsZero() && in.Now.Sub(progress.HeldSince) >= in.Policy.StalledAfter/2 {
			p.Stall.Kind = changefeed.StallHung
		}
	case retention > 0 && p.Age != nil && 4*float64(*p.Age) > 3*retention.Seconds():
		p.Status = changefeed.StatusExpiring
	case in.quiet(progress.Quiet) && in.quiet(in.Asked):
		p.Status = changefeed.Worse(p.Status, changefeed.StatusUnclaimed)
	}
	if p.Status != reading && reading.Wakes() {
		p.Reading = reading
	}
}

// quiet reports whether stalledAfter has passed since a time; not if there is none.
func (in Input) quiet(since time.Time) bool {
	return in.Policy.StalledAfter > 0 && !since.IsZero() && in.Now.Sub(since) >= in.Policy.StalledAfter
}

// Memory is what is remembered of each lease, by lease token. A lease that is gone is forgotten.
type Memory map[string]Progress

// Until returns the memory with each time that is after now, by a clock that was ahead, set to now:
// it would otherwise hold a status back for as long as the clock was ahead.
func (m Memory) Until(now time.Time) Memory {
	m = maps.Clone(m)
	for lease, p := range m {
		times := []*time.Time{&p.Time, &p.Since, &p.Touched, &p.HeldSince, &p.Quiet, &p.UnknownSince, &p.Ahead.Since}
		if p.Rewound != nil {
			p.Rewound = new(*p.Rewound)
			times = append(times, &p.Rewound.Time)
		}
		for _, t := range times {
			if t.After(now) {
				*t = now
			}
		}
		m[lease] = p
	}
	return m
}
