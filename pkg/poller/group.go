package poller

import (
	"context"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Group is processors that run in one deployment. Each is measured, decided and shown; the decision
// of the group is published in place of theirs (docs/decide.md, step 11).
type Group struct {
	Name        string // unique among the groups and the processors
	Policy      scaling.GroupPolicy
	SignalQueue string            // holds a message for each replica that is wanted; "" = none
	Target      map[string]string // labels that every scale event of the group carries
}

// decideGroup decides for a group when the tick knows what every member asks for, and commits and
// publishes that. If no member is polled, neither is the group.
func (t *tick) decideGroup(ctx context.Context, g Group, d *subject, members []*subject) {
	t.store.do(func() { t.load(ctx, d) })
	stage := resting
	if t.scope.All {
		stage = elsewhere
	}
	for _, m := range members {
		<-m.told
		switch m.asks.stage {
		case elsewhere:
			if t.scope.Shard == nil && !t.scope.All {
				return // another process decides for the group
			}
		case dropped:
			d.stage = dropped
			return
		case polling:
			stage = polling
		}
	}
	if t.scope.Shard != nil && d.err == nil && !t.scope.polledSince(d.last) {
		stage = polling // also where an earlier delivery of the shard came to the members alone
	}
	switch d.stage = stage; {
	case stage == resting:
		t.rest(ctx, d)
	case stage != polling:
	case d.err != nil:
		d.stage, d.next = unread, &state.State{Processor: d.name, AttemptedAt: t.scope.now, Members: memberStates(members)}
	default:
		t.decideFor(g, d, members)
		t.commit(ctx, d)
		t.deliver(ctx, d)
	}
}

func (t *tick) decideFor(g Group, d *subject, members []*subject) {
	asking, paused := make([]scaling.Member, len(members)), true
	d.stage, d.next = decided, t.following(d)
	for i, m := range members {
		asking[i] = scaling.Member{
			Processor: m.name, Replicas: m.asks.Replicas, Active: m.asks.Active,
			Held: !m.asks.known, Paused: m.processor.Policy.Paused && !m.asks.unread,
		}
		paused = paused && m.processor.Policy.Paused
		if m.asks.polledAt.After(d.next.PolledAt) {
			d.next.PolledAt = m.asks.polledAt
		}
	}
	d.next.Members, d.next.Paused = memberStates(members), paused
	d.next.Decision, d.next.Memory = scaling.Group(t.scope.now, asking, g.Policy, d.last.Memory)
	t.followGroup(d, members)
	t.emit(d, state.Observation{})
}

func memberStates(members []*subject) []state.Member {
	all := make([]state.Member, len(members))
	for i, m := range members {
		all[i] = m.asks.Member
	}
	return all
}

// NextGroup returns when a group, with a stored state, is decided for the first time after t: with
// the first of its members, which are Processors of the configuration. ticks is the timer's
// schedule.
func NextGroup(ticks Schedule, members []Processor, s state.State, t time.Time) time.Time {
	var first time.Time
	for _, p := range members {
		var last state.Member
		for _, m := range s.Members {
			if m.Processor == p.Name {
				last = m
			}
		}
		if at := next(ticks, p.schedule(last.Replicas, last.Active, last.Complete), t); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
