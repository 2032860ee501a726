package events

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// ServiceBusOptions are the limits of one Publish. The zero value is what a
// deployment wants.
type ServiceBusOptions struct {
	TryTimeout time.Duration // of one try, connecting and tokens included; 0 = 5 s. The SDK has no such limit.
	Tries      int           // until Publish gives up; 0 = 3
	RetryDelay time.Duration // before the connection is tried again; 0 = 500 ms

	// Client is handed to the SDK: TLS, a proxy, a custom endpoint. Its
	// RetryOptions are not used.
	Client azservicebus.ClientOptions
}

// closeTimeout bounds how long Close waits for a connection to end.
const closeTimeout = time.Second

// ServiceBus is the Publisher of a deployment: it sends to one queue through
// one connection and one sender, which it opens at the first event, keeps open,
// and replaces once they failed.
type ServiceBus struct {
	queue   serviceBusQueue
	options ServiceBusOptions

	life context.Context // ends with Close
	end  context.CancelFunc

	mu      sync.Mutex
	current *link          // nil where none is open
	retired sync.WaitGroup // links that are being closed
}

// link is a connection with its sender, and the tries that use it.
type link struct {
	client *azservicebus.Client
	sender *azservicebus.Sender
	users  sync.WaitGroup
	worked atomic.Bool // it has sent something
}

// NewServiceBus returns a Publisher that authenticates with a connection string,
// of a namespace or of the queue itself (EntityPath); queue may be "" where it
// has one. UseDevelopmentEmulator=true connects without TLS, to the port of
// the endpoint or to 5672. Nothing is connected yet: an error is one of the
// connection string.
func NewServiceBus(connectionString, queue string, o ServiceBusOptions) (*ServiceBus, error) {
	o = o.withDefaults()
	q, err := queueByKey(connectionString, queue, sending(), o.Client)
	if err != nil {
		return nil, err
	}
	return newServiceBus(q, o), nil
}

// NewServiceBusWithIdentity returns a Publisher that authenticates with an
// identity, which needs the role Azure Service Bus Data Sender on the queue.
// The namespace is fully qualified, as in shop.servicebus.windows.net.
func NewServiceBusWithIdentity(namespace string, identity azcore.TokenCredential, queue string, o ServiceBusOptions) (*ServiceBus, error) {
	o = o.withDefaults()
	q, err := queueByIdentity(namespace, identity, queue, sending(), o.TryTimeout, o.Client)
	if err != nil {
		return nil, err
	}
	return newServiceBus(q, o), nil
}

func (o ServiceBusOptions) withDefaults() ServiceBusOptions {
	if o.TryTimeout <= 0 {
		o.TryTimeout = 5 * time.Second
	}
	if o.Tries <= 0 {
		o.Tries = 3
	}
	if o.RetryDelay <= 0 {
		o.RetryDelay = 500 * time.Millisecond
	}
	o.Client.RetryOptions = retryOnce(o.RetryDelay)
	return o
}

func newServiceBus(q serviceBusQueue, o ServiceBusOptions) *ServiceBus {
	s := &ServiceBus{queue: q, options: o}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Publish sends the event as one message whose body is exactly the given bytes.
// It tries again, on a new connection where needed, until its tries are used up
// or ctx ends.
func (s *ServiceBus) Publish(ctx context.Context, body []byte) error {
	e, err := Decode(body)
	if err != nil {
		return fmt.Errorf("publishing to queue %q: %w", s.queue.name, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errClosed) })()

	message := newMessage(e, body)
	for try := 1; ; try++ {
		again, err := s.try(ctx, message)
		if err == nil {
			return nil
		}
		if try == s.options.Tries || ctx.Err() != nil || !again {
			return fmt.Errorf("publishing scale event %s: %w", e.ID(), s.queue.explain(err, try, s.options.TryTimeout))
		}
	}
}

func newMessage(e ScaleEvent, body []byte) *azservicebus.Message {
	id, subject, contentType := e.ID(), Type, ContentType
	return &azservicebus.Message{
		Body:        body,
		MessageID:   &id,
		SessionID:   &e.Processor,
		Subject:     &subject,
		ContentType: &contentType,
		ApplicationProperties: map[string]any{
			"processor":       e.Processor,
			"sequence":        e.Sequence,
			"desiredReplicas": int64(e.DesiredReplicas),
			"direction":       e.Direction,
		},
	}
}

// try sends once, and tells whether trying again may help. It returns at its
// deadline even where the SDK, which waits for locks and tokens without looking
// at its context, does not.
func (s *ServiceBus) try(ctx context.Context, message *azservicebus.Message) (again bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	link, err := s.use()
	if err != nil {
		return false, err
	}
	defer link.users.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.TryTimeout, errNoAnswer)
	defer cancel()
	sent := make(chan error, 1)
	go func() { sent <- link.sender.SendMessage(ctx, message, nil) }()
	select {
	case err = <-sent:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		link.worked.Store(true)
		return false, nil
	}
	if !isRejection(err) {
		s.retire(link)
	}
	if ctx.Err() != nil {
		return true, context.Cause(ctx) // the SDK's own error is then only that it was interrupted
	}
	// A link that has worked may be refused for what has changed since it was
	// opened: its token expired, or the queue was made anew.
	return !isFinal(err) || link.worked.Load() && isAccess(err), err
}

// use returns the open link, or a new one. The caller calls users.Done.
func (s *ServiceBus) use() (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil, errClosed
	}
	if s.current == nil {
		client, err := s.queue.connect()
		if err != nil {
			return nil, err
		}
		sender, err := client.NewSender(s.queue.name, nil)
		if err != nil {
			return nil, err
		}
		s.current = &link{client: client, sender: sender}
	}
	s.current.users.Add(1)
	return s.current, nil
}

// retire lets the next try open a new link, and closes the old one once the
// tries that use it have ended: a failure of one need not be one of the others.
func (s *ServiceBus) retire(old *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != old {
		return
	}
	s.current = nil
	s.retired.Go(func() {
		old.users.Wait()
		// An ended context keeps the SDK from waiting for the broker's goodbye.
		// What was published is settled, so that nothing is lost by it.
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = old.client.Close(ended)
	})
}

// Close ends the connection. Publish fails from then on, also where it is
// under way. It returns within a second, whatever the broker does.
func (s *ServiceBus) Close(ctx context.Context) error {
	s.end()
	s.mu.Lock()
	open := s.current
	s.mu.Unlock()
	if open != nil {
		s.retire(open)
	}
	closed := make(chan struct{})
	go func() {
		s.retired.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	case <-time.After(closeTimeout):
	}
	return nil
}
