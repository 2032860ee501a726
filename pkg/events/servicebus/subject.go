package servicebus

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
)

// handlerTries is how often an event is handled in vain before it is given back to the queue, which counts
// that as one delivery. With the pauses between, a queue of ten deliveries takes ten minutes to give an
// event up.
const handlerTries = 6

// subjectQueue has the events of one subject handled one at a time. The mutex of the consumerRun guards
// it.
type subjectQueue struct {
	handled events.Position // of the last event that was, or had expired
	current *delivery       // being handled, or waiting to be tried again
	next    *delivery       // the newest that waits
	busy    bool            // served by a goroutine
}

// offer makes d the next one unless it is not worth handling, and returns what is therefore to be
// completed, and why.
func (q *subjectQueue) offer(d *delivery) (dropped *delivery, why string) {
	// The same event a second time may be the same message, whose first delivery is lost unnoticed: it
	// is kept, and completed only once the first is handled.
	overtaken := func(by *delivery) bool {
		return by != nil && !by.position.SameEvent(d.position) && !by.position.Precedes(d.position)
	}
	switch {
	case !q.handled.Precedes(d.position):
		return d, "stale or repeated"
	case overtaken(q.current), overtaken(q.next):
		return d, "superseded"
	}
	if q.current != nil && q.current.position.Precedes(d.position) {
		q.current.supersede()
	}
	dropped, q.next = q.next, d
	return dropped, "superseded"
}

// serve handles the events of a subject until none waits.
func (r *consumerRun) serve(q *subjectQueue) {
	for d := r.next(q); d != nil; d = r.next(q) {
		r.act(q, d)
	}
}

// next takes the newest event of a subject that is worth handling, nil where none waits.
func (r *consumerRun) next(q *subjectQueue) *delivery {
	for {
		r.mu.Lock()
		d := q.next
		q.current, q.next, q.busy = d, nil, d != nil
		repeated := d != nil && !q.handled.Precedes(d.position)
		r.mu.Unlock()
		switch {
		case d == nil:
			return nil
		case repeated:
			r.complete(d, "stale or repeated")
		case d.expired():
			r.remember(q, d.position) // what comes before it is of even less use
			r.expired.Add(1)
			r.complete(d, "older than its time to live")
		default:
			return d
		}
	}
}

func (r *consumerRun) remember(q *subjectQueue, p events.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.handled = p
}

var errSuperseded = errors.New("a newer event waits")

// act has an event handled and settles it. While that fails the lock is held, so that the queue does not
// deliver the event ten times within a second.
func (r *consumerRun) act(q *subjectQueue, d *delivery) {
	pause := r.options.RetryDelay
	for try := range handlerTries {
		err := r.try(d)
		switch {
		case err == nil:
			r.remember(q, d.position)
			r.complete(d, "handled")
			return
		case errors.Is(err, errSuperseded):
			r.complete(d, "superseded")
			return
		case d.lost():
			r.log.Warn("a scale event was not handled before its lock was lost: it comes again", d.name())
			d.end()
			return
		case errors.Is(err, events.ErrDeadLetter):
			r.deadLetter(d, err.Error(), err)
			return
		case r.running.Err() != nil:
			r.abandon(d)
			return
		case try == 0:
			r.log.Warn("a scale event could not be handled: it is tried again", d.name(), slog.Any("error", err))
		}
		select {
		case <-time.After(pause):
		case <-d.superseded.Done():
		case <-d.ctx.Done():
		case <-r.running.Done():
		}
		pause = min(2*pause, r.options.maxPause())
	}
	if d.superseded.Err() != nil {
		r.complete(d, "superseded")
		return
	}
	r.log.Warn("a scale event could not be handled: it goes back to the queue", d.name(), slog.Int("tries", handlerTries))
	r.abandon(d)
}

// try has an event handled once there is room for another handler.
func (r *consumerRun) try(d *delivery) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-d.superseded.Done():
	case <-d.ctx.Done():
	case <-r.running.Done():
	}
	switch {
	case d.ctx.Err() != nil:
		return context.Cause(d.ctx)
	case r.running.Err() != nil:
		return context.Cause(r.running)
	case d.superseded.Err() != nil:
		return errSuperseded
	}
	return r.handle(d.ctx, d.event)
}
