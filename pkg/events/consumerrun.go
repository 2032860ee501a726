package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	// sessionWait is how long the broker waits for a session that has messages.
	sessionWait = time.Minute
	// sessionIdle is how long a session is kept that has no more messages: each
	// is one processor, and others wait for its place.
	sessionIdle = time.Second
	// sessionsPerHandler bounds the sessions held at once. Those whose events wait
	// to be tried again hold a session and no handler.
	sessionsPerHandler = 8
)

var (
	errLinkLost = errors.New("the link was lost")
	errGrace    = errors.New("the consumer stops")
)

// consumption is one Run: what outlasts a connection.
type consumption struct {
	queue   serviceBusQueue
	options ConsumerOptions
	log     *slog.Logger
	handle  Handler

	running  context.Context // ends when Run is to stop
	handling context.Context // of all handlers: ends when the grace is over
	abort    context.CancelCauseFunc
	slots    chan struct{}  // one for each handler under way
	sessions chan struct{}  // one for each session held
	work     sync.WaitGroup // lanes at work, renewals, sessions
	stop     func() error   // waits until all of it has ended, once
	ceased   chan struct{}  // closed when nothing is received any more

	mu    sync.Mutex
	lanes map[string]*lane // by processor
}

func newConsumption(ctx context.Context, c *Consumer, handle Handler) *consumption {
	r := &consumption{
		queue: c.queue, options: c.options, handle: handle, running: ctx,
		log:      c.options.Log.With(slog.String("queue", c.queue.name)),
		slots:    make(chan struct{}, c.options.Concurrency),
		sessions: make(chan struct{}, sessionsPerHandler*c.options.Concurrency),
		ceased:   make(chan struct{}),
		lanes:    map[string]*lane{},
	}
	r.handling, r.abort = context.WithCancelCause(context.WithoutCancel(ctx))
	r.stop = sync.OnceValue(r.finish)
	return r
}

// connection receives over one connection until it fails or ctx ends, and tells
// working whenever it is seen to work. It closes it once all is settled.
func (r *consumption) connection(ctx context.Context, working func()) error {
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

func closeBounded(closeIt func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, _ = await(ctx, func() (struct{}, error) { return struct{}{}, closeIt(ctx) })
}

// receivePlain settles apart from receiving, so that a stop can end the one
// before the other: on an open link the broker would deliver again at once what
// is given back to it.
func (r *consumption) receivePlain(ctx, life context.Context, client *azservicebus.Client, working func()) error {
	settler, err := client.NewReceiverForQueue(r.queue.name, nil)
	if err != nil {
		return err
	}
	receiver, err := client.NewReceiverForQueue(r.queue.name, nil)
	if err != nil {
		return err
	}
	defer closeBounded(receiver.Close)
	// Receiving from an empty queue would not tell whether anybody is there.
	trying, cancel := context.WithTimeoutCause(ctx, r.options.TryTimeout, errNoAnswer)
	defer cancel()
	_, err = await(trying, func() ([]*azservicebus.ReceivedMessage, error) { return settler.PeekMessages(trying, 1, nil) })
	if err != nil {
		return err
	}
	working()
	in := &intake{receive: receiver.ReceiveMessages, settler: settler, renew: settler.RenewMessageLock, ctx: life}
	for {
		if err := r.room(ctx); err != nil {
			return err
		}
		if err := r.receive(ctx, in, max(1, cap(r.slots)-len(r.slots))); err != nil {
			return err
		}
	}
}

// room waits until a handler could start at once: messages that would only wait
// here are left to other consumers.
func (r *consumption) room(ctx context.Context) error {
	select {
	case r.slots <- struct{}{}:
		<-r.slots
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sooner tells the broker an earlier end than the caller waits for, so that its
// answer is not overtaken by the caller's own.
type sooner struct {
	context.Context
	end time.Time
}

func (s sooner) Deadline() (time.Time, bool) { return s.end, true }

func (r *consumption) receiveSessions(ctx, life context.Context, client *azservicebus.Client, working func()) error {
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

// accept takes the next session that has messages. That there is none is a
// timeout of the broker; one of our own is that it does not answer.
func (r *consumption) accept(ctx context.Context, client *azservicebus.Client, wait time.Duration) (*azservicebus.SessionReceiver, error) {
	trying, cancel := context.WithTimeoutCause(ctx, wait+r.options.TryTimeout, errNoAnswer)
	defer cancel()
	return await(trying, func() (*azservicebus.SessionReceiver, error) {
		return client.AcceptNextSessionForQueue(sooner{trying, time.Now().Add(wait)}, r.queue.name, nil)
	})
}

// receiveSession receives from a session until it is idle, lost, or Run stops.
func (r *consumption) receiveSession(ctx, life context.Context, session *azservicebus.SessionReceiver) {
	held, lose := context.WithCancel(life)
	defer func() {
		lose()
		closeBounded(session.Close)
	}()
	r.work.Go(func() {
		r.keep(held, session.LockedUntil, func(ctx context.Context) error { return session.RenewSessionLock(ctx, nil) }, lose)
	})
	in := &intake{receive: session.ReceiveMessages, settler: session, ctx: held}
	for held.Err() == nil {
		waiting, cancel := context.WithTimeout(ctx, sessionIdle)
		err := r.receive(waiting, in, r.options.Concurrency)
		idle := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			in.unsettled.Wait()
			return
		case !idle, in.open.Load() == 0:
			return
		}
	}
}

// receive hands the next messages to the lanes of their processors.
func (r *consumption) receive(ctx context.Context, in *intake, n int) error {
	messages, err := await(ctx, func() ([]*azservicebus.ReceivedMessage, error) { return in.receive(ctx, n, nil) })
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return errLinkLost // which the SDK says by returning nothing, to connect again when called again
	}
	r.dispatch(in, messages)
	return nil
}

func (r *consumption) dispatch(in *intake, messages []*azservicebus.ReceivedMessage) {
	var settling sync.WaitGroup
	r.mu.Lock()
	for _, message := range messages {
		d, err := r.hold(in, message)
		if err != nil {
			settling.Go(func() { r.deadLetter(d, "not a scale event", err) })
			continue
		}
		l := r.lanes[d.event.Processor]
		if l == nil {
			l = &lane{}
			r.lanes[d.event.Processor] = l
		}
		if dropped, why := l.offer(d); dropped != nil {
			settling.Go(func() { r.complete(dropped, why) })
		}
		if l.next != nil && !l.busy {
			l.busy = true
			r.work.Go(func() { r.serve(l) }) // which waits for the mutex, and then takes the newest
		}
	}
	r.mu.Unlock()
	settling.Wait()
}

// finish waits for what is under way, and bounds that wait.
func (r *consumption) finish() error {
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
	return fmt.Errorf("consuming scale events from queue %q: %d handlers were still under way %s after the stop, and their events come again: have handlers end with their context, or allow a longer grace",
		r.queue.name, handlers, r.options.Grace)
}
