package events

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// serviceBusQueue is a queue, and how publisher or consumer get at it.
type serviceBusQueue struct {
	name    string
	host    string // of the namespace, for errors
	byKey   bool   // a connection string rather than an identity
	use     use
	connect func() (*azservicebus.Client, error) // connects lazily: does no I/O
}

// use is what a queue is used for, in the words of errors.
type use struct{ may, disabled, right, role string }

func sending() use {
	return use{"send to", "sending", "Send", "Azure Service Bus Data Sender"}
}

func receiving() use {
	return use{"receive from", "receiving", "Listen", "Azure Service Bus Data Receiver"}
}

// queueByKey takes the queue from the connection string where none is named.
func queueByKey(connectionString, queue string, u use, o azservicebus.ClientOptions) (serviceBusQueue, error) {
	connectionString = strings.TrimSpace(connectionString)
	host, entity := inspectConnectionString(connectionString)
	switch {
	case queue == "" && entity == "":
		return serviceBusQueue{}, errors.New("no Service Bus queue is named: name one, or add EntityPath=QUEUE to the connection string")
	case queue == "":
		queue = entity
	case entity != "" && !strings.EqualFold(entity, queue):
		return serviceBusQueue{}, fmt.Errorf("the Service Bus connection string is for %q (EntityPath) and not for queue %q: use one of the namespace or of that queue", entity, queue)
	}
	o = expectingHost(host, o)
	connect := func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(connectionString, &o)
	}
	if _, err := connect(); err != nil {
		return serviceBusQueue{}, fmt.Errorf("reading the Service Bus connection string: %w", err)
	}
	return serviceBusQueue{name: queue, host: host, byKey: true, use: u, connect: connect}, nil
}

func queueByIdentity(namespace string, identity azcore.TokenCredential, queue string, u use, tryTimeout time.Duration, o azservicebus.ClientOptions) (serviceBusQueue, error) {
	if namespace == "" || strings.ContainsAny(namespace, "/ ") {
		return serviceBusQueue{}, fmt.Errorf("%q is no Service Bus namespace: use its host name, as in shop.servicebus.windows.net", namespace)
	}
	if queue == "" {
		return serviceBusQueue{}, errors.New("no Service Bus queue is named")
	}
	if identity == nil {
		return serviceBusQueue{}, errors.New("no identity is given for Service Bus")
	}
	o = expectingHost(namespace, o)
	connect := func() (*azservicebus.Client, error) {
		return azservicebus.NewClient(namespace, boundedIdentity{identity, tryTimeout * 4 / 5}, &o)
	}
	return serviceBusQueue{name: queue, host: namespace, use: u, connect: connect}, nil
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
