package poller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// Shard is a part of a tick that another invocation polls (docs/scale.md).
type Shard struct {
	Tick  time.Time `json:"tick"`  // when the tick began that handed it over
	Of    int       `json:"of"`    // parts that the tick is polled in: each may spend this part of an RU budget
	Names []string  `json:"names"` // of its processors
}

// Shards takes shards to those who poll them.
type Shards interface {
	// Send sends a message, which is dropped unless somebody takes it within its time to live. Another one
	// with the same id is the same message.
	Send(ctx context.Context, id string, body []byte, timeToLive time.Duration) error
}

const (
	// maxNames bounds the processors of a shard, so that their names, of at most 63 letters each, fit into a
	// message of 256 KB, the most that a Standard namespace takes.
	maxNames = 2000
	// leastShardLife is how long a shard waits at least: where the timer fires more often, an instance that
	// has to be started first could never take one.
	leastShardLife = 30 * time.Second
)

// part is processors that are polled in one place.
type part struct {
	polls  []*poll
	leases int
}

func (p *part) fits(other part, size int) bool {
	return p.leases+other.leases <= size && len(p.polls)+len(other.polls) <= maxNames
}

func (p *part) add(other part) {
	p.polls, p.leases = append(p.polls, other.polls...), p.leases+other.leases
}

// pack puts parts, none of which is divided, into shards of at most size leases; one that has more is a shard
// of its own. Those with their leases in one container stay together as far as they fit, since one query
// reads the leases of all. The same parts in the same order make the same shards.
func pack(parts []part, size int) (shards []part) {
	type leaseContainer struct{ account, container any }
	var pieces []part
	last := make(map[leaseContainer]int) // index of the last piece of each
	for _, p := range parts {
		of := leaseContainer{p.polls[0].processor.LeaseAccount, p.polls[0].processor.LeaseContainer}
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
			continue
		}
		shards = append(shards, p)
	}
	return shards
}

// leasesOf is how many leases a processor had at its last complete poll, at least 1.
func leasesOf(s *state.Stored) int { return max(1, s.Head().Memory.Partitions, s.Leases()) }

// fansOut reports whether the tick may hand processors over.
func (t *tick) fansOut() bool {
	return t.Shards != nil && t.ShardSize > 0 && !t.mode.All && !t.mode.DryRun && t.mode.Shard == nil
}

// weigh counts the leases of a processor that is due. Once there are more than this process polls by itself,
// what was read is dropped again: whoever polls the processor reads it.
func (t *tick) weigh(d *poll) {
	if !t.fansOut() || !d.due || d.err != nil {
		return
	}
	d.leases, d.attempted = leasesOf(d.stored), d.last.AttemptedAt
	if t.leases.Add(int64(d.leases)) > int64(t.ShardSize) {
		d.stored, d.last, d.unloaded = &state.Stored{}, &state.State{}, true
	}
}

// handOver sends the processors of a wave to others, where the tick has more leases than this process is to
// poll, and returns those that it polls itself, or that are not due.
//
// Where the queue does not take a shard, this process polls one of them: that which has waited the longest.
// The others are left for the next tick, so that all have their turn, and none is taken for a failure.
func (t *tick) handOver(ctx context.Context, wave []*poll) []*poll {
	if !t.fansOut() || t.leases.Load() <= int64(t.ShardSize) {
		return wave
	}
	slices.SortFunc(wave, func(a, b *poll) int { return a.index - b.index })
	own, parts := t.divide(wave)
	shards := pack(parts, t.ShardSize)
	t.parts.Store(int64(len(shards) + 1))
	errs := make([]error, len(shards))
	each(len(shards), func(i int) { errs[i] = t.sendShard(ctx, shards[i]) })
	var sent, left []part
	var failure error
	for i, s := range shards {
		if errs[i] != nil {
			left, failure = append(left, s), errs[i]
			continue
		}
		sent = append(sent, s)
		t.handedOver.Add(int64(len(s.polls)))
	}
	t.sayLate(sent)
	for _, p := range parts {
		for _, d := range p.polls {
			d.elsewhere, d.due = true, false
		}
		own = append(own, p.polls...)
	}
	if len(left) > 0 {
		longest := slices.MinFunc(left, func(a, b part) int { return a.waits().Compare(b.waits()) })
		for _, d := range longest.polls {
			d.elsewhere, d.due = false, true
		}
		t.Log.Error("shards cannot be handed over: this process polls the one that has waited the longest, and the others wait for the next tick",
			"shards", len(left), "of", len(shards), "error", failure.Error())
	}
	each(len(own), func(i int) {
		if d := own[i]; d.unloaded && !d.elsewhere {
			t.read(ctx, &d.subject)
		}
	})
	return own
}

// divide separates the processors of a wave that this process keeps from those that may be handed over. It
// keeps those whose throughput follows their replicas, since containers have one writer, and what is not due.
// A group is decided where all its members are polled: they stay together.
func (t *tick) divide(wave []*poll) (own []*poll, parts []part) {
	missing := make(map[string]int) // members of a group that cannot be handed over, or are in another wave
	for _, p := range t.Processors {
		missing[p.Group]++
	}
	for _, d := range wave {
		if d.err == nil && !d.processor.Throughput {
			missing[d.processor.Group]--
		}
	}
	groups := make(map[string]int) // index of a group's part
	for _, d := range wave {
		group := d.processor.Group
		whole := missing[group] == 0
		if group == "" {
			whole = d.err == nil && !d.processor.Throughput
		}
		if !d.due || !whole {
			own = append(own, d)
			continue
		}
		p := part{[]*poll{d}, d.leases}
		if i, ok := groups[group]; ok {
			parts[i].add(p)
			continue
		}
		if group != "" {
			groups[group] = len(parts)
		}
		parts = append(parts, p)
	}
	return own, parts
}

// waits is since when the processor waits that was polled the longest ago.
func (p *part) waits() time.Time {
	return slices.MinFunc(p.polls, func(a, b *poll) int { return a.attempted.Compare(b.attempted) }).attempted
}

// sendShard hands a shard over. It lives until the next tick, which brings what was not polled again.
func (t *tick) sendShard(ctx context.Context, p part) error {
	s := Shard{Tick: t.start, Of: int(t.parts.Load()), Names: make([]string, len(p.polls))}
	for i, d := range p.polls {
		s.Names[i] = d.name
	}
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	id := sha256.Sum256(body)
	return t.Shards.Send(ctx, hex.EncodeToString(id[:16]), body, max(leastShardLife, t.Ticks.Next(nearestSecond(t.start)).Sub(t.start)))
}

// sayLate says once, until it is over, that what was handed over by the tick before was not polled since.
func (t *tick) sayLate(parts []part) {
	late := 0
	for _, p := range parts {
		for _, d := range p.polls {
			if before, ok := t.handed.Swap(d.name, t.start); ok && d.attempted.Before(before.(time.Time)) {
				late++
			}
		}
	}
	if was := t.late.Swap(late > 0); late > 0 && !was {
		t.Log.Warn("processors that were handed over were not polled until the next tick, which hands them over again", "processors", late,
			"next", "see that the function shard runs, that it has enough instances, and that a shard takes less time than passes between two ticks")
	}
}

// polledSince reports whether a State is that of a poll of the tick that handed the shard over, or of a later
// one. A time in the future is one of a clock that was ahead, and tells nothing.
func (t *tick) polledSince(s *state.State) bool {
	return !s.AttemptedAt.Before(t.mode.Shard.Tick) && !s.AttemptedAt.After(t.start)
}

// beShard limits the tick to the processors of its shard, and to the groups that they are members of.
func (t *tick) beShard() {
	s := t.mode.Shard
	if s.Tick.After(t.start) { // this process has the clock that is behind
		t.start = s.Tick
	}
	t.parts.Store(int64(s.Of))
	t.named, t.namedGroups = make(map[string]bool, len(s.Names)), make(map[string]bool)
	for _, name := range s.Names {
		t.named[name] = true
	}
	for _, p := range t.Processors {
		if t.named[p.Name] && p.Group != "" {
			t.namedGroups[p.Group] = true
		}
	}
}

// concerns reports whether the tick looks at a processor: a shard at its own, and at the other members of
// their groups.
func (t *tick) concerns(p Processor) bool {
	return t.named == nil || t.named[p.Name] || t.namedGroups[p.Group]
}
