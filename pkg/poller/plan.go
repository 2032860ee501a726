package poller

import (
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// budget divides the time of a tick (docs/operate.md).
type budget struct {
	row        time.Duration // reading one row of the store: a sixth of the timeout
	containers time.Duration // having throughput follow: a fifth of the timeout
	reads      time.Time     // when reads end: a fifth of the slot commits and publishes
}

const (
	drainTime  = 5 * time.Second // for committing what is decided, after the tick is told to stop
	signalTime = 5 * time.Second // for one signal queue
)

// newBudget divides the timeout of a tick that starts now. ticks is the timer's schedule.
func newBudget(timeout time.Duration, ticks Schedule, now time.Time) budget {
	next := ticks.Next(nearestSecond(now))
	return budget{row: timeout / 6, containers: timeout / 5, reads: next.Add(-next.Sub(now) / 5)}
}

// measuring divides what is left of a tick. Measuring takes at most four fifths of it, so that the
// rest commits and publishes; for the RU budget it waits until reads end.
func (b budget) measuring(now time.Time, left time.Duration) (most, paced time.Duration) {
	most = left * 4 / 5
	return most, max(0, min(most, b.reads.Sub(now)))
}

// scope is which processors a tick looks at.
type scope struct {
	Mode
	now    time.Time
	names  map[string]bool // of the processors of the shard
	groups map[string]bool // of which these are members
}

func newScope(mode Mode, now time.Time, processors []Processor) scope {
	s := scope{Mode: mode, now: now}
	if s.Shard == nil {
		return s
	}
	if s.Shard.Tick.After(now) { // this process has the clock that is behind
		s.now = s.Shard.Tick
	}
	s.names, s.groups = make(map[string]bool), make(map[string]bool)
	for _, name := range s.Shard.Names {
		s.names[name] = true
	}
	for _, p := range processors {
		if p.Group != "" && s.names[p.Name] {
			s.groups[p.Group] = true
		}
	}
	return s
}

// concerns reports whether the tick looks at a processor: a shard at its own, and at the other
// members of their groups.
func (s scope) concerns(p Processor) bool {
	return s.Shard == nil || s.names[p.Name] || s.groups[p.Group]
}

// polledSince reports whether a State is of the tick that handed the shard over, or of a later one.
// A time in the future was told by a clock that was ahead, and says nothing.
func (s scope) polledSince(last *state.State) bool {
	return !last.AttemptedAt.Before(s.Shard.Tick) && !last.AttemptedAt.After(s.now)
}

// stage says what the tick does with a processor whose row was read.
func (s scope) stage(d *subject) stage {
	switch {
	case s.All && len(s.Only) > 0 && !slices.Contains(s.Only, d.name):
		return elsewhere
	case d.err != nil:
		return unread
	case s.Shard != nil && !s.names[d.name]:
		return elsewhere
	case s.Shard != nil && s.polledSince(d.last), s.Shard == nil && !s.All && !d.processor.due(d.last, s.now):
		return resting
	}
	return polling
}

// plan sets the stage of processors that were read together, and returns the shards of them that the tick hands
// over. due has the leases of all that are due by earlier plans of the tick, and then of these as well. size is how
// many leases the timer's tick polls by itself; 0 = any number. all are the processors of the configuration.
func (s scope) plan(wave []*subject, due *int, size int, all []Processor) (shards []part) {
	for _, d := range wave {
		if d.stage = s.stage(d); d.stage == polling {
			*due += d.leases()
		}
	}
	if size == 0 || *due <= size || s.All || s.DryRun || s.Shard != nil {
		return nil
	}
	shards = pack(divide(wave, all), size)
	for _, shard := range shards {
		shard.set(elsewhere)
	}
	return shards
}

// part is processors that are polled in one place.
type part struct {
	polls  []*subject
	leases int
}

func (p part) set(s stage) {
	for _, d := range p.polls {
		d.stage = s
	}
}

func (p *part) add(other part) {
	p.polls, p.leases = append(p.polls, other.polls...), p.leases+other.leases
}

// longest returns the part that has waited longest. If nobody takes some shards, this process polls that one, and
// the others wait for the next tick, so that each has its turn.
func longest(parts []part) part {
	earlier := func(a, b *subject) int { return a.last.AttemptedAt.Compare(b.last.AttemptedAt) }
	return slices.MinFunc(parts, func(a, b part) int {
		return earlier(slices.MinFunc(a.polls, earlier), slices.MinFunc(b.polls, earlier))
	})
}

// divide returns the due processors that may be handed over. A process keeps those whose throughput
// follows their replicas, since containers have one writer. The members of a group stay together,
// since the group is decided by the process that polls all of them.
func divide(wave []*subject, all []Processor) (parts []part) {
	missing := make(map[string]int) // members of a group that cannot be handed over, or were not read yet
	for _, p := range all {
		missing[p.Group]++
	}
	for _, d := range wave {
		if d.stage != unread && !d.processor.Throughput {
			missing[d.processor.Group]--
		}
	}
	at := make(map[string]int) // index of a group's part
	for _, d := range wave {
		group := d.processor.Group
		if d.stage != polling || d.processor.Throughput || group != "" && missing[group] > 0 {
			continue
		}
		if i, ok := at[group]; ok && group != "" {
			parts[i].add(part{[]*subject{d}, d.leases()})
			continue
		}
		at[group] = len(parts)
		parts = append(parts, part{[]*subject{d}, d.leases()})
	}
	return parts
}

// pack puts whole parts into shards of at most size leases. A part with more leases is a shard by
// itself. Parts whose leases are in one container are next to each other, since one query reads all
// their leases. The same parts in the same order make the same shards.
func pack(parts []part, size int) (shards []part) {
	container := func(p part) string { return p.polls[0].processor.LeaseContainer.String() }
	slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(container(a), container(b)) })
	for _, p := range parts {
		i := slices.IndexFunc(shards, func(s part) bool {
			return s.leases+p.leases <= size && len(s.polls)+len(p.polls) <= maxNames
		})
		if i >= 0 {
			shards[i].add(p)
		} else {
			shards = append(shards, p)
		}
	}
	return shards
}
