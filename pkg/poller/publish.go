package poller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
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

// outbox publishes what waits in the outboxes, in one tick.
type outbox struct {
	*tick
	slots       slots
	unreachable atomic.Bool  // the queue gave no answer
	tooLarge    atomic.Int64 // events that were dropped for their size
}

// publish delivers what waits in the outbox of a processor that was committed. After a conflict the
// faster tick does that, since this one does not know its decision.
func (o *outbox) publish(ctx context.Context, d *subject) {
	waiting := d.stored.Outbox
	if d.event != nil {
		waiting = append(waiting, *d.event)
	}
	d.left = o.deliver(ctx, waiting)
}

// publishPending delivers what waits in the outbox of a processor that is not due. The outbox is
// read again first, since another process may have decided anew.
func (o *outbox) publishPending(ctx context.Context, d *subject) {
	if o.scope.DryRun || len(d.stored.Outbox) == 0 || o.stopping.Err() != nil {
		return
	}
	stored, err := o.Store.Load(ctx, d.name)
	if err != nil {
		d.left = 1
		o.Log.Error("the state cannot be loaded", "processor", d.name, "error", err.Error())
		return
	}
	d.left = o.deliver(ctx, stored.Outbox)
}

// deliver publishes the newest event of an outbox, and removes the others: a decision is a level,
// not an increment, so that a later event of the same subject overtakes an earlier one. It returns
// how many events are left for the next tick.
//
// The published event is removed after its delivery. If the process ends in between, the same bytes
// are sent once more with the same id. An earlier event that was delivered and not removed is older
// than what follows, and is never sent after it.
func (o *outbox) deliver(ctx context.Context, waiting []state.Event) (left int) {
	if len(waiting) == 0 {
		return 0
	}
	var remove []int64
	newest := newestOf(waiting)
	event := waiting[newest]
	for i, e := range waiting {
		if i != newest {
			remove = append(remove, e.Sequence)
		}
	}
	switch err := o.send(ctx, event); {
	case err == nil:
		remove = append(remove, event.Sequence)
		o.refused.Store(nil)
	case errors.Is(err, events.ErrTooLarge):
		o.tooLarge.Add(1)
		remove = append(remove, event.Sequence)
		o.Log.Error("a scale event is too large for the queue and is dropped: its successors are not held up", "processor", event.Processor, "sequence", event.Sequence, "error", err.Error())
	default:
		left = 1
		if !errors.Is(err, errNotTried) {
			o.refused.Store(o.undelivered(err))
			o.Log.Error("a scale event cannot be published: it stays in the outbox for the next tick", "processor", event.Processor, "sequence", event.Sequence, "error", err.Error())
		}
	}
	if len(remove) == 0 {
		return left
	}
	if err := o.Store.Remove(ctx, event.Processor, remove...); err != nil {
		o.Log.Warn("published or overtaken events cannot be removed from the outbox: the newest is published again", "processor", event.Processor, "events", len(remove), "error", err.Error())
	}
	return left
}

// errNotTried says that the queue is out of reach, which was logged for another event.
var errNotTried = errors.New("the queue is out of reach")

// send publishes one event, unless the queue gave no answer to another one of this tick.
func (o *outbox) send(ctx context.Context, e state.Event) error {
	err := errNotTried
	o.slots.do(func() {
		if !o.unreachable.Load() {
			defer o.waits("the queue")()
			err = o.Publisher.Publish(ctx, e.Body)
		}
	})
	if errors.Is(err, events.ErrUnreachable) && o.unreachable.Swap(true) {
		return errNotTried
	}
	return err
}

// newestOf returns the index of the newest event. One that cannot be read is never that, unless it
// is alone.
func newestOf(outbox []state.Event) int {
	newest, position := len(outbox)-1, events.Position{}
	for i, stored := range outbox {
		if e, err := events.Decode(stored.Body); err == nil && position.Precedes(e.Position()) {
			newest, position = i, e.Position()
		}
	}
	return newest
}

// publishOrphans delivers the pending events of processors and groups that are no longer
// configured. Nothing adds to them: after a search that finds none, the process does not search
// again. The search is the last step of a tick, since it may take long.
func (o *outbox) publishOrphans(ctx context.Context) int {
	if o.drained.Load() || o.stopping.Err() != nil {
		return 0
	}
	var configured []string
	for _, processor := range o.Processors {
		configured = append(configured, processor.Name)
	}
	for _, group := range o.Groups {
		configured = append(configured, group.Name)
	}
	removed, err := o.Store.Outbox(ctx, configured)
	if err != nil {
		o.Log.Warn("the outbox cannot be searched for events of removed processors", "error", err.Error())
		return 0
	}
	orphans := make(map[string][]state.Event)
	for _, e := range removed {
		orphans[e.Processor] = append(orphans[e.Processor], e)
	}
	names := slices.Sorted(maps.Keys(orphans))
	var left atomic.Int64
	newSlots().each(len(names), func(i int) { left.Add(int64(o.deliver(ctx, orphans[names[i]]))) })
	o.drained.Store(len(removed) == 0)
	return int(left.Load())
}
