package servicebus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	// sessionWait is how long the broker waits for a session that has messages.
	sessionWait = time.Minute
	// sessionIdle is how long a session without messages is kept: each is one subject, and others wait for
	// its place.
	sessionIdle = time.Second
	// sessionsPerHandler bounds the sessions held at once. A subject whose event waits for another try
	// holds a session and no handler.
	sessionsPerHandler = 8
)

var errGrace = errors.New("the consumer stops")

// consumerRun is the part of a Run that outlasts a connection.
type consumerRun struct {
	queue   queue
	options ConsumerOptions
	log     *slog.Logger
	handle  Handler
	expired *atomic.Int64 // events that were too old

	running  context.Context // ends when Run has to stop
	handling context.Context // of all handlers: ends when the grace is over
	abort    context.CancelCauseFunc
	slots    chan struct{}  // one for each handler under way
	sessions chan struct{}  // one for each session held
	work     sync.WaitGroup // subjects being served, renewals, sessions
	stop     func() error   // waits for the work, once
	ceased   chan struct{}  // closed when nothing more is received

	mu       sync.Mutex
	subjects map[string]*subjectQueue
}

func newConsumerRun(ctx context.Context, c *Consumer, handle Handler) *consumerRun {
	r := &consumerRun{
		queue: c.queue, options: c.options, handle: handle, expired: &c.expired, running: ctx,
		log:      c.options.Log.With(slog.String("queue", c.queue.path())),
		slots:    make(chan struct{}, c.options.Concurrency),
		sessions: make(chan struct{}, sessionsPerHandler*c.options.Concurrency),
		ceased:   make(chan struct{}),
		subjects: map[string]*subjectQueue{},
	}
	r.handling, r.abort = context.WithCancelCause(context.WithoutCancel(ctx))
	r.stop = sync.OnceValue(r.finish)
	return r
}

// connection receives over one connection until it fails or ctx ends, and calls working each time that the
// connection is seen to work. It closes the connection once everything is settled.
func (r *consumerRun) connection(ctx context.Context, working func()) error {
	client, err := r.queue.connect()
	if err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if ctx.Err() != nil {
			_ = r.stop()
		}
		end()
		closeBounded(client.Close)
	}()
	if r.options.Sessions {
		return r.receiveSessions(ctx, life, client, working)
	}
	return r.receivePlain(ctx, life, client, working)
}

// receivePlain receives and settles on two links, so that a stop can close the first one before the second:
// to an open link the broker would at once deliver again what is given back.
func (r *consumerRun) receivePlain(ctx, life context.Context, client *azservicebus.Client, working func()) error {
	settler, err := r.queue.receiver(client)
	if err != nil {
		return err
	}
	receiver, err := r.queue.receiver(client)
	if err != nil {
		return err
	}
	defer closeBounded(receiver.Close)
	// Receiving from an empty queue does not show whether the broker answers.
	_, err = within(ctx, r.options.TryTimeout, func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
		return settler.PeekMessages(ctx, 1, nil)
	})
	if err != nil {
		return err
	}
	working()
	from := &source{receive: receiver.ReceiveMessages, settler: settler, renew: settler.RenewMessageLock, ctx: life}
	for {
		if err := r.room(ctx); err != nil {
			return err
		}
		if err := r.receive(ctx, from, max(1, cap(r.slots)-len(r.slots))); err != nil {
			return err
		}
	}
}

// room waits until a handler could start at once: other consumers can take the messages meanwhile.
func (r *consumerRun) room(ctx context.Context) error {
	select {
	case r.slots <- struct{}{}:
		<-r.slots
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *consumerRun) receiveSessions(ctx, life context.Context, client *azservicebus.Client, working func()) error {
	wait := r.options.TryTimeout // at first, to learn soon that the connection works
	for {
		if err := r.room(ctx); err != nil {
			return err
		}
		select {
		case r.sessions <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		session, err := r.accept(ctx, client, wait)
		if err != nil {
			<-r.sessions
			if code(err) != azservicebus.CodeTimeout {
				return err
			}
		}
		working()
		wait = sessionWait
		if session != nil {
			r.work.Go(func() {
				defer func() { <-r.sessions }()
				r.receiveSession(ctx, life, session)
			})
		}
	}
}

// accept takes the next session that has messages. If there is none, the broker reports a timeout; a
// timeout of our own means that the broker does not answer.
func (r *consumerRun) accept(ctx context.Context, client *azservicebus.Client, wait time.Duration) (*azservicebus.SessionReceiver, error) {
	return within(ctx, wait+r.options.TryTimeout, func(ctx context.Context) (*azservicebus.SessionReceiver, error) {
		return r.queue.nextSession(deadlineContext{ctx, time.Now().Add(wait)}, client)
	})
}

// deadlineContext reports another deadline than its context has. The SDK tells the broker to wait until the
// deadline of the context: an earlier one leaves time for the answer.
type deadlineContext struct {
	context.Context
	at time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) { return c.at, true }

// receiveSession receives from a session until it is idle, lost, or Run stops.
func (r *consumerRun) receiveSession(ctx, life context.Context, session *azservicebus.SessionReceiver) {
	held, lose := context.WithCancel(life)
	defer func() {
		lose()
		closeBounded(session.Close)
	}()
	r.work.Go(func() {
		r.keep(held, session.LockedUntil, func(ctx context.Context) error { return session.RenewSessionLock(ctx, nil) }, lose)
	})
	from := &source{receive: session.ReceiveMessages, settler: session, ctx: held}
	for held.Err() == nil {
		waiting, cancel := context.WithTimeout(ctx, sessionIdle)
		err := r.receive(waiting, from, r.options.Concurrency)
		idle := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			from.unsettled.Wait()
			return
		case !idle, from.open.Load() == 0:
			return
		}
	}
}

// receive hands the next messages to the queues of their subjects.
func (r *consumerRun) receive(ctx context.Context, from *source, n int) error {
	messages, err := await(ctx, func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) { return from.receive(ctx, n, nil) })
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return errLinkLost // the SDK reports that by returning nothing
	}
	r.dispatch(from, messages)
	return nil
}

func (r *consumerRun) dispatch(from *source, messages []*azservicebus.ReceivedMessage) {
	var settling sync.WaitGroup
	r.mu.Lock()
	for _, message := range messages {
		d, err := r.hold(from, message)
		if err != nil {
			reason := "not a scale event"
			if errors.Is(err, errAhead) {
				reason = errAhead.Error()
			}
			settling.Go(func() { r.deadLetter(d, reason, err) })
			continue
		}
		q := r.subjects[d.event.Subject()]
		if q == nil {
			q = &subjectQueue{}
			r.subjects[d.event.Subject()] = q
		}
		if dropped, why := q.offer(d); dropped != nil {
			settling.Go(func() { r.drop(q, dropped, why) })
		}
		if q.next != nil && !q.busy {
			q.busy = true
			r.work.Go(func() { r.serve(q) }) // it waits for the mutex, and then takes the newest
		}
	}
	r.mu.Unlock()
	settling.Wait()
}

// finish waits for the work under way, at most for the grace and one try.
func (r *consumerRun) finish() error {
	close(r.ceased)
	ended := make(chan struct{})
	go func() {
		r.work.Wait()
		close(ended)
	}()
	defer r.abort(errGrace)
	select {
	case <-ended:
		return nil
	case <-time.After(r.options.Grace):
	}
	handlers := len(r.slots)
	r.abort(errGrace)
	select {
	case <-ended:
	case <-time.After(r.options.TryTimeout):
	}
	return fmt.Errorf("consuming scale events from %s: %d handlers were still under way %s after the stop, and their events come again: have handlers end with their context, or allow a longer grace",
		r.queue, handlers, r.options.Grace)
}
