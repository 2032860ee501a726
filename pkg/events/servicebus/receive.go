package servicebus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
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

// consumerRun is the part of a Run that outlasts a connection.
type consumerRun struct {
	*Consumer
	log    *slog.Logger
	handle Handler

	running  context.Context // ends when Run has to stop
	handling context.Context // of all handlers: ends when the grace is over
	abort    context.CancelFunc
	slots    chan struct{}  // one for each handler under way
	sessions chan struct{}  // one for each session held
	work     sync.WaitGroup // events being served, renewals, sessions
	stop     func() error   // waits for the work, once
	ceased   chan struct{}  // closed when nothing more is received

	mu       sync.Mutex
	subjects map[string]*subject
}

func newConsumerRun(ctx context.Context, c *Consumer, handle Handler) *consumerRun {
	r := &consumerRun{
		Consumer: c, handle: handle, running: ctx,
		log:      c.options.Log.With(slog.String("queue", c.queue.path())),
		slots:    make(chan struct{}, c.options.Concurrency),
		sessions: make(chan struct{}, sessionsPerHandler*c.options.Concurrency),
		ceased:   make(chan struct{}),
		subjects: map[string]*subject{},
	}
	r.handling, r.abort = context.WithCancel(context.WithoutCancel(ctx))
	r.stop = sync.OnceValue(r.finish)
	return r
}

// finish waits for the work under way, at most for the grace and one try.
func (r *consumerRun) finish() error {
	close(r.ceased)
	ended := make(chan struct{})
	go func() {
		r.work.Wait()
		close(ended)
	}()
	defer r.abort()
	select {
	case <-ended:
		return nil
	case <-time.After(r.options.Grace):
	}
	handlers := len(r.slots)
	r.abort()
	select {
	case <-ended:
	case <-time.After(r.queue.try):
	}
	return fmt.Errorf("consuming scale events from %s: %d handlers were still under way %s after the stop, and their events come again: have handlers end with their context, or allow a longer grace",
		r.queue, handlers, r.options.Grace)
}

// connection receives over one connection until it fails or Run stops, and calls working each time that the
// connection is seen to work. It closes the connection once everything is settled.
func (r *consumerRun) connection(working func()) error {
	client, err := r.queue.connect()
	if err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(r.running))
	defer func() {
		if r.running.Err() != nil {
			_ = r.stop()
		}
		end()
		closeBounded(client.Close)
	}()
	if r.options.Sessions {
		return r.receiveSessions(life, client, working)
	}
	return r.receivePlain(life, client, working)
}

// receivePlain receives and settles on two links, so that a stop can close the first one before the second:
// to an open link the broker would at once deliver again what is given back.
func (r *consumerRun) receivePlain(life context.Context, client *azservicebus.Client, working func()) error {
	settler, err := client.NewReceiverForQueue(r.queue.path(), nil)
	if err != nil {
		return err
	}
	receiver, err := client.NewReceiverForQueue(r.queue.path(), nil)
	if err != nil {
		return err
	}
	defer closeBounded(receiver.Close)
	// Receiving from an empty queue does not show whether the broker answers.
	err = await(r.running, r.queue.try, func(ctx context.Context) error {
		_, err := settler.PeekMessages(ctx, 1, nil)
		return err
	})
	if err != nil {
		return err
	}
	working()
	from := &source{receive: receiver.ReceiveMessages, settler: settler, renew: settler.RenewMessageLock, ctx: life, locked: r.handling}
	for {
		if !take(r.running, r.slots) { // other consumers can take the messages until a handler could start at once
			return r.running.Err()
		}
		<-r.slots
		if err := r.receive(from, max(1, cap(r.slots)-len(r.slots)), math.MaxInt64); err != nil {
			return err
		}
	}
}

func (r *consumerRun) receiveSessions(life context.Context, client *azservicebus.Client, working func()) error {
	wait := r.queue.try // at first, to learn soon that the connection works
	for {
		if !take(r.running, r.sessions) {
			return r.running.Err()
		}
		var session *azservicebus.SessionReceiver
		// Without a session that has messages, the broker reports a timeout. One of our own means that it
		// does not answer.
		err := await(r.running, wait+r.queue.try, func(ctx context.Context) (err error) {
			session, err = client.AcceptNextSessionForQueue(deadlineContext{ctx, time.Now().Add(wait)}, r.queue.path(), nil)
			return err
		})
		if err != nil {
			<-r.sessions
			if code(err) != azservicebus.CodeTimeout {
				return err
			}
		} else {
			r.work.Go(func() {
				defer func() { <-r.sessions }()
				r.receiveSession(life, session)
			})
		}
		working()
		wait = sessionWait
	}
}

// deadlineContext reports another deadline than its context has. The SDK tells the broker to wait until the
// deadline of the context: an earlier one leaves time for the answer.
type deadlineContext struct {
	context.Context
	at time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) { return c.at, true }

// receiveSession receives from a session until it is idle, lost, or Run stops.
func (r *consumerRun) receiveSession(life context.Context, session *azservicebus.SessionReceiver) {
	locked, lose := context.WithCancelCause(r.handling)
	defer context.AfterFunc(life, func() { lose(errLockLost) })()
	defer closeBounded(session.Close)
	defer lose(errLockLost)
	r.work.Go(func() {
		r.renew(locked, session.LockedUntil, func(ctx context.Context) error { return session.RenewSessionLock(ctx, nil) }, lose)
	})
	from := &source{receive: session.ReceiveMessages, settler: session, ctx: life, locked: locked}
	for locked.Err() == nil {
		err := r.receive(from, r.options.Concurrency, sessionIdle)
		switch {
		case err == nil:
		case r.running.Err() != nil:
			from.unsettled.Wait()
			return
		case !errors.Is(err, errNoAnswer), from.open.Load() == 0:
			return
		}
	}
}

// receive serves the next messages. It waits for them for at most a time; then the error is errNoAnswer.
func (r *consumerRun) receive(from *source, n int, wait time.Duration) error {
	var messages []*azservicebus.ReceivedMessage
	err := await(r.running, wait, func(ctx context.Context) (err error) {
		messages, err = from.receive(ctx, n, nil)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(messages) == 0:
		return errLinkLost // the SDK reports that by returning nothing
	}
	var settling sync.WaitGroup
	r.mu.Lock() // so that of several messages the newest is served
	for _, message := range messages {
		d := r.hold(from, message)
		if reason, err := d.decode(); err != nil {
			settling.Go(func() { r.deadLetter(d, reason, err) })
			continue
		}
		s := r.subjects[d.event.Subject()]
		if s == nil {
			s = new(subject)
			r.subjects[d.event.Subject()] = s
		}
		idle := s.current == nil && s.next == nil
		if dropped, why := s.offer(d); dropped != nil {
			settling.Go(func() { r.complete(dropped, why) })
		}
		if idle && s.next != nil {
			r.work.Go(func() { r.serve(s) })
		}
	}
	r.mu.Unlock()
	settling.Wait()
	return nil
}
