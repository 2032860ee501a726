package servicebus

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/events"
)

// PublisherOptions say how events are put on a queue or a topic.
type PublisherOptions struct {
	// TimeToLive is how long a message waits in the queue before the broker drops it, and a Consumer
	// ignores it; 0 = as long as the queue keeps it. A queue with a shorter default lowers it. An event is
	// published anew at each heartbeat, so that one older than several heartbeats is of no use to anybody.
	TimeToLive time.Duration

	TryTimeout time.Duration // of one try, connecting and tokens included; 0 = 5 s. The SDK has no such limit.
	Tries      int           // until Publish gives up; 0 = 3
	RetryDelay time.Duration // before the connection is tried again; 0 = 500 ms

	// Client is handed to the SDK: TLS, a proxy, a custom endpoint. Its RetryOptions are not used.
	Client azservicebus.ClientOptions
}

// Publisher is the events.Publisher of a deployment: it sends to one queue or topic, which are the same to
// a sender, through one connection and one sender, which it opens at the first event, keeps open, and replaces once they failed.
type Publisher struct {
	queue   queue
	options PublisherOptions

	life context.Context // ends with Close
	end  context.CancelFunc

	mu      sync.Mutex
	current *link // nil where none is open
}

// link is a connection with its sender.
type link struct {
	client *azservicebus.Client
	sender *azservicebus.Sender
}

// NewPublisher returns a Publisher that authenticates with a connection string, of a namespace or of
// the queue itself (EntityPath); queue may be "" where it has one. UseDevelopmentEmulator=true connects
// without TLS, to the port of the endpoint or to 5672. Nothing is connected yet: an error is one of the
// connection string.
func NewPublisher(connectionString, queue string, o PublisherOptions) (*Publisher, error) {
	o = o.withDefaults()
	n, err := namespaceByKey(connectionString, o.Client)
	if err != nil {
		return nil, err
	}
	return newPublisher(n, queue, o)
}

// NewPublisherWithIdentity returns a Publisher that authenticates with an identity, which needs the
// role Azure Service Bus Data Sender on the queue. The namespace is fully qualified, as in
// shop.servicebus.windows.net.
func NewPublisherWithIdentity(namespace string, identity azcore.TokenCredential, queue string, o PublisherOptions) (*Publisher, error) {
	o = o.withDefaults()
	n, err := namespaceByIdentity(namespace, identity, o.TryTimeout, o.Client)
	if err != nil {
		return nil, err
	}
	return newPublisher(n, queue, o)
}

// maxTimeToLive is the longest that a message can say: milliseconds in 32 bits (AMQP 1.0, 3.2.1).
const maxTimeToLive = math.MaxUint32 * time.Millisecond

func (o PublisherOptions) withDefaults() PublisherOptions {
	o.TimeToLive = min(o.TimeToLive, maxTimeToLive)
	o.TryTimeout = cmp.Or(max(0, o.TryTimeout), 5*time.Second)
	o.Tries = cmp.Or(max(0, o.Tries), 3)
	o.RetryDelay = cmp.Or(max(0, o.RetryDelay), 500*time.Millisecond)
	o.Client.RetryOptions = retryOnce(o.RetryDelay)
	return o
}

func newPublisher(n namespace, name string, o PublisherOptions) (*Publisher, error) {
	q, err := n.queue(name, sending())
	if err != nil {
		return nil, err
	}
	p := &Publisher{queue: q, options: o}
	p.life, p.end = context.WithCancel(context.Background())
	return p, nil
}

// Publish sends the event as one message whose body is exactly the given bytes. It tries again, on a
// new connection where needed, until its tries are used up or ctx ends. The error is a *Refusal where
// the service refused, which is events.ErrTooLarge where it is the event that is too large, and
// events.ErrUnreachable where nobody answered.
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

// Send sends a message that is no scale event, as Publish sends those: its body is exactly the given bytes,
// and a queue that detects duplicates takes one of an id. Nobody gets it once its time to live, of at least
// 1 ms, has passed.
func (p *Publisher) Send(ctx context.Context, id string, body []byte, timeToLive time.Duration) error {
	timeToLive, contentType := min(timeToLive, maxTimeToLive), "application/json"
	return p.deliver(ctx, &azservicebus.Message{Body: body, MessageID: &id, ContentType: &contentType, TimeToLive: &timeToLive}, "sending message "+id)
}

// deliver sends a message until that works, or its tries are used up.
func (p *Publisher) deliver(ctx context.Context, message *azservicebus.Message, doing string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(errClosed) })()
	for try := 1; ; try++ {
		err := context.Cause(ctx)
		if err == nil {
			err = p.try(ctx, message)
		}
		if err == nil {
			return nil
		}
		if try == p.options.Tries || ctx.Err() != nil || isFinal(err) {
			return fmt.Errorf("%s: %w", doing, p.queue.explain(err, try, p.options.TryTimeout))
		}
	}
}

// newMessage is the event as docs/scale-events.md describes its message. A property that the event has no value for
// is left out.
func newMessage(e events.ScaleEvent, body []byte) *azservicebus.Message {
	id, subject, eventType, contentType := e.ID(), e.Subject(), events.Type, events.ContentType
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
		Body: body, MessageID: &id, SessionID: &subject, Subject: &eventType, ContentType: &contentType,
		ApplicationProperties: properties,
	}
}

// try sends once.
func (p *Publisher) try(ctx context.Context, message *azservicebus.Message) error {
	link, err := p.acquire()
	if err != nil {
		return err
	}
	return p.attempt(ctx, link, func(ctx context.Context) error { return link.sender.SendMessage(ctx, message, nil) })
}

// attempt calls the SDK for at most the time of one try. A link that may be broken is retired.
func (p *Publisher) attempt(ctx context.Context, l *link, call func(context.Context) error) error {
	err := perform(ctx, p.options.TryTimeout, call)
	if err != nil && !refusesMessage(err) {
		p.retire(l)
	}
	return err
}

// acquire returns the open link, or a new one.
func (p *Publisher) acquire() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return nil, errClosed
	}
	if p.current == nil {
		client, err := p.queue.connect()
		if err != nil {
			return nil, err
		}
		sender, err := client.NewSender(p.queue.name, nil)
		if err != nil {
			return nil, err
		}
		p.current = &link{client: client, sender: sender}
	}
	return p.current, nil
}

// retire closes a link, and lets the next try open a new one. The other tries that use it fail, and are
// repeated on the new one.
func (p *Publisher) retire(old *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == old {
		p.current = nil
		go old.close()
	}
}

// close returns within closeTimeout. An ended context keeps the SDK from waiting for the broker's goodbye.
// What was published is settled, so that nothing is lost by it.
func (l *link) close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = perform(ended, closeTimeout, l.client.Close)
}

// Close ends the connection. Publish fails from then on, also where it is under way. It returns within
// a second, whatever the broker does.
func (p *Publisher) Close(context.Context) error {
	p.end()
	p.mu.Lock()
	open := p.current
	p.current = nil
	p.mu.Unlock()
	if open != nil {
		open.close()
	}
	return nil
}
