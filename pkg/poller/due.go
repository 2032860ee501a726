package poller

import (
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// Schedule returns the next time that something is due, strictly after t. crontab.Schedule is one.
type Schedule interface {
	Next(t time.Time) time.Time
}

// schedule returns the schedule that applies to the processor; nil means every tick. It is idle if it is fully
// measured, inactive, and at its minReplicaCount or below.
func (p Processor) schedule(replicas *int, active, complete bool) Schedule {
	if p.IdleSchedule != nil && replicas != nil && *replicas <= p.Policy.MinReplicas && !active && complete {
		return p.IdleSchedule
	}
	return p.Schedule
}

// follows returns the schedule that applies after a stored State, which need not have its leases.
func (p Processor) follows(s *state.State) Schedule {
	return p.schedule(s.Memory.Replicas, s.Memory.Active, s.Recorded != nil && s.Recorded.Complete)
}

// nearestSecond is the second nearest to a time. A Functions host fires timers some milliseconds
// before their slot (azure-webjobs-sdk-extensions, TimerListener.cs). Both the start of a tick and
// the last poll are rounded: slack on one of the two would poll a slot twice.
func nearestSecond(t time.Time) time.Time { return t.Round(time.Second) }

// due reports whether a tick that starts now polls the processor. If its last poll is in the future, a clock
// was ahead then, and the processor is due.
func (p Processor) due(s *state.State, now time.Time) bool {
	schedule := p.follows(s)
	if schedule == nil || s.AttemptedAt.IsZero() {
		return true
	}
	last, start := nearestSecond(s.AttemptedAt), nearestSecond(now)
	return last.After(start) || !schedule.Next(last).After(start)
}

// NextPoll returns the first tick after t at which the schedule of the processor is due, given its
// stored State. ticks is the timer's schedule.
func (p Processor) NextPoll(ticks Schedule, s state.State, t time.Time) time.Time {
	return next(ticks, p.follows(&s), t)
}

// next returns the first tick after t at which a schedule is due.
func next(ticks, own Schedule, t time.Time) time.Time {
	t = nearestSecond(t)
	if own == nil {
		return ticks.Next(t)
	}
	return ticks.Next(own.Next(t).Add(-time.Nanosecond))
}
