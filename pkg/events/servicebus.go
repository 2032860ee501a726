package events

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
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
	queue   string
	host    string                               // of the namespace, for errors
	byKey   bool                                 // a connection string rather than an identity
	connect func() (*azservicebus.Client, error) // connects lazily: does no I/O
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
	connectionString = strings.TrimSpace(connectionString)
	host, entity := inspectConnectionString(connectionString)
	switch {
	case queue == "" && entity == "":
		return nil, errors.New("no Service Bus queue is named: name one, or add EntityPath=QUEUE to the connection string")
	case queue == "":
		queue = entity
	case entity != "" && !strings.EqualFold(entity, queue):
		return nil, fmt.Errorf("the Service Bus connection string is for %q (EntityPath) and not for queue %q: use one of the namespace or of that queue", entity, queue)
	}
	s := newServiceBus(queue, host, true, o)
	s.connect = func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(connectionString, &s.options.Client)
	}
	if _, err := s.connect(); err != nil {
		return nil, fmt.Errorf("reading the Service Bus connection string: %w", err)
	}
	return s, nil
}

// NewServiceBusWithIdentity returns a Publisher that authenticates with an
// identity, which needs the role Azure Service Bus Data Sender on the queue.
// The namespace is fully qualified, as in shop.servicebus.windows.net.
func NewServiceBusWithIdentity(namespace string, identity azcore.TokenCredential, queue string, o ServiceBusOptions) (*ServiceBus, error) {
	if namespace == "" || strings.ContainsAny(namespace, "/ ") {
		return nil, fmt.Errorf("%q is no Service Bus namespace: use its host name, as in shop.servicebus.windows.net", namespace)
	}
	if queue == "" {
		return nil, errors.New("no Service Bus queue is named")
	}
	if identity == nil {
		return nil, errors.New("no identity is given for Service Bus")
	}
	s := newServiceBus(queue, namespace, false, o)
	s.connect = func() (*azservicebus.Client, error) {
		return azservicebus.NewClient(namespace, boundedIdentity{identity, s.options.TryTimeout * 4 / 5}, &s.options.Client)
	}
	return s, nil
}

func newServiceBus(queue, host string, byKey bool, o ServiceBusOptions) *ServiceBus {
	if o.TryTimeout <= 0 {
		o.TryTimeout = 5 * time.Second
	}
	if o.Tries <= 0 {
		o.Tries = 3
	}
	if o.RetryDelay <= 0 {
		o.RetryDelay = 500 * time.Millisecond
	}
	// One retry within the SDK, because without any its token renewal, which
	// runs in the background, would dial a dead broker without a pause.
	o.Client.RetryOptions = azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: o.RetryDelay, MaxRetryDelay: o.RetryDelay}
	if name, _, err := net.SplitHostPort(host); err == nil {
		o.Client.TLSConfig = expecting(name, o.Client.TLSConfig)
	}
	s := &ServiceBus{queue: queue, host: host, byKey: byKey, options: o}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// expecting says whose certificate is to be shown where the namespace is given
// with a port: the SDK would look for both in it.
func expecting(name string, c *tls.Config) *tls.Config {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.ServerName == "" {
		c = c.Clone()
		c.ServerName = name
	}
	return c
}

// inspectConnectionString finds what errors and checks need; the SDK does the
// actual reading.
func inspectConnectionString(connectionString string) (host, entity string) {
	for field := range strings.SplitSeq(connectionString, ";") {
		name, value, _ := strings.Cut(field, "=")
		switch strings.ToLower(name) {
		case "endpoint":
			host = strings.Trim(strings.TrimPrefix(value, "sb:"), "/")
		case "entitypath":
			entity = value
		}
	}
	return host, entity
}

// Publish sends the event as one message whose body is exactly the given bytes.
// It tries again, on a new connection where needed, until its tries are used up
// or ctx ends.
func (s *ServiceBus) Publish(ctx context.Context, body []byte) error {
	e, err := Decode(body)
	if err != nil {
		return fmt.Errorf("publishing to queue %q: %w", s.queue, err)
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
			return fmt.Errorf("publishing scale event %s: %w", e.ID(), s.explain(err, try))
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
		client, err := s.connect()
		if err != nil {
			return nil, err
		}
		sender, err := client.NewSender(s.queue, nil)
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

// boundedIdentity bounds the time a token may take: the SDK asks for one with
// a context that never ends. It takes less than a try, whose error would
// otherwise blame the broker.
type boundedIdentity struct {
	azcore.TokenCredential
	timeout time.Duration
}

func (i boundedIdentity) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	token, err := i.TokenCredential.GetToken(ctx, o)
	if err != nil {
		return token, tokenError{err}
	}
	return token, nil
}
