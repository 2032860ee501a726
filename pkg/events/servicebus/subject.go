package servicebus

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
)

// handlerTries is how often handling an event may fail before it goes back to the queue, which counts one
// delivery. With the pauses between, a queue of ten deliveries gives an event up after ten minutes.
const handlerTries = 6

// subjectQueue has the events of one subject. The mutex of the consumerRun guards it.
type subjectQueue struct {
	handled events.Position // of the last event that was, or had expired
	current *delivery       // being handled, or waiting to be tried again
	next    *delivery       // the newest that waits
	busy    bool            // a goroutine serves it
	dropped int             // events since the last one that was handled, without the superseded ones
}

// Why events are completed unhandled.
const (
	isStale      = "stale or repeated"
	isSuperseded = "superseded"
	isExpired    = "older than its time to live"
)

// manyDropped is how many events of a subject are dropped in a row before each warning.
const manyDropped = 10

// drop completes an event without handling it. If every event of a subject is dropped, a forged one may have
// come before them.
func (r *consumerRun) drop(q *subjectQueue, d *delivery, why string) {
	if why != isSuperseded {
		r.mu.Lock()
		q.dropped++
		dropped, handled := q.dropped, q.handled
		r.mu.Unlock()
		if dropped%manyDropped == 0 {
			r.log.Warn("no event of a subject is handled any more",
				slog.String("subject", d.event.Subject()), slog.Int("dropped", dropped), slog.String("why", why),
				slog.Int64("epoch", handled.Epoch), slog.Int64("sequence", handled.Sequence),
				slog.String("next", "look who sends to the queue, and restart the consumer, which then takes the next event"))
		}
	}
	r.complete(d, why)
}

// offer makes d the next event, unless it is stale or superseded. It returns the delivery that is dropped
// instead, nil if there is none, and why.
func (q *subjectQueue) offer(d *delivery) (dropped *delivery, why string) {
	// The same event may come twice as one message, whose first delivery lost its lock unnoticed: the
	// second is completed only once the first is handled.
	overtaken := func(by *delivery) bool {
		return by != nil && !by.position.SameEvent(d.position) && !by.position.Precedes(d.position)
	}
	switch {
	case !q.handled.Precedes(d.position):
		return d, isStale
	case overtaken(q.current), overtaken(q.next):
		return d, isSuperseded
	}
	if q.current != nil && q.current.position.Precedes(d.position) {
		q.current.supersede()
	}
	dropped, q.next = q.next, d
	return dropped, isSuperseded
}

// serve handles the events of a subject until none waits.
func (r *consumerRun) serve(q *subjectQueue) {
	for d := r.next(q); d != nil; d = r.next(q) {
		r.act(q, d)
	}
}

// next takes the newest event of a subject, unless it is repeated or expired; nil if none waits.
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
			r.drop(q, d, isStale)
		case d.expired():
			r.mu.Lock()
			q.handled = d.position // so that an older one is stale
			r.mu.Unlock()
			r.expired.Add(1)
			r.drop(q, d, isExpired)
		default:
			return d
		}
	}
}

var errSuperseded = errors.New("a newer event waits")

// act has an event handled, and settles it. It keeps the lock between failures, so that the queue does not
// use up its deliveries within a second.
func (r *consumerRun) act(q *subjectQueue, d *delivery) {
	pause := r.options.RetryDelay
	for try := range handlerTries {
		err := r.try(d)
		switch {
		case err == nil:
			r.mu.Lock()
			q.handled, q.dropped = d.position, 0
			r.mu.Unlock()
			r.complete(d, "handled")
			return
		case errors.Is(err, errSuperseded):
			r.complete(d, isSuperseded)
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
		r.complete(d, isSuperseded)
		return
	}
	r.log.Warn("a scale event could not be handled: it goes back to the queue", d.name(), slog.Int("tries", handlerTries))
	r.abandon(d)
}

// try has an event handled when there is room for another handler.
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
