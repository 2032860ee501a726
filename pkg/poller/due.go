package poller

import (
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// Schedule returns the next time that something is due, strictly after t. crontab.Schedule is one.
type Schedule interface {
	Next(t time.Time) time.Time
}

// schedule returns the schedule that applies to the processor; nil means every tick.
func (p Processor) schedule(idle bool) Schedule {
	if p.IdleSchedule != nil && idle {
		return p.IdleSchedule
	}
	return p.Schedule
}

// idle reports whether the processor is fully measured, inactive, and at its minReplicaCount or below.
func (p Processor) idle(replicas *int, active, complete bool) bool {
	return replicas != nil && !active && *replicas <= p.Policy.MinReplicas && complete
}

// nearestSecond is the second nearest to a time. A Functions host fires timers some milliseconds
// before their slot (azure-webjobs-sdk-extensions, TimerListener.cs). Both the start of a tick and
// the last poll are rounded: slack on one of the two would poll a slot twice.
func nearestSecond(t time.Time) time.Time { return t.Round(time.Second) }

// due reports whether a tick that starts now polls the processor. complete is whether the last poll
// was. A last poll in the future was told by a clock that was ahead, and stands for no slot: the
// processor is due.
func (p Processor) due(s *state.State, complete bool, now time.Time) bool {
	schedule := p.schedule(p.idle(s.Memory.Replicas, s.Memory.Active, complete))
	if schedule == nil || s.AttemptedAt.IsZero() {
		return true
	}
	last, start := nearestSecond(s.AttemptedAt), nearestSecond(now)
	return last.After(start) || !schedule.Next(last).After(start)
}

// NextPoll returns the first tick after t at which the schedule of the processor is due, given its
// stored State. ticks is the timer's schedule.
func (p Processor) NextPoll(ticks Schedule, s state.State, t time.Time) time.Time {
	return next(ticks, p.schedule(p.idle(s.Memory.Replicas, s.Memory.Active, s.Lag.Complete())), t)
}

// next returns the first tick after t at which a schedule is due.
func next(ticks, own Schedule, t time.Time) time.Time {
	t = nearestSecond(t)
	if own == nil {
		return ticks.Next(t)
	}
	return ticks.Next(own.Next(t).Add(-time.Nanosecond))
}
