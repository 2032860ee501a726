package servicebus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/connectionstring"
)

// NoTimeToLive is the default time to live of a queue whose messages never expire, as an ISO 8601 duration.
const NoTimeToLive = "P10675199DT2H48M5.4775807S"

// namespace is a Service Bus namespace, and how to sign in to it.
type namespace struct {
	host             string
	identity         azcore.TokenCredential
	byKey            bool // with the connection string rather than the identity
	connectionString string
	try              time.Duration // the most that one try takes, connecting included
	client           azservicebus.ClientOptions
}

// reach returns a queue of the namespace, and how the SDK is to reach it. It does no I/O: the error is about the
// connection string, the host, the identity or the name.
func (n namespace) reach(name string, o azservicebus.ClientOptions, try, retryDelay time.Duration) (queue, error) {
	if name == "" {
		return queue{}, errors.New("no Service Bus queue is named")
	}
	if n.byKey {
		n.connectionString = strings.TrimSpace(n.connectionString)
		fields, _ := connectionstring.Parse(n.connectionString) // the SDK refuses what is none
		n.host = strings.Trim(strings.TrimPrefix(fields["endpoint"], "sb:"), "/")
	} else if n.host == "" || strings.ContainsAny(n.host, "/ ") {
		return queue{}, fmt.Errorf("%q is no Service Bus namespace: use its host name, as in shop.servicebus.windows.net", n.host)
	} else if n.identity == nil {
		return queue{}, errors.New("no identity is given for Service Bus")
	}
	if host, _, err := net.SplitHostPort(n.host); err == nil { // the SDK would expect a certificate of host and port
		o.TLSConfig = cmp.Or(o.TLSConfig, &tls.Config{MinVersion: tls.VersionTLS12}).Clone()
		o.TLSConfig.ServerName = cmp.Or(o.TLSConfig.ServerName, host)
	}
	// Without a retry, the SDK's renewal of tokens in the background dials a dead broker without a pause.
	o.RetryOptions = azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: retryDelay, MaxRetryDelay: retryDelay}
	n.try, n.client = try, o
	if _, err := n.connect(); err != nil {
		return queue{}, fmt.Errorf("reading the Service Bus connection string: %w", err)
	}
	return queue{namespace: n, name: name}, nil
}

// connect does no I/O: the SDK connects lazily.
func (n namespace) connect() (*azservicebus.Client, error) {
	if n.byKey {
		return azservicebus.NewClientFromConnectionString(n.connectionString, &n.client)
	}
	return azservicebus.NewClient(n.host, boundedIdentity{n.identity, n.try * 4 / 5}, &n.client)
}

// manage returns a client of the management API (HTTPS), which tries nothing again.
func (n namespace) manage() (*admin.Client, error) {
	o := &admin.ClientOptions{ClientOptions: policy.ClientOptions{Transport: bounded.NewClient(), Retry: policy.RetryOptions{MaxRetries: -1}}}
	if n.byKey {
		return admin.NewClientFromConnectionString(n.connectionString, o)
	}
	return admin.NewClient(n.host, n.identity, o)
}

// boundedIdentity bounds the time of getting a token: the SDK asks for one with a context that never ends.
// The bound is below that of a try, so that a slow token is not taken for a slow broker.
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

// tokenError is a failure to get a token for the identity.
type tokenError struct{ error }

func (e tokenError) Unwrap() error { return e.error }

// NonRetriable marks the error for the SDK, which would otherwise replace it by one about a lost connection.
func (e tokenError) NonRetriable() {}

// queue is one queue, topic or subscription, and what it is opened for.
type queue struct {
	namespace
	name         string // of a subscription, its topic's
	subscription string // "" where it is none
	sends        bool   // it is sent to, rather than received from
	sessions     bool   // it is received from by sessions
	signals      bool   // it is a signal queue
}

// String names the entity for people. A sender does not know whether it is a queue or a topic.
func (q queue) String() string {
	switch {
	case q.subscription != "":
		return fmt.Sprintf("subscription %q of topic %q", q.subscription, q.name)
	case q.sends && !q.signals:
		return fmt.Sprintf("queue or topic %q", q.name)
	}
	return fmt.Sprintf("queue %q", q.name)
}

// path is how AMQP addresses the entity. The SDK makes the same of the names of a topic and a subscription.
func (q queue) path() string {
	if q.subscription == "" {
		return q.name
	}
	return q.name + "/Subscriptions/" + q.subscription
}

// Link is a connection to a queue or topic. Its receiver deletes what it hands out.
type Link interface {
	PeekMessages(ctx context.Context, n int, o *azservicebus.PeekMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	ReceiveMessages(ctx context.Context, n int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)

	// Send sends as many of the messages as fit into one transfer, which the broker takes as a whole or not at
	// all. Without a message it only finds out whether it could send.
	Send(ctx context.Context, messages ...*azservicebus.Message) error

	Close(ctx context.Context) error
}

// link is a Link of the SDK. Its sender and its receiver connect when they are used.
type link struct {
	*azservicebus.Receiver
	client  *azservicebus.Client
	sender  *azservicebus.Sender
	opening sync.Mutex
}

func (q queue) open() (Link, error) {
	client, err := q.connect()
	if err != nil {
		return nil, err
	}
	sender, err := client.NewSender(q.name, nil)
	if err != nil {
		return nil, err
	}
	receiver, err := client.NewReceiverForQueue(q.name, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	return &link{Receiver: receiver, client: client, sender: sender}, err
}

// Send lets one call alone connect the sender: of several first calls, the SDK opens one link for each and
// forgets all but the last.
func (l *link) Send(ctx context.Context, messages ...*azservicebus.Message) error {
	l.opening.Lock()
	batch, err := l.sender.NewMessageBatch(ctx, nil) // connects, since it needs the greatest size that the broker takes
	l.opening.Unlock()
	if err != nil || len(messages) == 0 {
		return err
	}
	for i, message := range messages {
		err := batch.AddMessage(message, nil)
		if i > 0 && errors.Is(err, azservicebus.ErrMessageTooLarge) {
			break // the batch is full
		}
		if err != nil {
			return err
		}
	}
	return l.sender.SendMessageBatch(ctx, batch, nil)
}

// Close closes the connection.
func (l *link) Close(ctx context.Context) error { return l.client.Close(ctx) }
