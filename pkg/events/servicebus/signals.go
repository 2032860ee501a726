package servicebus

import (
	"cmp"
	"context"
	"crypto/rand"
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

	// Link connects to a queue in another way than the SDK, for simulations; nil = by the SDK.
	Link func(queue string) Link
}

// Signals keeps the counts of signal queues (docs/signal-queue.md): queues that hold one message for
// each replica that is wanted, which KEDA's azure-servicebus scaler counts.
//
// A queue is counted by peeking, which needs no right to manage it and is exact at once. The surplus is
// received and deleted in one step: so a process that is killed leaves no locked message behind. Each
// queue has a connection of its own, so that one that hangs delays no other.
type Signals struct {
	namespace namespace
	link      func(queue string) Link

	mu     sync.Mutex
	closed bool
	queues map[string]*signalQueue
}

// NewSignals returns Signals in the namespace of a Publisher, which sign in as it does. An identity needs the
// roles Azure Service Bus Data Sender and Azure Service Bus Data Receiver on each queue.
func NewSignals(p *Publisher, o SignalsOptions) *Signals {
	n := p.queue.namespace
	n.try = cmp.Or(max(0, o.TryTimeout), 3*time.Second)
	return &Signals{namespace: n, link: o.Link, queues: map[string]*signalQueue{}}
}

// Namespace is the host of the namespace that holds the queues, in lower case.
func (s *Signals) Namespace() string { return strings.ToLower(s.namespace.host) }

// Keep makes a queue hold a number of messages. It sends the missing ones in one step, and takes back the
// oldest of the surplus. The count never drops below the smaller of the old and the new value; if several
// callers act at once, each may take one too many for a moment. A queue that holds anything but signals is
// left alone.
//
// The error says what to do; it is a *Refusal if the service refused. The next call corrects what was done
// only in part.
func (s *Signals) Keep(ctx context.Context, name string, replicas int) error {
	q, err := s.queue(name)
	if err != nil {
		return err
	}
	// It counts anew after each step: the SDK repeats a batch whose answer was lost, and another instance may act
	// at the same time.
	for stuck := false; ; {
		present, err := q.count(ctx, replicas)
		more := len(present) - replicas
		switch {
		case err != nil || more == 0:
			return err
		case more < 0:
			err = q.send(ctx, -more)
		case stuck:
			return fmt.Errorf("%s of Service Bus namespace %s holds %d messages too many, which another consumer has locked or deferred: see that nothing else receives from it", q, q.host, more)
		default:
			stuck, err = q.takeBack(ctx, present[:more])
		}
		if err != nil {
			return err
		}
	}
}

// Empty takes all signals out of a queue. A queue that does not exist is empty.
func (s *Signals) Empty(ctx context.Context, name string) error {
	err := s.Keep(ctx, name, 0)
	if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Kind == QueueNotFound {
		return nil
	}
	return err
}

// Probe finds out whether signals can be sent to a queue and received from it, and whether it holds
// anything else. It changes nothing.
func (s *Signals) Probe(ctx context.Context, name string) error {
	q, err := s.queue(name)
	if err != nil {
		return err
	}
	if _, err := q.count(ctx, 0); err != nil {
		return err
	}
	return q.send(ctx, 0)
}

// QueueSettings are the settings by which a queue may lose its signals while feedscale is down.
type QueueSettings struct {
	TimeToLive   string // of a message without one of its own, as an ISO 8601 duration; "" = for ever
	DeletedAfter string // of the queue when it is idle, as an ISO 8601 duration; "" = never
	ForwardsTo   string // "" = nowhere
}

// Settings reads the settings of a queue through the management API (HTTPS). It needs more than Keep: the
// Manage right, or the role Azure Service Bus Data Owner.
func (s *Signals) Settings(ctx context.Context, name string) (QueueSettings, error) {
	client, err := s.namespace.manage()
	if err != nil {
		return QueueSettings{}, err
	}
	q, err := client.GetQueue(ctx, name, nil)
	if answer, refused := errors.AsType[*azcore.ResponseError](err); refused {
		err = fmt.Errorf("it answered %d", answer.StatusCode)
	} else if err == nil && q == nil {
		err = fmt.Errorf("queue %q does not exist", name)
	}
	if err != nil {
		return QueueSettings{}, fmt.Errorf("the management API of Service Bus namespace %s (HTTPS), which takes the Manage right, or the role Azure Service Bus Data Owner: %w", s.Namespace(), err)
	}
	return QueueSettings{finite(q.DefaultMessageTimeToLive), finite(q.AutoDeleteOnIdle), *cmp.Or(q.ForwardTo, new(""))}, nil
}

// finite returns a duration; "" for the longest one, which the service uses for "never"
// (https://learn.microsoft.com/azure/service-bus-messaging/message-expiration).
func finite(duration *string) string {
	if duration == nil || strings.HasPrefix(*duration, "P10675199D") {
		return ""
	}
	return *duration
}

// Close ends all connections, whatever the broker does.
func (s *Signals) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, q := range s.queues {
		q.connection.close()
	}
	return nil
}

func (s *Signals) queue(name string) (*signalQueue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.queues[name] == nil {
		q := queue{namespace: s.namespace, name: name, signals: true}
		s.queues[name] = &signalQueue{q, newConnection(func() (Link, error) {
			if s.link != nil {
				return s.link(name), nil
			}
			return q.open()
		})}
	}
	return s.queues[name], nil
}

// signalQueue is one queue of signals, as it is received from.
type signalQueue struct {
	queue
	connection *connection
}

// peekPage is how many messages are peeked at once. peekMore is how many more than wanted are counted at
// most; the next call counts the rest.
const (
	peekPage = 250
	peekMore = 1000
)

// count returns the sequence numbers of the messages in the queue, the oldest first. As a scaler does, it
// counts locked ones (https://github.com/Azure/azure-sdk-for-net/pull/27238) and deferred ones
// (https://github.com/paolosalvatori/ServiceBusExplorer/issues/662).
func (q *signalQueue) count(ctx context.Context, wanted int) (present []int64, err error) {
	for next := int64(1); len(present) <= wanted+peekMore; next = present[len(present)-1] + 1 {
		var page []*azservicebus.ReceivedMessage
		err := q.connection.use(ctx, q.try, func(ctx context.Context, l Link) (err error) {
			page, err = l.PeekMessages(ctx, peekPage, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &next})
			return err
		})
		if err != nil {
			return nil, q.explain(err, 1)
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			if m.Subject == nil || *m.Subject != SignalType {
				return nil, fmt.Errorf("%s of Service Bus namespace %s holds messages that are no signals, such as %q: none is sent or taken; name a queue that nothing else uses as signalQueue, or remove them", q, q.host, m.MessageID)
			}
			present = append(present, *m.SequenceNumber)
		}
	}
	return present, nil
}

// send sends signals in one step, at most as many as fit into one. With 0 it only finds out whether it could.
// They have no time to live. Each has an id of its own, so that a queue that detects duplicates drops none.
func (q *signalQueue) send(ctx context.Context, missing int) error {
	signals := make([]*azservicebus.Message, missing)
	for i := range signals {
		signals[i] = &azservicebus.Message{
			MessageID: new(rand.Text()), Subject: new(SignalType), ContentType: new("text/plain"),
			Body: []byte("one message for each replica that is wanted"),
		}
	}
	err := q.connection.use(ctx, q.try, func(ctx context.Context, l Link) error { return l.Send(ctx, signals...) })
	to := q.queue
	to.sends = true
	return to.explain(err, 1)
}

// idleWait is how long the broker may take to hand out a message that is there.
const idleWait = time.Second

// takeBack deletes the given messages, which are the oldest, one by one: the queue hands out the oldest
// first, and deletes what it sends, even if it is lost on the way. Another message than those means that
// somebody took or locked some of them; then the caller counts anew. stuck reports that none was handed out.
func (q *signalQueue) takeBack(ctx context.Context, surplus []int64) (stuck bool, err error) {
	for range surplus {
		var taken []*azservicebus.ReceivedMessage
		err := q.connection.use(ctx, min(idleWait, q.try), func(ctx context.Context, l Link) (err error) {
			if taken, err = l.ReceiveMessages(ctx, 1, nil); err == nil && len(taken) == 0 {
				err = errLinkLost // which the SDK says by returning nothing
			}
			return err
		})
		switch {
		case errors.Is(err, errNoAnswer):
			return true, nil
		case err != nil:
			return false, q.explain(err, 1)
		case !slices.Contains(surplus, *taken[0].SequenceNumber):
			return false, nil
		}
	}
	return false, nil
}
