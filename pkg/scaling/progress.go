package scaling

import (
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// maxStallOwners bounds the owners that a Stall names.
const maxStallOwners = 5

// rewoundShown is how long it is shown that a position went backwards.
const rewoundShown = time.Hour

// Progress is the state of a partition when it was last measured.
//
// Somebody is at work on a partition where its lease has a live owner or, since an owner is hardly
// ever seen where a handler throws, where the lease was written to since the last poll while
// changes were pending.
type Progress struct {
	Position      string              `json:"position,omitempty"`      // the lease's continuation
	Time          Moment              `json:"time,omitzero"`           // when the LSNs were measured
	SessionLSN    int64               `json:"sessionLSN,omitempty"`    // newest LSN
	CheckpointLSN int64               `json:"checkpointLSN,omitempty"` // LSN up to which changes are processed
	Baseline      *int64              `json:"baseline,omitempty"`      // newest LSN at the first poll that saw the present owner of a lease without a continuation; nil where there is none
	Pending       bool                `json:"pending,omitempty"`       // whether changes were pending
	Stalled       bool                `json:"stalled,omitempty"`       // whether it was reported as stalled at this position
	Owner         string              `json:"owner,omitempty"`         // of the lease
	LeaseTime     Moment              `json:"leaseTime,omitzero"`      // when the lease was last written
	Since         Moment              `json:"since,omitzero"`          // first poll that found changes pending and somebody at work at this position
	Polls         int                 `json:"polls,omitempty"`         // polls that found that
	Touched       Moment              `json:"touched,omitzero"`        // the last of them
	Held          time.Duration       `json:"held,omitempty"`          // for how long of the time in between somebody was at work
	HeldSince     Moment              `json:"heldSince,omitzero"`      // since which of them the lease has had its present owner; zero where it has none
	Owners        []string            `json:"owners,omitempty"`        // that they found, in the order of their names
	Quiet         Moment              `json:"quiet,omitzero"`          // first of the latest polls in a row that found changes pending and nobody at work
	Flow          Flow                `json:"flow,omitzero"`           // of changes, over several polls
	Rewound       *changefeed.Rewound `json:"rewound,omitempty"`       // the last time that the position went backwards, within an hour
}

// progress returns the Progress of a partition at this poll. One that could not be measured keeps
// its last one.
func (s *steps) progress(p *changefeed.Partition) Progress {
	last := s.Memory.Progress[p.Lease]
	if p.Lag == nil {
		last.Rewound = s.withinTheHour(last.Rewound)
		return last
	}
	next := Progress{
		Position: p.Position, Time: MomentOf(s.Lag.Time), Pending: p.Pending(), Owner: p.Owner, LeaseTime: MomentOf(p.LeaseTime),
		Rewound: s.rewound(p, last),
	}
	if p.SessionLSN != nil {
		next.SessionLSN = *p.SessionLSN
	}
	if p.CheckpointLSN != nil {
		next.CheckpointLSN = *p.CheckpointLSN
	}
	if p.Carried() {
		// Of a reading of an earlier tick the rates know already.
		next.Time, next.SessionLSN, next.CheckpointLSN = last.Time, last.SessionLSN, last.CheckpointLSN
	}
	if next.Pending {
		s.standing(p, last, &next)
	}
	return next
}

// standing completes the Progress of a partition with changes pending by what it was at the same
// position before.
func (s *steps) standing(p *changefeed.Partition, last Progress, next *Progress) {
	now, stands := MomentOf(s.Now), last.Pending && last.Position == next.Position
	if stands {
		next.Since, next.Polls, next.Touched, next.Held, next.HeldSince = last.Since, last.Polls, last.Touched, last.Held, last.HeldSince
		next.Owners, next.Quiet, next.Stalled = last.Owners, last.Quiet, last.Stalled
	}
	written := stands && !last.LeaseTime.IsZero() && last.LeaseTime != next.LeaseTime
	if !s.live(p) && !written {
		if next.Quiet.IsZero() {
			next.Quiet = now
		}
		return
	}
	if next.Since.IsZero() {
		next.Since, next.Touched = now, now
	}
	held := now.Sub(next.Touched)
	if !next.Quiet.IsZero() {
		// Nobody knows for how long of the quiet time the lease was held: not for longer than it
		// takes to expire.
		held = min(held, s.Policy.LeaseExpiration)
	}
	// The lease tells, too, until when somebody held it: a clock that went ahead makes no stall.
	renewed := min(held, max(0, next.LeaseTime.Sub(last.LeaseTime)))
	held = min(held, renewed+s.Policy.LeaseExpiration)
	next.Polls, next.Touched, next.Held, next.Quiet = next.Polls+1, now, next.Held+held, 0
	switch {
	case p.Owner == "":
		next.HeldSince = 0
	case next.HeldSince.IsZero() || last.Owner != p.Owner:
		next.HeldSince = now
	}
	if at, known := slices.BinarySearch(next.Owners, p.Owner); p.Owner != "" && !known && len(next.Owners) < maxStallOwners {
		next.Owners = slices.Insert(slices.Clone(next.Owners), at, p.Owner)
	}
}

// stalled reports whether somebody has been at work on a partition for stalledAfter, and its
// position has not moved.
func (s *steps) stalled(progress *Progress) bool {
	return s.Policy.StalledAfter > 0 && progress.Held >= s.Policy.StalledAfter && progress.Polls >= s.Policy.StalledPolls
}

// stallKind tells a handler that does not return, whose owner keeps the lease, from one that
// throws. An owner that lost the lease in the first half of stalledAfter, such as one that was
// replaced by the present one, says nothing about that.
func (s *steps) stallKind(p *changefeed.Partition, progress *Progress) changefeed.StallKind {
	if p.Owner != "" && !progress.HeldSince.IsZero() && MomentOf(s.Now).Sub(progress.HeldSince) >= s.Policy.StalledAfter/2 {
		return changefeed.StallHung
	}
	return changefeed.StallFlapping
}

// rewound returns when the position of a partition last went backwards, within an hour: the
// checkpoint is below the one before, or there is none any more.
func (s *steps) rewound(p *changefeed.Partition, last Progress) *changefeed.Rewound {
	if !p.Carried() && last.CheckpointLSN > 0 {
		switch {
		case p.CheckpointLSN != nil && *p.CheckpointLSN < last.CheckpointLSN:
			return &changefeed.Rewound{From: last.CheckpointLSN, To: *p.CheckpointLSN, Time: s.Now}
		case p.CheckpointLSN == nil && p.Position == "":
			return &changefeed.Rewound{From: last.CheckpointLSN, Time: s.Now}
		}
	}
	return s.withinTheHour(last.Rewound)
}

// withinTheHour returns what is still to be shown, else nil.
func (s *steps) withinTheHour(r *changefeed.Rewound) *changefeed.Rewound {
	if r == nil || s.Now.Sub(r.Time) >= rewoundShown {
		return nil
	}
	return r
}
