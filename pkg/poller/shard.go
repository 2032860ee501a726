package poller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Shard is a part of a tick that another invocation polls (docs/scale.md).
type Shard struct {
	Tick  time.Time `json:"tick"`  // when the tick began that handed it over
	Of    int       `json:"of"`    // parts that the tick is polled in: each may spend this part of an RU budget
	Names []string  `json:"names"` // of its processors
}

// Shards takes shards to those who poll them.
type Shards interface {
	// Send sends a message, which is dropped unless it is received within its time to live. Another
	// one with the same id is the same message.
	Send(ctx context.Context, id string, body []byte, timeToLive time.Duration) error
}

const (
	// maxNames bounds the processors of a shard, so that their names, of at most 63 letters each,
	// fit into a message of 256 KB, the most that a Standard namespace takes.
	maxNames = 2000
	// leastShardLife is how long a shard waits at least. A timer that fires more often would leave
	// no time to start an instance.
	leastShardLife = 30 * time.Second
)

// handOver sends shards to others. Of those that the queue does not take, this process polls one.
func (t *tick) handOver(ctx context.Context, shards []part) {
	if len(shards) == 0 {
		return
	}
	t.parts.Store(int64(len(shards) + 1))
	errs := make([]error, len(shards))
	// A shard lives until the next tick, which hands over again what was not polled.
	life := max(leastShardLife, t.Ticks.Next(nearestSecond(t.scope.now)).Sub(t.scope.now))
	newSlots().each(len(shards), func(i int) {
		s := Shard{Tick: t.scope.now, Of: len(shards) + 1}
		for _, d := range shards[i].polls {
			s.Names = append(s.Names, d.name)
		}
		body, _ := json.Marshal(s) // names and a time always can be
		id := sha256.Sum256(body)
		errs[i] = t.Shards.Send(ctx, hex.EncodeToString(id[:16]), body, life)
	})
	var left []part
	var failure error
	late := 0
	for i, s := range shards {
		if errs[i] != nil {
			left, failure = append(left, s), errs[i]
			continue
		}
		t.handedOver.Add(int64(len(s.polls)))
		for _, d := range s.polls {
			if before, ok := t.handed.Swap(d.name, t.scope.now); ok && d.last.AttemptedAt.Before(before.(time.Time)) {
				late++
			}
		}
	}
	if was := t.late.Swap(late > 0); late > 0 && !was {
		t.Log.Warn("processors that were handed over were not polled until the next tick, which hands them over again", "processors", late,
			"next", "see that the function shard runs, that it has enough instances, and that a shard takes less time than passes between two ticks")
	}
	if len(left) > 0 {
		longest(left).set(polling)
		t.Log.Error("shards cannot be handed over: this process polls the one that has waited the longest, and the others wait for the next tick",
			"shards", len(left), "of", len(shards), "error", failure.Error())
	}
}
