package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	maxStallOwners = 5                // owners that a Stall names at most, the latest
	rewoundShown   = time.Hour        // for which it is shown that a position went backwards
	earlierCounts  = 60 * time.Second // for which the last reading of an unknown partition still counts,
	earlierPolls   = 2                // or for so many polls, whichever is longer
	aheadPolls     = 3                // polls in a row that see a position ahead of the feed until it counts,
	aheadFor       = 60 * time.Second // and the time that they span at least
)

// Progress is what is remembered of a partition from when it was last measured.
//
// Somebody is at work on a partition if its lease has a live owner. A handler that throws hardly
// ever shows its owner, so a lease that was written to since the last poll while changes were
// pending counts as well.
type Progress struct {
	Position      string             `json:"position,omitempty"`      // the lease's continuation
	Time          time.Time          `json:"time,omitzero"`           // of the measurement
	SessionLSN    int64              `json:"sessionLSN,omitempty"`    // newest LSN
	CheckpointLSN int64              `json:"checkpointLSN,omitempty"` // LSN up to which changes are processed
	Baseline      *int64             `json:"baseline,omitempty"`      // newest LSN at the first poll that saw the present owner of a lease without a continuation; nil if there is none
	Lag           *int64             `json:"lag,omitempty"`           // pending transactions; nil in what earlier releases stored
	Pending       bool               `json:"pending,omitempty"`       // whether changes were pending
	Stalled       bool               `json:"stalled,omitempty"`       // whether it was reported as stalled at this position
	Owner         string             `json:"owner,omitempty"`         // of the lease
	LeaseTime     time.Time          `json:"leaseTime,omitzero"`      // when the lease was last written
	Since         time.Time          `json:"since,omitzero"`          // first poll that found changes pending and somebody at work at this position
	Polls         int                `json:"polls,omitempty"`         // polls that found that
	Touched       time.Time          `json:"touched,omitzero"`        // until when Held has been counted
	Held          time.Duration      `json:"held,omitempty"`          // for how long of the time in between somebody was at work
	HeldSince     time.Time          `json:"heldSince,omitzero"`      // since which of them the lease has had its present owner; zero if it has none
	Owners        []string           `json:"owners,omitempty"`        // that they found, at most the latest maxStallOwners, in the order in which they were last seen
	Quiet         time.Time          `json:"quiet,omitzero"`          // first of the latest polls in a row that found changes pending and nobody at work
	Rewound       *changefeed.Rewind `json:"rewound,omitempty"`       // the last time that the position went backwards, within an hour
	Ahead         AheadPosition      `json:"ahead,omitzero"`          // the position is ahead of the feed; else zero
	Unknown       int                `json:"unknown,omitempty"`       // polls in a row that could not measure it, the last ones
	UnknownSince  time.Time          `json:"unknownSince,omitzero"`   // the first of them
}

// progress returns the Progress of a partition at this poll. One that could not be measured keeps
// its last one.
func (in Input) progress(p *changefeed.Partition, last Progress) Progress {
	if p.Lag == nil {
		last = last.unmeasured(in.Now)
		if last.Unknown++; last.Unknown == 1 {
			last.UnknownSince = in.Now
		}
		return last
	}
	var next Progress
	if last.Pending && p.Pending() && last.Position == p.Position {
		next = last
	}
	written := !next.LeaseTime.IsZero() && !next.LeaseTime.Equal(p.LeaseTime)
	next.Position, next.Lag, next.Pending, next.Owner, next.LeaseTime = p.Position, p.Lag, p.Pending(), p.Owner, p.LeaseTime
	next.Rewound, next.Unknown, next.UnknownSince = in.rewound(p, last), 0, time.Time{}
	next.Time, next.SessionLSN, next.CheckpointLSN = last.Time, last.SessionLSN, last.CheckpointLSN
	if !p.Carried() {
		next.Time = in.Lag.Time
		next.SessionLSN, next.CheckpointLSN = *cmp.Or(p.SessionLSN, new(int64)), *cmp.Or(p.CheckpointLSN, new(int64))
	}
	switch {
	case !next.Pending:
	case written || p.Live(in.Now, in.Policy.LeaseExpiration):
		in.hold(&next, last)
	case next.Quiet.IsZero():
		next.Quiet = in.Now
	}
	return next
}

// unmeasured returns the Progress after a poll that could not measure the partition. The time since the poll
// before does not count as Held: the account may refuse the owner as well.
func (p Progress) unmeasured(now time.Time) Progress {
	if !p.Touched.IsZero() {
		p.Touched = now
	}
	return p
}

// hold completes the Progress of a partition with changes pending that somebody is at work on.
func (in Input) hold(next *Progress, last Progress) {
	if next.Since.IsZero() {
		next.Since, next.Touched = in.Now, in.Now
	}
	held := in.Now.Sub(next.Touched)
	if !next.Quiet.IsZero() {
		// The lease was held for some of the quiet time, at most for as long as it takes to expire.
		held = min(held, in.Policy.LeaseExpiration)
	}
	// The lease tells as well until when it was held, so that a clock that went ahead makes no
	// stall.
	renewed := min(held, max(0, next.LeaseTime.Sub(last.LeaseTime)))
	next.Held += min(held, renewed+in.Policy.LeaseExpiration)
	next.Polls, next.Touched, next.Quiet = next.Polls+1, in.Now, time.Time{}
	if next.Owner == "" {
		next.HeldSince = time.Time{}
		return
	}
	if next.HeldSince.IsZero() || last.Owner != next.Owner {
		next.HeldSince = in.Now
	}
	earlier := slices.DeleteFunc(slices.Clone(next.Owners), func(o string) bool { return o == next.Owner })
	next.Owners = append(earlier[max(0, len(earlier)+1-maxStallOwners):], next.Owner)
}

// rewound returns when the position of a partition last went backwards, within an hour: the
// checkpoint is below the one before, or there is none any more.
func (in Input) rewound(p *changefeed.Partition, last Progress) *changefeed.Rewind {
	if !p.Carried() && last.CheckpointLSN > 0 {
		switch {
		case p.CheckpointLSN != nil && *p.CheckpointLSN < last.CheckpointLSN:
			return &changefeed.Rewind{From: last.CheckpointLSN, To: *p.CheckpointLSN, Time: in.Now}
		case p.CheckpointLSN == nil && p.Position == "":
			return &changefeed.Rewind{From: last.CheckpointLSN, Time: in.Now}
		}
	}
	return last.Rewound
}

// earlier returns what is known of a partition that is unknown now.
func (p *Progress) earlier(now time.Time) *changefeed.EarlierMeasurement {
	e := &changefeed.EarlierMeasurement{Since: p.UnknownSince}
	if !p.Time.IsZero() && (p.Unknown <= earlierPolls || now.Sub(p.Time) <= earlierCounts) {
		e.Lag = p.Lag
	}
	return e
}

// AheadPosition is a position that the feed has not reached yet, as polls in a row saw it.
type AheadPosition struct {
	Position int64     `json:"position"` // LSN of the checkpoint at the first of them
	Since    time.Time `json:"since"`    // the first of them
	Polls    int       `json:"polls"`
}

// ahead returns what is remembered of a position that is ahead of the feed; zero for any other. If it is so for
// certain, the lag becomes unknown. A late replica of the service reaches the position of the first poll in the
// meantime, and the polls are counted anew (docs/lag.md, Positions that the feed has not reached).
func (in Input) ahead(p *changefeed.Partition, seen AheadPosition) AheadPosition {
	switch {
	case p.Lag == nil, p.SessionLSN == nil: // it was not read, or its range is being split
		return seen
	case p.Carried():
	case !p.Beyond():
		return AheadPosition{}
	case seen.Polls == 0 || *p.SessionLSN >= seen.Position:
		seen = AheadPosition{Position: *p.CheckpointLSN, Since: in.Now, Polls: 1}
	default:
		seen.Polls = min(aheadPolls, seen.Polls+1)
	}
	if seen.Polls >= aheadPolls && in.Now.Sub(seen.Since) >= aheadFor {
		p.Lag, p.Age, p.Status = nil, nil, changefeed.StatusAhead
		p.Ahead = &changefeed.AheadPosition{Position: *p.CheckpointLSN, Feed: *p.SessionLSN}
		p.Error = fmt.Sprintf("the lease stands at %d, and the newest change of its range is %d: the position is from another account, region or container, "+
			"and what is written up to it is skipped", p.Ahead.Position, p.Ahead.Feed)
	}
	return seen
}
