package poller

import (
	"context"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Group is processors that run in one deployment. Each is measured, decided and shown; the decision of
// the group is published in place of theirs (docs/decide.md, step 11).
type Group struct {
	Name        string // unique among the groups and the processors
	Policy      scaling.GroupPolicy
	SignalQueue string            // holds a message for each replica that is wanted; "" = none
	Target      map[string]string // labels that every scale event of the group carries
}

// membersOf returns the members of a group, in the order of the configuration.
func membersOf(g Group, polls []*poll) (members []*poll) {
	for _, d := range polls {
		if d.processor.Group == g.Name {
			members = append(members, d)
		}
	}
	return members
}

// decideGroup decides for a group, once the tick knows what every member asks for, and commits and
// publishes that. Where no member is due, neither is the group.
func (t *tick) decideGroup(ctx context.Context, g Group, d *subject, members []*poll) {
	t.store <- struct{}{}
	t.read(ctx, d)
	<-t.store
	for _, m := range members {
		<-m.decided
		d.due = d.due || m.due
		d.dropped = d.dropped || m.dropped
		if m.elsewhere && t.mode.Shard == nil && !t.mode.All {
			return // and there the group is decided
		}
	}
	if t.mode.Shard != nil && d.err == nil && !t.polledSince(d.last) {
		d.due = true // also where an earlier delivery of the shard came to the members alone
	}
	switch {
	case d.dropped:
	case !d.due:
		if d.err == nil && !t.mode.All {
			t.rest(ctx, d)
		}
	case d.err != nil:
		d.state = &state.State{Processor: d.name, AttemptedAt: t.start, Members: seen(members)}
	default:
		t.decideFor(ctx, g, d, members)
		t.keep(ctx, d)
	}
}

func (t *tick) decideFor(ctx context.Context, g Group, d *subject, members []*poll) {
	asking, paused := make([]scaling.Member, len(members)), true
	d.state = t.following(d)
	for i, m := range members {
		s := m.current()
		asking[i] = scaling.Member{
			Processor: m.name, Replicas: s.Memory.Replicas, Active: s.Memory.Active,
			Held: !s.Lag.Known(), Paused: m.processor.Policy.Paused && !m.unread,
		}
		paused = paused && m.processor.Policy.Paused
		if s.PolledAt.After(d.state.PolledAt) {
			d.state.PolledAt = s.PolledAt
		}
	}
	d.state.Members, d.state.Paused = seen(members), paused
	d.state.Decision, d.state.Memory = scaling.Group(t.start, asking, g.Policy, d.last.Memory)
	t.followGroup(d, members)
	t.emit(d)
}

// current returns the State of this tick, or, of a processor that is not due, the stored one; nil where it
// is gone.
func (d *poll) current() *state.State {
	if d.due {
		return d.state
	}
	return d.last
}

// seen returns what the members of a group ask for.
func seen(members []*poll) []state.Member {
	all := make([]state.Member, len(members))
	for i, m := range members {
		s := m.current()
		all[i] = state.Member{Processor: m.name, Replicas: s.Memory.Replicas, Active: s.Memory.Active, Totals: s.Totals()}
	}
	return all
}

// NextGroup returns when a group, with a stored state, is decided for the first time after t: with the
// first of its members, which are Processors of the configuration. ticks is the timer's schedule.
func NextGroup(ticks Schedule, members []Processor, s state.State, t time.Time) time.Time {
	var first time.Time
	for _, p := range members {
		at := next(ticks, p.schedule(p.idleIn(s)), t)
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// idleIn is idle of a member in the State of its group.
func (p Processor) idleIn(group state.State) bool {
	for _, m := range group.Members {
		if m.Processor == p.Name {
			return m.Replicas != nil && !m.Active && *m.Replicas <= p.Policy.MinReplicas && m.Complete
		}
	}
	return false
}
