package throughput

import (
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// decide tells what is to become of a container, from what is known of it, and what is then to be
// remembered: the entry is nil where that is nothing.
func (c Container) decide(now time.Time, s *seen) (Outcome, *state.Provisioning) {
	out := Outcome{Container: c.Container, Account: c.Account, Apply: c.Apply, Err: s.err}
	if s.at.IsZero() {
		return out, s.entry
	}
	out.Provisioned = s.read.RUPerSecond
	if !c.Apply {
		c.recommend(now, s, &out)
		return out, s.entry
	}
	return out, c.apply(now, s, &out)
}

// recommend decides as if what was recommended before were there, so that a recommendation is what apply
// would have made of the container by now.
func (c Container) recommend(now time.Time, s *seen, out *Outcome) {
	v := s.virtual
	if v.real == 0 && c.Last != nil && c.Last.Decision != nil && !c.Last.Apply {
		v = virtual{real: c.Last.Provisioned, ruPerSecond: c.Last.Decision.RUPerSecond, memory: c.Last.Memory}
	}
	if v.real != s.read.RUPerSecond {
		v = virtual{real: s.read.RUPerSecond, ruPerSecond: s.read.RUPerSecond}
	}
	there := s.read
	there.RUPerSecond = v.ruPerSecond
	d, memory := c.needs(now, there, v.real, v.memory)
	d.Provisioned = v.real
	out.Decision, out.Memory = &d, memory
	s.virtual = virtual{real: v.real, ruPerSecond: d.RUPerSecond, memory: memory}
}

// apply decides what is to be provisioned. The entry says what is to be remembered before that is made so.
func (c Container) apply(now time.Time, s *seen, out *Outcome) *state.Provisioning {
	entry := state.Provisioning{
		Setting: c.Setting, Database: c.Container.Database, Container: c.Container.ID, Autoscale: s.read.Autoscale,
		Before: s.read.RUPerSecond, Was: s.read.RUPerSecond, Set: s.read.RUPerSecond,
	}
	if s.entry != nil {
		entry = *s.entry
		out.Found = entry.Before
	}
	d, memory := c.needs(now, s.read, out.Found, entry.Memory)
	out.Decision = &d
	if theirs(&entry, s.read) {
		out.Note = fmt.Sprintf("somebody else provisioned %d RU/s in place of %d: that is left alone until throughput is switched off and on again", s.read.RUPerSecond, entry.Set)
		return &entry
	}
	entry.Memory, entry.Setting = memory, c.Setting
	// Where nothing is to be changed the last change is seen to be made: from here on, what was before is
	// somebody else's.
	change(&entry, s.read.RUPerSecond, d.RUPerSecond)
	if s.entry == nil && d.RUPerSecond == s.read.RUPerSecond && memory == (scaling.ThroughputMemory{}) {
		return nil
	}
	return &entry
}

func (c Container) needs(now time.Time, there cosmos.Throughput, before int, memory scaling.ThroughputMemory) (scaling.ThroughputDecision, scaling.ThroughputMemory) {
	return scaling.DecideThroughput(scaling.ThroughputInput{
		Now: now, Before: before, Demands: c.Demands, Policy: c.Policy, Memory: memory,
		Provisioned: scaling.Provisioned{RUPerSecond: there.RUPerSecond, Autoscale: there.Autoscale, Minimum: there.Minimum, Pending: there.Pending},
	})
}

// change notes what a container is to have in place of what was read. Where that is not what the change
// before was to make of it, another process may have committed that one and be about to make it: what it
// makes is ours.
func change(entry *state.Provisioning, from, to int) {
	if from != entry.Set {
		entry.Late = entry.Set
	}
	entry.Was, entry.Set = from, to
}

// theirs reports whether somebody else changed the throughput, and remembers what they made it. Of a
// change that may not have been made, since this process ended in between, both sides are ours.
func theirs(entry *state.Provisioning, read cosmos.Throughput) bool {
	ours := read.Autoscale == entry.Autoscale && (read.RUPerSecond == entry.Set || entry.Theirs == 0 && (read.RUPerSecond == entry.Was || read.RUPerSecond == entry.Late))
	if entry.Theirs = 0; !ours {
		entry.Theirs = read.RUPerSecond
	}
	return !ours
}
