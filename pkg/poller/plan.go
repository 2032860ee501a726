package poller

import (
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// budget divides the time of a tick (docs/operate.md).
type budget struct {
	row        time.Duration // reading one row of the store: a sixth of the timeout
	containers time.Duration // having throughput follow: a fifth of the timeout
	signals    time.Duration // one signal queue
	drain      time.Duration // committing what is decided, after the tick is told to stop
	reads      time.Time     // when reads end: a fifth of the slot commits and publishes; zero = no timer
}

// newBudget divides the timeout of a tick that starts now. ticks is the timer's schedule; nil =
// there is none.
func newBudget(timeout time.Duration, ticks Schedule, now time.Time) budget {
	b := budget{row: timeout / 6, containers: timeout / 5, signals: 5 * time.Second, drain: 5 * time.Second}
	if ticks == nil {
		return b
	}
	if next := ticks.Next(nearestSecond(now)); !next.IsZero() {
		b.reads = next.Add(-next.Sub(now) / 5)
	}
	return b
}

// measuring divides what is left of a tick. Measuring takes at most four fifths of it, so that the
// rest commits and publishes; for the RU budget it waits until reads end.
func (b budget) measuring(now time.Time, left time.Duration) (most, paced time.Duration) {
	most = left * 4 / 5
	if b.reads.IsZero() {
		return most, most
	}
	return most, max(0, min(most, b.reads.Sub(now)))
}

// candidate is a processor whose row was read.
type candidate struct {
	*Processor
	last     *state.State // without what it has of each lease
	complete bool         // its last poll was
	leases   int          // that it had then, at least 1
	unread   bool         // its row could not be read
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

// stage says what the tick does with a processor.
func (s scope) stage(c candidate) stage {
	switch {
	case s.All && len(s.Only) > 0 && !slices.Contains(s.Only, c.Name):
		return elsewhere
	case c.unread:
		return unread
	case s.Shard != nil && !s.names[c.Name]:
		return elsewhere
	case s.Shard != nil && s.polledSince(c.last), s.Shard == nil && !s.All && !c.due(c.last, c.complete, s.now):
		return resting
	}
	return polling
}

// plan is what a tick does with the processors that were read together.
type plan struct {
	stages []stage // by processor
	shards []part  // that are handed over; their processors are elsewhere
	leases int     // of all that are due in this tick so far
}

// newPlan plans for some processors. leases is how many are due by earlier plans of the tick. size
// is how many leases the timer's tick polls by itself; 0 = any number. all are the processors of the
// configuration.
func newPlan(s scope, some []candidate, leases, size int, all []Processor) plan {
	p := plan{stages: make([]stage, len(some)), leases: leases}
	for i, c := range some {
		if p.stages[i] = s.stage(c); p.stages[i] == polling {
			p.leases += c.leases
		}
	}
	if size == 0 || p.leases <= size || s.All || s.DryRun || s.Shard != nil {
		return p
	}
	p.shards = pack(divide(some, p.stages, all), some, size)
	for _, shard := range p.shards {
		for _, i := range shard.members {
			p.stages[i] = elsewhere
		}
	}
	return p
}

// take lets this process poll one of the shards that nobody took: the one whose processors have
// waited longest. The others wait for the next tick, so that each has its turn.
func (p plan) take(left []part, some []candidate) {
	longest := slices.MinFunc(left, func(a, b part) int { return a.waits(some).Compare(b.waits(some)) })
	for _, i := range longest.members {
		p.stages[i] = polling
	}
}

// part is processors that are polled in one place, by their index in a plan.
type part struct {
	members []int
	leases  int
}

func (p *part) fits(other part, size int) bool {
	return p.leases+other.leases <= size && len(p.members)+len(other.members) <= maxNames
}

func (p *part) add(other part) {
	p.members, p.leases = append(p.members, other.members...), p.leases+other.leases
}

// waits is the last poll of the processor that was polled the longest ago.
func (p *part) waits(some []candidate) time.Time {
	polledAt := func(i int) time.Time { return some[i].last.AttemptedAt }
	return polledAt(slices.MinFunc(p.members, func(a, b int) int { return polledAt(a).Compare(polledAt(b)) }))
}

// divide returns the due processors that may be handed over. A process keeps those whose throughput
// follows their replicas, since containers have one writer. The members of a group stay together,
// since the group is decided by the process that polls all of them.
func divide(some []candidate, stages []stage, all []Processor) (parts []part) {
	missing := make(map[string]int) // members of a group that cannot be handed over, or were not read yet
	for _, p := range all {
		missing[p.Group]++
	}
	for _, c := range some {
		if !c.unread && !c.Throughput {
			missing[c.Group]--
		}
	}
	at := make(map[string]int) // index of a group's part
	for i, c := range some {
		if stages[i] != polling || c.Throughput || c.Group != "" && missing[c.Group] > 0 {
			continue
		}
		if j, ok := at[c.Group]; ok && c.Group != "" {
			parts[j].add(part{[]int{i}, c.leases})
			continue
		}
		at[c.Group] = len(parts)
		parts = append(parts, part{[]int{i}, c.leases})
	}
	return parts
}

// pack puts whole parts into shards of at most size leases. A part with more leases is a shard by
// itself. Parts whose leases are in one container stay together if they fit, since one query reads
// all their leases. The same parts in the same order make the same shards.
func pack(parts []part, some []candidate, size int) (shards []part) {
	type leaseContainer struct{ account, container any }
	var pieces []part
	last := make(map[leaseContainer]int) // index of the last piece of each
	for _, p := range parts {
		first := some[p.members[0]]
		of := leaseContainer{first.LeaseAccount, first.LeaseContainer}
		if i, ok := last[of]; ok && pieces[i].fits(p, size) {
			pieces[i].add(p)
			continue
		}
		last[of] = len(pieces)
		pieces = append(pieces, p)
	}
	for _, p := range pieces {
		if i := slices.IndexFunc(shards, func(s part) bool { return s.fits(p, size) }); i >= 0 {
			shards[i].add(p)
		} else {
			shards = append(shards, p)
		}
	}
	return shards
}
