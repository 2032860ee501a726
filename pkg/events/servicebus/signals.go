package servicebus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// SignalType is the Subject of each message in a signal queue.
const SignalType = "feedscale.signal.v1"

// SignalsOptions say how signal queues are reached.
type SignalsOptions struct {
	TryTimeout time.Duration // of one request, connecting and tokens included; 0 = 3 s

	// Client is handed to the SDK: TLS, a proxy, a custom endpoint. Its RetryOptions are not used.
	Client azservicebus.ClientOptions

	// Link connects to a queue by another way than the SDK's client; nil = by that.
	Link func(queue string) SignalLink
}

// Signals keeps the counts of signal queues (docs/act.md, Signal queue): queues that hold one message for
// each replica that is wanted, which KEDA's azure-servicebus scaler counts.
//
// A queue is counted by peeking, which needs no right to manage it and tells the truth at once. What is too
// much is received and deleted in one step, so that no lock of a process that was killed keeps a message
// in the queue. Each queue has a connection of its own: one that hangs delays no other.
type Signals struct {
	namespace string
	open      func(name string, a access) (queue, error)
	options   SignalsOptions

	mu     sync.Mutex
	closed bool
	queues map[string]*signalQueue
}

// NewSignals returns Signals that authenticate with a connection string of the namespace. Nothing is
// connected yet: an error is one of the connection string.
func NewSignals(connectionString string, o SignalsOptions) (*Signals, error) {
	o = o.withDefaults()
	connectionString = strings.TrimSpace(connectionString)
	host, _ := inspectConnectionString(connectionString)
	return newSignals(&Signals{
		namespace: host, options: o,
		open: func(name string, a access) (queue, error) { return queueByKey(connectionString, name, a, o.Client) },
	})
}

// NewSignalsWithIdentity returns Signals that authenticate with an identity, which needs the roles Azure
// Service Bus Data Sender and Azure Service Bus Data Receiver on each queue.
func NewSignalsWithIdentity(namespace string, identity azcore.TokenCredential, o SignalsOptions) (*Signals, error) {
	o = o.withDefaults()
	return newSignals(&Signals{
		namespace: namespace, options: o,
		open: func(name string, a access) (queue, error) {
			return queueByIdentity(namespace, identity, name, a, o.TryTimeout, o.Client)
		},
	})
}

// newSignals looks at the connection before the first queue is asked for.
func newSignals(s *Signals) (*Signals, error) {
	if _, err := s.open("any", sending()); err != nil {
		return nil, err
	}
	s.namespace, s.queues = strings.ToLower(s.namespace), map[string]*signalQueue{}
	return s, nil
}

func (o SignalsOptions) withDefaults() SignalsOptions {
	if o.TryTimeout <= 0 {
		o.TryTimeout = 3 * time.Second
	}
	o.Client.RetryOptions = retryOnce(100 * time.Millisecond)
	return o
}

// Namespace is the host of the namespace that holds the queues.
func (s *Signals) Namespace() string { return s.namespace }

// Keep makes a queue hold so many messages, whoever has put or taken some since the last time. It sends
// what is missing in one step, and takes back the oldest where there are too many, so that the count is
// never below the lower one of before and after; where several instances act at once, each may take one too
// much for a moment. A queue that holds anything else than signals is left alone:
// its messages are not ours to take.
//
// The error says what to do; it is a *Refusal where the service said so. Whatever of it was done by then,
// the next call makes it right.
func (s *Signals) Keep(ctx context.Context, name string, replicas int) error {
	q, err := s.queue(name)
	if err != nil {
		return err
	}
	return q.keep(ctx, replicas)
}

// Empty takes all signals out of a queue that nothing uses any more. One that does not exist is empty.
func (s *Signals) Empty(ctx context.Context, name string) error {
	err := s.Keep(ctx, name, 0)
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.Kind == QueueNotFound {
		return nil
	}
	return err
}

// Probe finds out whether a queue can be sent to and received from, and whether it holds nothing but
// signals. It changes nothing.
func (s *Signals) Probe(ctx context.Context, name string) error {
	q, err := s.queue(name)
	if err != nil {
		return err
	}
	return q.probe(ctx)
}

// Close ends all connections, within a second.
func (s *Signals) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var closing sync.WaitGroup
	for _, q := range s.queues {
		closing.Go(q.disconnect)
	}
	closing.Wait()
	return nil
}

func (s *Signals) queue(name string) (*signalQueue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	key := strings.ToLower(name) // as the service compares names
	if q := s.queues[key]; q != nil {
		return q, nil
	}
	sender, err := s.open(name, ofSignals(sending()))
	if err != nil {
		return nil, err
	}
	receiver, err := s.open(name, ofSignals(receiving(false)))
	if err != nil {
		return nil, err
	}
	q := &signalQueue{sending: sender, receiving: receiver, timeout: s.options.TryTimeout, turn: make(chan struct{}, 1), open: s.options.Link}
	s.queues[key] = q
	return q, nil
}

// signalQueue is one queue of signals.
type signalQueue struct {
	sending, receiving queue // the same queue, for refusals of the one and of the other
	timeout            time.Duration
	turn               chan struct{} // one at a time
	open               func(queue string) SignalLink

	mu   sync.Mutex
	link SignalLink // nil where none is open
}

// signalTries is how often a request is tried: a connection that stood idle may be found lost.
const signalTries = 2

// keep brings the count to replicas, until one look finds it there: the SDK repeats a batch whose answer was
// lost, and another instance may have acted at once.
func (q *signalQueue) keep(ctx context.Context, replicas int) error {
	return q.try(ctx, func(ctx context.Context, l SignalLink) error {
		for {
			present, err := q.count(ctx, l, replicas)
			more := len(present) - replicas
			switch {
			case err != nil || more == 0:
				return err
			case more < 0:
				err = q.send(ctx, l, -more)
			default:
				var done bool
				if done, err = q.takeBack(ctx, l, present[:more], replicas); done {
					return err
				}
			}
			if err != nil {
				return err
			}
		}
	})
}

func (q *signalQueue) probe(ctx context.Context) error {
	return q.try(ctx, func(ctx context.Context, l SignalLink) error {
		if _, err := q.count(ctx, l, 0); err != nil {
			return err
		}
		_, err := signalCall(ctx, q, q.sending, func(ctx context.Context) (int, error) { return l.Send(ctx, 0) })
		return err
	})
}

func (q *signalQueue) try(ctx context.Context, do func(context.Context, SignalLink) error) error {
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for try := 1; ; try++ {
		link, err := q.connect()
		if err != nil {
			return err
		}
		err = do(ctx, link)
		if err == nil {
			return nil
		}
		q.disconnect()
		var failed *signalError
		if !errors.As(err, &failed) {
			return err
		}
		if try == signalTries || ctx.Err() != nil || isFinal(failed.err) {
			return failed.queue.explain(failed.err, try, q.timeout)
		}
	}
}

// signalError is what the SDK said, and what the queue was used for.
type signalError struct {
	queue queue
	err   error
}

func (e *signalError) Error() string { return e.err.Error() }

// signalCall calls the SDK for at most the time of one request.
func signalCall[T any](ctx context.Context, q *signalQueue, use queue, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeout, errNoAnswer)
	defer cancel()
	value, err := await(ctx, func() (T, error) { return call(ctx) })
	if err == nil {
		return value, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx) // the SDK's own error is then only that it was interrupted
	}
	return value, &signalError{use, err}
}

// peekPage is how many messages are peeked at once, and peekMore how many more than wanted are counted: what
// is beyond them is taken back at the next time.
const (
	peekPage = 250
	peekMore = 1000
)

// count returns the sequence numbers of the signals in the queue, the oldest first: those that a scaler
// counts, which are also the locked ones (https://github.com/Azure/azure-sdk-for-net/pull/27238) and the
// deferred ones (https://github.com/paolosalvatori/ServiceBusExplorer/issues/662), and not the scheduled ones.
func (q *signalQueue) count(ctx context.Context, l SignalLink, wanted int) ([]int64, error) {
	var present []int64
	next := int64(1)
	for len(present) <= wanted+peekMore {
		page, err := signalCall(ctx, q, q.receiving, func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
			return l.PeekMessages(ctx, peekPage, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &next})
		})
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return present, nil
		}
		for _, m := range page {
			if !isSignal(m) {
				return nil, q.foreign(m)
			}
			next = max(next, *m.SequenceNumber+1)
			if m.State != azservicebus.MessageStateScheduled {
				present = append(present, *m.SequenceNumber)
			}
		}
	}
	return present, nil
}

func isSignal(m *azservicebus.ReceivedMessage) bool {
	return m.Subject != nil && *m.Subject == SignalType
}

func (q *signalQueue) foreign(m *azservicebus.ReceivedMessage) error {
	return fmt.Errorf("queue %q of Service Bus namespace %s holds messages that are no signals, such as %q: none is sent or taken; name a queue that nothing else uses as signalQueue, or remove them",
		q.receiving.name, q.receiving.host, m.MessageID)
}

// send adds so many messages in one step, unless they are more than fit into one batch.
func (q *signalQueue) send(ctx context.Context, l SignalLink, missing int) error {
	for missing > 0 {
		sent, err := signalCall(ctx, q, q.sending, func(ctx context.Context) (int, error) { return l.Send(ctx, missing) })
		if err != nil {
			return err
		}
		missing -= sent
	}
	return nil
}

// takeBack deletes the given messages, which are the oldest, one by one: a queue hands out the oldest first.
// Where it hands out another one, others have taken or locked some of those, and the count is looked at anew.
// done reports that nothing more can be taken.
func (q *signalQueue) takeBack(ctx context.Context, l SignalLink, surplus []int64, wanted int) (done bool, err error) {
	for range surplus {
		m, err := q.takeOne(ctx, l)
		switch {
		case err != nil:
			return true, err
		case m == nil:
			defer q.disconnect() // what was asked for may still come, and would be deleted unseen
			present, err := q.count(ctx, l, wanted)
			if more := len(present) - wanted; err == nil && more > 0 {
				err = fmt.Errorf("queue %q of Service Bus namespace %s holds %d messages more than replicas are wanted, and another consumer keeps them locked, or deferred them: see that nothing else receives from it",
					q.receiving.name, q.receiving.host, more)
			}
			return true, err
		case !slices.Contains(surplus, *m.SequenceNumber):
			return false, nil
		}
	}
	return false, nil
}

// idleWait is how long the broker may take to hand out a message that is there.
const idleWait = time.Second

// takeOne receives and deletes one message; nil where the broker hands none out. It asks for one at a time:
// what is asked for is deleted once it is sent, be it received or not.
func (q *signalQueue) takeOne(ctx context.Context, l SignalLink) (*azservicebus.ReceivedMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, min(idleWait, q.timeout))
	defer cancel()
	messages, err := await(ctx, func() ([]*azservicebus.ReceivedMessage, error) { return l.ReceiveMessages(ctx, 1, nil) })
	switch {
	case len(messages) > 0:
		return messages[0], nil
	case ctx.Err() != nil:
		return nil, nil
	case err == nil:
		err = errLinkLost // which the SDK says by returning nothing
	}
	return nil, &signalError{q.receiving, err}
}
