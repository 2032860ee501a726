package poller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/state"
)

// eventDue reports whether a decision is to be published (docs/operate.md, Events): the first one,
// one that differs from what was published last, one for a new destination, and at the heartbeat an
// unchanged one. The decision of a member is not: that of its group is.
func (p *Poller) eventDue(s state.State, now time.Time) bool {
	last := s.Published
	switch {
	case s.Decision == nil, s.Paused, s.Group != "":
		return false
	case last == nil, last.Destination != p.Destination, last.Replicas != s.Decision.Replicas, last.Active != s.Decision.Active:
		return true
	default:
		// A time in the future, of a clock that was ahead, is no reason to wait for it.
		return p.Heartbeat > 0 && now.Sub(last.Time).Abs() >= p.Heartbeat
	}
}

// publish delivers the newest event of an outbox, and removes the others: a decision is a level,
// not an increment, so that a later event of the same subject overtakes an earlier one. It returns
// how many events are left for the next tick.
//
// The published event is removed after its delivery. If the process ends in between, the same bytes
// are sent once more with the same id. An earlier event that was delivered and not removed is older
// than what follows, and is never sent after it.
func (t *tick) publish(ctx context.Context, waiting []state.Event) (left int) {
	if len(waiting) == 0 {
		return 0
	}
	newest := newestOf(waiting)
	event := waiting[newest]
	switch err := t.send(ctx, event); {
	case err == nil:
		t.refused.Store(nil)
	case errors.Is(err, events.ErrTooLarge):
		t.Log.Error("a scale event is too large for the queue and is dropped: its successors are not held up", "processor", event.Processor, "sequence", event.Sequence, "error", err.Error())
	default:
		left = 1
		if !errors.Is(err, errNotTried) {
			t.refused.Store(t.undelivered(err))
			t.Log.Error("a scale event cannot be published: it stays in the outbox for the next tick", "processor", event.Processor, "sequence", event.Sequence, "error", err.Error())
		}
	}
	var remove []int64
	for i, e := range waiting {
		if i != newest || left == 0 {
			remove = append(remove, e.Sequence)
		}
	}
	if len(remove) == 0 {
		return left
	}
	if err := t.Store.Remove(ctx, event.Processor, remove...); err != nil {
		t.Log.Warn("published or overtaken events cannot be removed from the outbox: the newest is published again", "processor", event.Processor, "events", len(remove), "error", err.Error())
	}
	return left
}

// errNotTried says that the queue is out of reach, which was logged for another event.
var errNotTried = errors.New("the queue is out of reach")

// send publishes one event, unless the queue gave no answer to another one of this tick.
func (t *tick) send(ctx context.Context, e state.Event) error {
	err := errNotTried
	t.queue.do(func() {
		if !t.mute.Load() {
			defer t.took.add("the queue", time.Now())
			if err = t.Publisher.Publish(ctx, e.Body); err == nil {
				t.published.Add(1)
			} else {
				t.publishErrors.Add(1)
			}
		}
	})
	if errors.Is(err, events.ErrUnreachable) && t.mute.Swap(true) {
		return errNotTried
	}
	return err
}

// newestOf returns the index of the newest event. One that cannot be read is never that, unless it
// is alone.
func newestOf(outbox []state.Event) int {
	newest, id := len(outbox)-1, ""
	for i, stored := range outbox {
		if e, err := events.Decode(stored.Body); err == nil && e.ID() > id {
			newest, id = i, e.ID()
		}
	}
	return newest
}

// publishOrphans delivers the pending events of processors and groups that are no longer
// configured. Nothing adds to them: after a search that finds none, the process does not search
// again. The search is the last step of a tick, since it may take long.
func (t *tick) publishOrphans(ctx context.Context, configured []string) (left int) {
	if t.drained.Load() || t.stopping.Err() != nil {
		return 0
	}
	removed, err := t.Store.Outbox(ctx, configured)
	if err != nil {
		t.Log.Warn("the outbox cannot be searched for events of removed processors", "error", err.Error())
		return 0
	}
	t.drained.Store(len(removed) == 0)
	orphans := make(map[string][]state.Event)
	for _, e := range removed {
		orphans[e.Processor] = append(orphans[e.Processor], e)
	}
	for _, name := range slices.Sorted(maps.Keys(orphans)) {
		left += t.publish(ctx, orphans[name])
	}
	return left
}
