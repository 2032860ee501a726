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

// subject has the events of one subject. The mutex of the consumerRun guards it.
type subject struct {
	turn    chan struct{}   // one event is served at a time
	handled events.Position // of the last event that was, or had expired
	newest  *delivery       // of those that are served or wait for their turn; nil if there is none
	dropped int             // events since the last one that was handled, without the superseded ones
}

// Why events are completed unhandled.
const (
	isStale      = "stale or repeated"
	isSuperseded = "superseded"
	isExpired    = "older than its time to live"
)

// Why an event that waits is not handled.
var (
	errSuperseded = errors.New("a newer event waits")
	errStopped    = errors.New("the consumer stops")
)

// offer makes d the newest event, and has an older one wait no longer. If d is to be dropped instead, it
// returns why.
func (s *subject) offer(d *delivery) (why string) {
	switch newest := s.newest; {
	case !s.handled.Precedes(d.position):
		return isStale
	case d.expired():
		s.handled = d.position // so that an older one is stale
		return isExpired
	case newest != nil && newest.position.SameEvent(d.position):
		// Its first delivery may have lost the lock unnoticed: this one waits for its turn, and is repeated then.
		return ""
	case newest != nil && !newest.position.Precedes(d.position):
		return isSuperseded
	case newest != nil:
		newest.leave(errSuperseded)
	}
	s.newest = d
	return ""
}

// manyDropped is how many events of a subject are dropped in a row before each warning.
const manyDropped = 10

// drop completes an event without handling it. If every event of a subject is dropped, a forged one may have
// come before them.
func (r *consumerRun) drop(s *subject, d *delivery, why string) {
	if why == isExpired {
		r.expired.Add(1)
	}
	if why != isSuperseded {
		r.mu.Lock()
		s.dropped++
		dropped, handled := s.dropped, s.handled
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

// serve has an event handled when its turn comes, and settles it.
func (r *consumerRun) serve(s *subject, d *delivery) {
	defer context.AfterFunc(r.running, func() { d.leave(errStopped) })()
	if take(d.waiting, s.turn) {
		r.act(s, d)
		<-s.turn
	} else {
		r.giveUp(d)
	}
	r.mu.Lock()
	if s.newest == d {
		s.newest = nil
	}
	r.mu.Unlock()
}

// act has an event handled, and settles it. It keeps the lock between failures, so that the queue does not
// use up its deliveries within a second.
func (r *consumerRun) act(s *subject, d *delivery) {
	r.mu.Lock()
	repeated := !s.handled.Precedes(d.position)
	r.mu.Unlock()
	if repeated {
		r.drop(s, d, isStale)
		return
	}
	pause := r.options.RetryDelay
	for try := 0; try < handlerTries && take(d.waiting, r.slots); try++ {
		err := r.handle(d.ctx, d.event)
		<-r.slots
		switch {
		case err == nil:
			r.mu.Lock()
			s.handled, s.dropped = d.position, 0
			r.mu.Unlock()
			r.complete(d, "handled")
			return
		case errors.Is(err, events.ErrDeadLetter):
			r.deadLetter(d, err.Error(), err)
			return
		case try == 0 && d.waiting.Err() == nil:
			r.log.Warn("a scale event could not be handled: it is tried again", d.name(), slog.Any("error", err))
		}
		select {
		case <-time.After(pause):
		case <-d.waiting.Done():
		}
		pause = min(2*pause, r.options.maxPause())
	}
	if d.waiting.Err() == nil {
		r.log.Warn("a scale event could not be handled: it goes back to the queue", d.name(), slog.Int("tries", handlerTries))
	}
	r.giveUp(d)
}

// giveUp settles an event that was not handled.
func (r *consumerRun) giveUp(d *delivery) {
	if errors.Is(context.Cause(d.waiting), errSuperseded) {
		r.complete(d, isSuperseded)
		return
	}
	r.abandon(d)
}

// take takes one of several places. It reports false once ctx has ended.
func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		if ctx.Err() == nil {
			return true
		}
		<-places
	case <-ctx.Done():
	}
	return false
}
