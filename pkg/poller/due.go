package poller

import (
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Schedule returns the next time that something is due, strictly after t. config.Schedule is one.
type Schedule interface {
	Next(t time.Time) time.Time
}

// schedule returns the schedule that applies to the processor with a stored state; nil means every
// tick.
func (p Processor) schedule(s state.State) Schedule {
	if p.IdleSchedule != nil && idle(s, p.Policy) {
		return p.IdleSchedule
	}
	return p.Schedule
}

// idle reports whether a processor is fully measured, inactive, and at its minReplicaCount or
// below.
func idle(s state.State, p scaling.Policy) bool {
	return s.Decision != nil && !s.Decision.Active && s.Decision.Replicas <= p.MinReplicas && s.Lag.Complete()
}

// due reports whether the processor, with a stored state, is to be polled by a tick that starts
// now.
func (p Processor) due(s state.State, now time.Time) bool {
	schedule := p.schedule(s)
	return schedule == nil || s.AttemptedAt.IsZero() || !schedule.Next(s.AttemptedAt).After(now)
}

// NextPoll returns when the processor, with a stored state, is polled for the first time after t:
// at the first tick at which its own schedule is due. ticks is the timer's schedule.
func (p Processor) NextPoll(ticks Schedule, s state.State, t time.Time) time.Time {
	own := p.schedule(s)
	if own == nil {
		return ticks.Next(t)
	}
	return ticks.Next(own.Next(t).Add(-time.Nanosecond))
}
