package poller

import (
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Schedule says when something is due next: strictly after t.
type Schedule interface {
	Next(t time.Time) time.Time
}

// schedule is the one that counts after the processor was left in a state; nil is every tick.
func (p Processor) schedule(s state.State) Schedule {
	if p.IdleSchedule != nil && idle(s, p.Policy) {
		return p.IdleSchedule
	}
	return p.Schedule
}

// idle reports whether a processor has nothing to do and nothing to become: all of it is known, it is
// not active, and it is scaled in as far as it goes.
func idle(s state.State, p scaling.Policy) bool {
	return s.Decision != nil && !s.Decision.Active && s.Decision.Replicas <= p.MinReplicas && s.Lag.Complete()
}

// due reports whether a processor in a state is to be polled by a tick that starts now.
func (p Processor) due(s state.State, now time.Time) bool {
	schedule := p.schedule(s)
	return schedule == nil || s.AttemptedAt.IsZero() || !schedule.Next(s.AttemptedAt).After(now)
}

// NextPoll is when a processor in a state is polled for the first time after t: at the first tick at
// which its own schedule is due.
func (p Processor) NextPoll(ticks Schedule, s state.State, t time.Time) time.Time {
	own := p.schedule(s)
	if own == nil {
		return ticks.Next(t)
	}
	return ticks.Next(own.Next(t).Add(-time.Nanosecond))
}
