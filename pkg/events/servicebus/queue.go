package servicebus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/feedscale/feedscale/pkg/connectionstring"
)

// namespace is a Service Bus namespace, and how to sign in to it.
type namespace struct {
	host    string
	entity  string                               // that the connection string is limited to (EntityPath); "" = none
	byKey   bool                                 // a connection string rather than an identity
	try     time.Duration                        // the most that one try takes, for messages
	connect func() (*azservicebus.Client, error) // connects lazily: does no I/O
	manage  func(*admin.ClientOptions) (*admin.Client, error)
}

// signIn says how to sign in to a namespace. A try to connect takes at most a time.
type signIn func(try time.Duration, o azservicebus.ClientOptions) (namespace, error)

func byKey(connectionString string) signIn {
	return func(try time.Duration, o azservicebus.ClientOptions) (namespace, error) {
		connectionString := strings.TrimSpace(connectionString)
		fields, _ := connectionstring.Parse(connectionString, connectionstring.ServiceBus) // the SDK refuses what is none
		n := namespace{host: strings.Trim(strings.TrimPrefix(fields["endpoint"], "sb:"), "/"), entity: fields["entitypath"], byKey: true, try: try}
		o = expectingHost(n.host, o)
		n.connect = func() (*azservicebus.Client, error) {
			return azservicebus.NewClientFromConnectionString(connectionString, &o)
		}
		n.manage = func(m *admin.ClientOptions) (*admin.Client, error) {
			return admin.NewClientFromConnectionString(connectionString, m)
		}
		if _, err := n.connect(); err != nil {
			return namespace{}, fmt.Errorf("reading the Service Bus connection string: %w", err)
		}
		return n, nil
	}
}

func byIdentity(host string, identity azcore.TokenCredential) signIn {
	return func(try time.Duration, o azservicebus.ClientOptions) (namespace, error) {
		if host == "" || strings.ContainsAny(host, "/ ") {
			return namespace{}, fmt.Errorf("%q is no Service Bus namespace: use its host name, as in shop.servicebus.windows.net", host)
		}
		if identity == nil {
			return namespace{}, errors.New("no identity is given for Service Bus")
		}
		o = expectingHost(host, o)
		return namespace{
			host: host, try: try,
			connect: func() (*azservicebus.Client, error) {
				return azservicebus.NewClient(host, boundedIdentity{identity, try * 4 / 5}, &o)
			},
			manage: func(m *admin.ClientOptions) (*admin.Client, error) { return admin.NewClient(host, identity, m) },
		}, nil
	}
}

// expectingHost says which name the certificate must have. For a namespace with a port, the SDK would look
// for one of host and port.
func expectingHost(host string, o azservicebus.ClientOptions) azservicebus.ClientOptions {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return o
	}
	expecting := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLSConfig != nil {
		expecting = o.TLSConfig.Clone()
	}
	expecting.ServerName = cmp.Or(expecting.ServerName, name)
	o.TLSConfig = expecting
	return o
}

// retryOnce has the SDK retry once: without a retry, its renewal of tokens in the background dials a dead
// broker without a pause.
func retryOnce(delay time.Duration) azservicebus.RetryOptions {
	return azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: delay, MaxRetryDelay: delay}
}

// queue is one queue, topic or subscription, and what it is opened for.
type queue struct {
	namespace
	access
	name         string // of a subscription, its topic's
	subscription string // "" where it is none
}

// queue names a queue; "" is the one that the connection string is limited to.
func (n namespace) queue(name string, a access) (queue, error) {
	switch {
	case name == "" && n.entity == "":
		return queue{}, errors.New("no Service Bus queue is named: name one, or add EntityPath=QUEUE to the connection string")
	case name != "" && n.entity != "" && !strings.EqualFold(n.entity, name):
		return queue{}, fmt.Errorf("the Service Bus connection string is for %q (EntityPath) and not for queue %q: use one of the namespace or of that queue", n.entity, name)
	}
	return queue{namespace: n, access: a, name: cmp.Or(name, n.entity)}, nil
}

// path is how AMQP addresses the entity.
func (q queue) path() string {
	if q.subscription == "" {
		return q.name
	}
	return q.name + "/Subscriptions/" + q.subscription
}

// String names the entity for people. Whether a sender's is a queue or a topic, its name does not
// tell.
func (q queue) String() string {
	if q.subscription == "" {
		return fmt.Sprintf("%s %q", cmp.Or(q.kind, "queue"), q.name)
	}
	return fmt.Sprintf("subscription %q of topic %q", q.subscription, q.name)
}

func (q queue) receiver(client *azservicebus.Client) (*azservicebus.Receiver, error) {
	if q.subscription == "" {
		return client.NewReceiverForQueue(q.name, nil)
	}
	return client.NewReceiverForSubscription(q.name, q.subscription, nil)
}

func (q queue) nextSession(ctx context.Context, client *azservicebus.Client) (*azservicebus.SessionReceiver, error) {
	if q.subscription == "" {
		return client.AcceptNextSessionForQueue(ctx, q.name, nil)
	}
	return client.AcceptNextSessionForSubscription(ctx, q.name, q.subscription, nil)
}

// access is what a queue is opened for, in the words of refusals.
type access struct {
	verb, activity string
	right          string   // of a shared access policy
	role           string   // of an identity
	kind           string   // of entity, if it may be another one than a queue
	create         []string // arguments of the command that creates the queue
	wrongEntity    string   // what to do if the entity, called NAME here, does not allow it

	// sessions says what a queue is like that refuses a receiver for its use of sessions; "" for a
	// sender, whose messages always have a session.
	sessions, sessionsRemedy string
}

func sending() access {
	return access{
		verb: "send to", activity: "sending", right: "Send", role: "Azure Service Bus Data Sender", kind: "queue or topic",
		create:      []string{"--enable-duplicate-detection", "true", "--duplicate-detection-history-time-window", "PT10M"},
		wrongEntity: "if it is a subscription, publish to its topic",
	}
}

func receiving(sessions bool) access {
	a := access{
		verb: "receive from", activity: "receiving", right: "Listen", role: "Azure Service Bus Data Receiver",
		wrongEntity: "if it is a topic, consume one of its subscriptions: NAME/Subscriptions/SUBSCRIPTION",
		sessions:    "requires sessions", sessionsRemedy: "consume it with sessions",
	}
	if sessions {
		a.sessions, a.sessionsRemedy = "has no sessions", "consume it without, or create it anew with requiresSession"
	}
	return a
}

// NoTimeToLive is the default time to live of a queue whose messages never expire, as an ISO 8601 duration.
const NoTimeToLive = "P10675199DT2H48M5.4775807S"

// ofSignals is access to a queue of signals.
func ofSignals(a access) access {
	a.kind, a.sessionsRemedy = "queue", "create it anew without requiresSession"
	a.create = []string{"--default-message-time-to-live", NoTimeToLive}
	return a
}
