package servicebus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/events"
)

const (
	// minRenewal is the shortest pause between renewals of one lock. By a clock ahead of the broker's,
	// every lock has ended already.
	minRenewal = 100 * time.Millisecond
	// maxDescription is how much of a reason is sent with a dead letter, in bytes. The service takes
	// some 4,000 for all of it.
	maxDescription = 1024
	// maxAhead is how far the epoch of an event may be ahead of this machine's clock: one of the far future
	// would make every later event of its subject stale.
	maxAhead = 5 * time.Minute
)

var errLockLost = errors.New("the lock was lost")

// settler settles the messages of a queue or of a session.
type settler interface {
	CompleteMessage(context.Context, *azservicebus.ReceivedMessage, *azservicebus.CompleteMessageOptions) error
	AbandonMessage(context.Context, *azservicebus.ReceivedMessage, *azservicebus.AbandonMessageOptions) error
	DeadLetterMessage(context.Context, *azservicebus.ReceivedMessage, *azservicebus.DeadLetterOptions) error
}

// source is a queue, or one session of it, from which messages are received.
type source struct {
	receive func(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	settler settler
	ctx     context.Context // ends when nothing can be settled here any more
	locked  context.Context // of all its handlers

	// renew is nil for a session, whose lock covers its messages and ends with locked.
	renew func(context.Context, *azservicebus.ReceivedMessage, *azservicebus.RenewMessageLockOptions) error

	unsettled sync.WaitGroup
	open      atomic.Int64 // deliveries that are unsettled
}

// delivery is a message, locked until it is settled.
type delivery struct {
	from    *source
	message *azservicebus.ReceivedMessage
	event   events.ScaleEvent

	ctx     context.Context // of its handler; ends with the lock
	cancel  context.CancelCauseFunc
	waiting context.Context // ends when no handler is to begin: with ctx, at a stop, or with errSuperseded
	leave   context.CancelCauseFunc
}

// hold keeps the lock on a message from now on. The delivery has to be settled.
func (r *consumerRun) hold(from *source, message *azservicebus.ReceivedMessage) *delivery {
	d := &delivery{from: from, message: message}
	d.ctx, d.cancel = context.WithCancelCause(from.locked)
	d.waiting, d.leave = context.WithCancelCause(r.running)
	context.AfterFunc(d.ctx, func() { d.leave(nil) })
	from.unsettled.Add(1)
	from.open.Add(1)
	if from.renew != nil && message.LockedUntil != nil {
		until := func() time.Time { return *message.LockedUntil }
		renew := func(ctx context.Context) error { return from.renew(ctx, message, nil) }
		r.work.Go(func() { r.renew(d.ctx, until, renew, d.cancel) })
	}
	return d
}

// renew renews a lock when half of its time has passed, until ctx ends. Without a connection the lock cannot
// be renewed, and still holds until its end.
func (r *consumerRun) renew(ctx context.Context, until func() time.Time, renew func(context.Context) error, lose context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(time.Until(until())/2, minRenewal)):
		}
		err := await(ctx, r.queue.try, renew)
		if code(err) == azservicebus.CodeLockLost || err != nil && !time.Now().Before(until()) {
			lose(errLockLost)
			return
		}
	}
}

// decode reads the event. With an error it returns the reason of a dead letter.
func (d *delivery) decode() (reason string, err error) {
	d.event, err = events.Decode(d.message.Body)
	if err != nil {
		return "not a scale event", err
	}
	if latest := time.Now().Add(maxAhead).Unix(); d.event.Epoch > latest {
		return "its epoch is in the future", fmt.Errorf("data.epoch is %d, allowed are up to %d: now and %s", d.event.Epoch, latest, maxAhead)
	}
	return "", nil
}

// expired reports whether the event is older than the time to live of its message. The broker does not count
// the time in an outbox before it got the message, and may deliver an expired message until it removes it
// (https://learn.microsoft.com/azure/service-bus-messaging/message-expiration).
func (d *delivery) expired() bool {
	ttl := d.message.TimeToLive
	return ttl != nil && *ttl > 0 && time.Since(d.event.Time) > *ttl
}

// name identifies a delivery in the log, without the body of its message.
func (d *delivery) name() slog.Attr {
	return slog.Group("message", slog.String("id", d.message.MessageID), slog.Uint64("delivery", uint64(d.message.DeliveryCount)))
}

func (r *consumerRun) complete(d *delivery, why string) {
	r.log.Debug("a scale event is completed", d.name(), slog.String("why", why))
	r.settle(d, func(ctx context.Context) error { return d.from.settler.CompleteMessage(ctx, d.message, nil) })
}

// abandon gives a message back. At a stop it waits until the broker can no longer deliver it here again.
func (r *consumerRun) abandon(d *delivery) {
	if r.running.Err() != nil {
		<-r.ceased
	}
	r.settle(d, func(ctx context.Context) error { return d.from.settler.AbandonMessage(ctx, d.message, nil) })
}

// deadLetter logs the reason, and not the error: that of Decode may repeat the message.
func (r *consumerRun) deadLetter(d *delivery, reason string, err error) {
	r.log.Warn("a message goes to the dead-letter queue, with its reason", d.name(), slog.String("reason", reason))
	clip := func(text string) *string { return new(strings.ToValidUTF8(text[:min(len(text), maxDescription)], "")) }
	options := &azservicebus.DeadLetterOptions{Reason: clip(reason), ErrorDescription: clip(err.Error())}
	r.settle(d, func(ctx context.Context) error { return d.from.settler.DeadLetterMessage(ctx, d.message, options) })
}

// settle ends a delivery even if settling fails. Then the event comes again, and is dropped as repeated if
// it was handled.
func (r *consumerRun) settle(d *delivery, call func(context.Context) error) {
	defer d.from.unsettled.Done()
	defer d.from.open.Add(-1)
	defer d.cancel(nil)
	if errors.Is(context.Cause(d.ctx), errLockLost) {
		r.log.Warn("a scale event was not settled before its lock was lost: it comes again", d.name())
		return
	}
	err := await(d.from.ctx, r.queue.try, call)
	if err != nil && d.from.ctx.Err() == nil {
		r.log.Warn("a message could not be settled: it comes again", d.name(), slog.Any("error", r.queue.explain(err, 1)))
	}
}

// handlerTries is how often handling an event may fail before it goes back to the queue, which counts one
// delivery. With the pauses between, a queue of ten deliveries gives an event up after ten minutes.
const handlerTries = 6

// subject has the events of one subject, of which one is handled at a time. The mutex of the consumerRun guards
// it.
type subject struct {
	handled string    // id of the last event that was, or had expired
	current *delivery // that is handled or tried again; nil if there is none
	next    *delivery // the newest of those that wait for the end of current; nil if there is none
}

// Why events are completed unhandled.
const (
	isStale      = "stale or repeated"
	isSuperseded = "superseded"
	isExpired    = "older than its time to live"
)

var errSuperseded = errors.New("a newer event waits")

// offer has d wait as the next event, and current be tried no longer if it is older. It returns the delivery that
// is to be dropped, if any, and why: d itself, or the one that waited before.
func (s *subject) offer(d *delivery) (dropped *delivery, why string) {
	id := d.event.ID()
	switch {
	case id <= s.handled:
		return d, isStale
	case d.expired():
		s.handled = id // so that an older one is stale
		return d, isExpired
	case s.current != nil && id < s.current.event.ID(), s.next != nil && id < s.next.event.ID():
		return d, isSuperseded
	}
	if s.current != nil { // a second delivery of one event waits, too: the first may have lost its lock unnoticed
		s.current.leave(errSuperseded)
	}
	dropped, s.next = s.next, d
	return dropped, isSuperseded
}

// serve has the events of a subject handled and settled until none waits.
func (r *consumerRun) serve(s *subject) {
	for {
		r.mu.Lock()
		s.current, s.next = s.next, nil
		d, repeated := s.current, s.current != nil && s.current.event.ID() <= s.handled
		r.mu.Unlock()
		switch {
		case d == nil:
			return
		case repeated:
			r.complete(d, isStale)
		default:
			r.act(s, d)
		}
	}
}

// act has an event handled, and settles it. It keeps the lock between failures, so that the queue does not use up
// its deliveries within a second.
func (r *consumerRun) act(s *subject, d *delivery) {
	pause := r.options.RetryDelay
	for try := 0; try < handlerTries && take(d.waiting, r.slots); try++ {
		err := r.handle(d.ctx, d.event)
		<-r.slots
		switch {
		case err == nil:
			r.mu.Lock()
			s.handled = max(s.handled, d.event.ID())
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
	switch {
	case errors.Is(context.Cause(d.waiting), errSuperseded):
		r.complete(d, isSuperseded)
		return
	case d.waiting.Err() == nil:
		r.log.Warn("a scale event could not be handled: it goes back to the queue", d.name(), slog.Int("tries", handlerTries))
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
