package servicebus

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/events"
)

// PublisherOptions say how events are put on a queue or a topic.
type PublisherOptions struct {
	// TimeToLive is how long a message waits before the broker drops it, and a Consumer ignores it; 0 = as
	// long as the queue keeps it. A shorter default of the queue wins. An event older than several
	// heartbeats is of no use, since each heartbeat publishes it anew.
	TimeToLive time.Duration

	TryTimeout time.Duration // of one try, connecting and tokens included; 0 = 5 s. The SDK has no such limit.
	Tries      int           // until Publish gives up; 0 = 3
	RetryDelay time.Duration // before the connection is tried again; 0 = 500 ms

	// Client is handed to the SDK: TLS, a proxy, a custom endpoint. Its RetryOptions are not used.
	Client azservicebus.ClientOptions
}

// Publisher is the events.Publisher of a deployment: it sends to one queue or topic, which are the same to
// a sender, through one connection, which it opens at the first event.
type Publisher struct {
	queue      queue
	options    PublisherOptions
	connection *connection
}

// NewPublisher returns a Publisher that authenticates with the connection string of a namespace or of the
// queue. UseDevelopmentEmulator=true connects without TLS, to the port of the endpoint or to 5672. It does
// not connect: an error is about the connection string.
func NewPublisher(connectionString, queue string, o PublisherOptions) (*Publisher, error) {
	return newPublisher(namespace{byKey: true, connectionString: connectionString}, queue, o)
}

// NewPublisherWithIdentity returns a Publisher that authenticates with an identity, which needs the
// role Azure Service Bus Data Sender on the queue. The namespace is fully qualified, as in
// shop.servicebus.windows.net.
func NewPublisherWithIdentity(host string, identity azcore.TokenCredential, queue string, o PublisherOptions) (*Publisher, error) {
	return newPublisher(namespace{host: host, identity: identity}, queue, o)
}

func newPublisher(n namespace, name string, o PublisherOptions) (*Publisher, error) {
	o.TimeToLive = min(o.TimeToLive, maxTimeToLive)
	o.Tries = cmp.Or(max(0, o.Tries), 3)
	q, err := n.reach(name, o.Client, cmp.Or(max(0, o.TryTimeout), 5*time.Second), cmp.Or(max(0, o.RetryDelay), 500*time.Millisecond))
	if err != nil {
		return nil, err
	}
	q.sends = true
	return &Publisher{queue: q, options: o, connection: newConnection(q.open)}, nil
}

// maxTimeToLive is the longest that a message can say: milliseconds in 32 bits (AMQP 1.0, 3.2.1).
const maxTimeToLive = math.MaxUint32 * time.Millisecond

// Publish sends the event as one message whose body is exactly the given bytes. It tries again, on a
// new connection if needed, until its tries are used up or ctx ends. The error is a *Refusal if the
// service refused; it wraps events.ErrTooLarge if the event is too large, and events.ErrUnreachable if
// nobody answered.
func (p *Publisher) Publish(ctx context.Context, body []byte) error {
	e, err := events.Decode(body)
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", p.queue, err)
	}
	message := newMessage(e, body)
	if p.options.TimeToLive > 0 {
		message.TimeToLive = &p.options.TimeToLive
	}
	return p.deliver(ctx, message, "publishing scale event "+e.ID())
}

// Send sends a message that is no scale event, in the way of Publish. Of several messages with one id, a
// queue that detects duplicates takes the first. The time to live is at least 1 ms.
func (p *Publisher) Send(ctx context.Context, id string, body []byte, timeToLive time.Duration) error {
	return p.deliver(ctx, &azservicebus.Message{
		Body: body, MessageID: &id, ContentType: new("application/json"), TimeToLive: new(min(timeToLive, maxTimeToLive)),
	}, "sending message "+id)
}

// deliver sends a message, and tries again until the tries are used up.
func (p *Publisher) deliver(ctx context.Context, message *azservicebus.Message, doing string) error {
	for try := 1; ; try++ {
		err := p.connection.use(ctx, p.queue.try, func(ctx context.Context, l Link) error { return l.Send(ctx, message) })
		if err == nil {
			return nil
		}
		if try == p.options.Tries || ctx.Err() != nil || isFinal(err) {
			return fmt.Errorf("%s: %w", doing, p.queue.explain(err, try))
		}
	}
}

// newMessage returns the message of an event (docs/scale-events.md). It has no property for a name that the
// event does not have.
func newMessage(e events.ScaleEvent, body []byte) *azservicebus.Message {
	properties := map[string]any{
		"epoch":           e.Epoch,
		"sequence":        e.Sequence,
		"desiredReplicas": int64(e.DesiredReplicas),
		"direction":       e.Direction,
	}
	if e.Group != "" {
		properties["group"] = e.Group
	} else {
		properties["processor"] = e.Processor
	}
	return &azservicebus.Message{
		Body: body, MessageID: new(e.ID()), SessionID: new(e.Subject()), Subject: new(events.Type),
		ContentType: new(events.ContentType), ApplicationProperties: properties,
	}
}

// Probe opens a link that can send to the queue, and sends nothing. Its error says what to do: a *Refusal if
// the service refused, and events.ErrUnreachable if it did not answer.
func (p *Publisher) Probe(ctx context.Context) error {
	err := p.connection.use(ctx, p.queue.try, func(ctx context.Context, l Link) error { return l.Send(ctx) })
	return p.queue.explain(err, 1)
}

// Entity is what a Publisher sends to.
type Entity string

// The kinds of Entity.
const (
	UnknownEntity     Entity = ""
	Queue             Entity = "queue"
	QueueWithSessions Entity = "queue that requires sessions"
	Topic             Entity = "topic"
)

// Entity finds out what a Publisher sends to, after a Probe that succeeded. It needs the right to receive:
// without it the Entity is unknown. It peeks at the messages of a queue and takes none.
func (p *Publisher) Entity(ctx context.Context) Entity {
	err := p.connection.use(ctx, p.queue.try, func(ctx context.Context, l Link) error {
		_, err := l.PeekMessages(ctx, 1, nil) // on a link for receiving; no message comes, since none is asked for
		return err
	})
	switch {
	case err == nil:
		return Queue
	case kindOf(err) == WrongSessions:
		return QueueWithSessions
	case kindOf(err) == WrongEntity:
		return Topic // nothing else can be sent to but not received from
	}
	return UnknownEntity
}

// Close ends the connection, whatever the broker does. A Publish that is under way fails, as does each later
// one.
func (p *Publisher) Close(context.Context) error {
	p.connection.close()
	return nil
}
