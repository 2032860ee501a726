package servicebus

import (
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

// queue is one queue, topic or subscription, and how a publisher or a consumer gets at it.
type queue struct {
	name         string // of a subscription, its topic's
	subscription string // "" where it is none
	host         string // of the namespace, for errors
	byKey        bool   // a connection string rather than an identity
	access       access
	connect      func() (*azservicebus.Client, error) // connects lazily: does no I/O
	manage       func(*admin.ClientOptions) (*admin.Client, error)
}

// path is how AMQP addresses the entity.
func (q queue) path() string {
	if q.subscription == "" {
		return q.name
	}
	return q.name + "/Subscriptions/" + q.subscription
}

// String names the entity for people. Whether a bare name is a queue's or a topic's does not show.
func (q queue) String() string {
	if q.subscription == "" {
		return fmt.Sprintf("queue %q", q.name)
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
	create         []string // arguments of the command that creates the queue
	throttled      string   // what mends it where the queue is throttled
	wrongEntity    string   // what mends it where the entity, called NAME here, is not for that

	// sessions is what is wrong with the queue where it refuses a receiver with its sessions, or the
	// lack of them; "" for a sender, whose messages have a session in any case.
	sessions, sessionsRemedy string
}

func sending() access {
	return access{
		verb: "send to", activity: "sending", right: "Send", role: "Azure Service Bus Data Sender",
		create:      []string{"--enable-duplicate-detection", "true", "--duplicate-detection-history-time-window", "PT10M"},
		throttled:   "publish less often, or move the namespace to a larger tier",
		wrongEntity: "where it is a subscription, publish to its topic",
	}
}

func receiving(sessions bool) access {
	a := access{
		verb: "receive from", activity: "receiving", right: "Listen", role: "Azure Service Bus Data Receiver",
		throttled:   "move the namespace to a larger tier",
		wrongEntity: "where it is a topic, consume one of its subscriptions: NAME/Subscriptions/SUBSCRIPTION",
		sessions:    "requires sessions", sessionsRemedy: "consume it with sessions",
	}
	if sessions {
		a.sessions, a.sessionsRemedy = "has no sessions", "consume it without, or create it anew with requiresSession"
	}
	return a
}

// NoTimeToLive is the time to live of a queue whose messages stay, as its settings have it.
const NoTimeToLive = "P10675199DT2H48M5.4775807S"

// ofSignals is access to a queue of signals.
func ofSignals(a access) access {
	a.sessionsRemedy, a.create = "create it anew without requiresSession", []string{"--default-message-time-to-live", NoTimeToLive}
	return a
}

// queueByKey takes the queue from the connection string where none is named.
func queueByKey(connectionString, name string, a access, o azservicebus.ClientOptions) (queue, error) {
	connectionString = strings.TrimSpace(connectionString)
	host, entity := inspectConnectionString(connectionString)
	switch {
	case name == "" && entity == "":
		return queue{}, errors.New("no Service Bus queue is named: name one, or add EntityPath=QUEUE to the connection string")
	case name == "":
		name = entity
	case entity != "" && !strings.EqualFold(entity, name):
		return queue{}, fmt.Errorf("the Service Bus connection string is for %q (EntityPath) and not for queue %q: use one of the namespace or of that queue", entity, name)
	}
	o = expectingHost(host, o)
	connect := func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(connectionString, &o)
	}
	if _, err := connect(); err != nil {
		return queue{}, fmt.Errorf("reading the Service Bus connection string: %w", err)
	}
	manage := func(m *admin.ClientOptions) (*admin.Client, error) {
		return admin.NewClientFromConnectionString(connectionString, m)
	}
	return queue{name: name, host: host, byKey: true, access: a, connect: connect, manage: manage}, nil
}

func queueByIdentity(namespace string, identity azcore.TokenCredential, name string, a access, tryTimeout time.Duration, o azservicebus.ClientOptions) (queue, error) {
	if namespace == "" || strings.ContainsAny(namespace, "/ ") {
		return queue{}, fmt.Errorf("%q is no Service Bus namespace: use its host name, as in shop.servicebus.windows.net", namespace)
	}
	if name == "" {
		return queue{}, errors.New("no Service Bus queue is named")
	}
	if identity == nil {
		return queue{}, errors.New("no identity is given for Service Bus")
	}
	o = expectingHost(namespace, o)
	connect := func() (*azservicebus.Client, error) {
		return azservicebus.NewClient(namespace, boundedIdentity{identity, tryTimeout * 4 / 5}, &o)
	}
	manage := func(m *admin.ClientOptions) (*admin.Client, error) { return admin.NewClient(namespace, identity, m) }
	return queue{name: name, host: namespace, access: a, connect: connect, manage: manage}, nil
}

// retryOnce is one retry within the SDK, because without any its token renewal,
// which runs in the background, would dial a dead broker without a pause.
func retryOnce(delay time.Duration) azservicebus.RetryOptions {
	return azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: delay, MaxRetryDelay: delay}
}

func expectingHost(host string, o azservicebus.ClientOptions) azservicebus.ClientOptions {
	if name, _, err := net.SplitHostPort(host); err == nil {
		o.TLSConfig = expecting(name, o.TLSConfig)
	}
	return o
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

// inspectConnectionString finds what errors and checks need; the SDK does the actual reading, and
// refuses what is none.
func inspectConnectionString(connectionString string) (host, entity string) {
	fields, _ := connectionstring.Parse(connectionString, connectionstring.ServiceBus)
	return strings.Trim(strings.TrimPrefix(fields["endpoint"], "sb:"), "/"), fields["entitypath"]
}
