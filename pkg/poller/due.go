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

// nearestSecond is the second nearest to a time. A Functions host fires timers up to some milliseconds
// before their slot (azure-webjobs-sdk-extensions, TimerListener.cs), so that both the start of a tick
// and the last poll count as that: slack on one of the two would poll a slot twice.
func nearestSecond(t time.Time) time.Time { return t.Round(time.Second) }

// due reports whether the processor, with a stored state, is to be polled by a tick that starts now. A
// last poll in the future is one of a clock that was ahead: nothing tells which slots it stands for, so
// the processor is due, rather than not before that time.
func (p Processor) due(s state.State, now time.Time) bool {
	schedule := p.schedule(s)
	if schedule == nil || s.AttemptedAt.IsZero() {
		return true
	}
	last, start := nearestSecond(s.AttemptedAt), nearestSecond(now)
	return last.After(start) || !schedule.Next(last).After(start)
}

// NextPoll returns when the processor, with a stored state, is polled for the first time after t:
// at the first tick at which its own schedule is due. ticks is the timer's schedule.
func (p Processor) NextPoll(ticks Schedule, s state.State, t time.Time) time.Time {
	own := p.schedule(s)
	t = nearestSecond(t)
	if own == nil {
		return ticks.Next(t)
	}
	return ticks.Next(own.Next(t).Add(-time.Nanosecond))
}
