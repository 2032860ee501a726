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
	// maxAhead is how far the epoch of an event may be ahead of this machine's clock.
	maxAhead = 5 * time.Minute
)

var (
	errLockLost = errors.New("the lock was lost")
	// errAhead is the error of an event that would make every later one of its subject stale.
	errAhead = errors.New("its epoch is in the future")
)

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

	// renew is nil for a session, whose lock covers its messages and ends with ctx.
	renew func(context.Context, *azservicebus.ReceivedMessage, *azservicebus.RenewMessageLockOptions) error

	unsettled sync.WaitGroup
	open      atomic.Int64 // deliveries that are unsettled
}

// delivery is a message, locked until it is settled.
type delivery struct {
	from     *source
	message  *azservicebus.ReceivedMessage
	event    events.ScaleEvent
	position events.Position

	ctx        context.Context // of its handler; ends with the lock
	cancel     context.CancelCauseFunc
	superseded context.Context // ends when a newer event waits
	supersede  context.CancelFunc
	leave      func() bool // ends the wait for the end of the session; nil without sessions
}

// hold keeps the lock on a message from now on. The error is errAhead, or says why it is no scale event; the
// delivery has to be settled all the same.
func (r *consumerRun) hold(from *source, message *azservicebus.ReceivedMessage) (*delivery, error) {
	d := &delivery{from: from, message: message}
	d.ctx, d.cancel = context.WithCancelCause(r.handling)
	d.superseded, d.supersede = context.WithCancel(context.Background())
	from.unsettled.Add(1)
	from.open.Add(1)
	lose := func() { d.cancel(errLockLost) }
	if from.renew == nil {
		d.leave = context.AfterFunc(from.ctx, lose)
	} else if message.LockedUntil != nil {
		until := func() time.Time { return *message.LockedUntil }
		renew := func(ctx context.Context) error { return from.renew(ctx, message, nil) }
		r.work.Go(func() { r.keep(d.ctx, until, renew, lose) })
	}
	var err error
	d.event, err = events.Decode(message.Body)
	d.position = d.event.Position()
	if latest := time.Now().Add(maxAhead).Unix(); err == nil && d.position.Epoch > latest {
		err = fmt.Errorf("%w: data.epoch is %d, allowed are up to %d: now and %s", errAhead, d.position.Epoch, latest, maxAhead)
	}
	return d, err
}

// expired reports whether the event is older than the time to live of its message. The broker does not count
// the time in an outbox before it got the message, and may deliver an expired message until it removes it
// (https://learn.microsoft.com/azure/service-bus-messaging/message-expiration).
func (d *delivery) expired() bool {
	ttl := d.message.TimeToLive
	return ttl != nil && *ttl > 0 && time.Since(d.event.Time) > *ttl
}

// keep renews a lock when half of its time has passed, until ctx ends. Without a connection the lock cannot
// be renewed, and still holds until its end.
func (r *consumerRun) keep(ctx context.Context, until func() time.Time, renew func(context.Context) error, lose func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(time.Until(until())/2, minRenewal)):
		}
		err := perform(ctx, r.options.TryTimeout, renew)
		if code(err) == azservicebus.CodeLockLost || err != nil && !time.Now().Before(until()) {
			lose()
			return
		}
	}
}

func (d *delivery) lost() bool { return errors.Is(context.Cause(d.ctx), errLockLost) }

// end stops renewing the lock, and frees what a long session would keep of the delivery.
func (d *delivery) end() {
	if d.leave != nil {
		d.leave()
	}
	d.cancel(nil)
	d.supersede()
	d.from.open.Add(-1)
	d.from.unsettled.Done()
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
	reason, description := clip(reason), clip(err.Error())
	r.settle(d, func(ctx context.Context) error {
		return d.from.settler.DeadLetterMessage(ctx, d.message, &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description})
	})
}

func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxDescription)], "")
}

// settle ends a delivery even if settling fails. Then the event comes again, and is dropped as repeated if
// it was handled.
func (r *consumerRun) settle(d *delivery, call func(context.Context) error) {
	defer d.end()
	if d.lost() {
		return
	}
	err := perform(d.from.ctx, r.options.TryTimeout, call)
	if err != nil && d.from.ctx.Err() == nil {
		r.log.Warn("a message could not be settled: it comes again", d.name(), slog.Any("error", r.queue.explain(err, 1)))
	}
}
