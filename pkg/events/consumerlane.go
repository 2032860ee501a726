package events

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// handlerTries is how often an event is handled in vain before it is given back
// to the queue, which counts that as one delivery. With the pauses between, a
// queue of ten deliveries takes ten minutes to give an event up.
const handlerTries = 6

// position is a place in the events of one processor; the zero value comes
// before all of them.
type position struct {
	sequence int64
	time     time.Time
}

// precedes tells whether an event that comes later at q is newer. A lower
// sequence is stale, unless its event was made later: then the producer lost its
// state and counts from 1 again. Whatever else it says, the same sequence, and
// therefore the same id, is the same event.
func (p position) precedes(q position) bool {
	return q.sequence > p.sequence || q.sequence < p.sequence && q.time.After(p.time)
}

// lane has the events of one processor handled one at a time. The consumption's
// mutex guards it.
type lane struct {
	handled position  // the last event that was
	current *delivery // being handled, or waiting to be tried again
	next    *delivery // the newest that waits
	busy    bool      // served by a goroutine
}

// offer makes d the next one unless it is not worth handling, and returns what
// is therefore to be completed, and why.
func (l *lane) offer(d *delivery) (dropped *delivery, why string) {
	// The same event a second time may be the same message, whose first delivery
	// is lost unnoticed: it is kept, and completed only once the first is handled.
	overtaken := func(by *delivery) bool {
		return by != nil && by.position.sequence != d.position.sequence && !by.position.precedes(d.position)
	}
	switch {
	case !l.handled.precedes(d.position):
		return d, "stale or repeated"
	case overtaken(l.current), overtaken(l.next):
		return d, "superseded"
	}
	if l.current != nil && l.current.position.precedes(d.position) {
		l.current.supersede()
	}
	dropped, l.next = l.next, d
	return dropped, "superseded"
}

// serve handles the events of a lane until none waits.
func (r *consumption) serve(l *lane) {
	for d := r.next(l); d != nil; d = r.next(l) {
		r.act(l, d)
	}
}

func (r *consumption) next(l *lane) *delivery {
	for {
		r.mu.Lock()
		d := l.next
		l.current, l.next, l.busy = d, nil, d != nil
		repeated := d != nil && !l.handled.precedes(d.position)
		r.mu.Unlock()
		if !repeated {
			return d
		}
		r.complete(d, "stale or repeated")
	}
}

func (r *consumption) remember(l *lane, p position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.handled = p
}

var errSuperseded = errors.New("a newer event waits")

// act has an event handled and settles it. While it fails its lock is held, so
// that the queue does not deliver it ten times within a second.
func (r *consumption) act(l *lane, d *delivery) {
	pause := r.options.RetryDelay
	for try := range handlerTries {
		err := r.try(d)
		switch {
		case err == nil:
			r.remember(l, d.position)
			r.complete(d, "handled")
			return
		case errors.Is(err, errSuperseded):
			r.complete(d, "superseded")
			return
		case d.lost():
			r.log.Warn("a scale event was not handled before its lock was lost: it comes again", d.name())
			d.end()
			return
		case errors.Is(err, ErrDeadLetter):
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
func (r *consumption) try(d *delivery) error {
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
