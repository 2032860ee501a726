package servicebus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

func TestAnIdentity(t *testing.T) {
	t.Parallel()
	_, client := startTokenBroker(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	cases := []struct {
		name     string
		identity identity
		timeout  time.Duration
		want     string // in the error; "" = none
	}{
		{"that may send", identity{token: "good-token"}, 0, ""},
		{"that may not", identity{token: "bad-token"}, 0, "give it the role Azure Service Bus Data Sender"},
		{"that gets no token", identity{err: errors.New("no managed identity here")}, 0, "getting a token for Service Bus namespace example.com: no managed identity here"},
		{"whose source never answers", identity{hang: hang}, 50 * time.Millisecond, "no answer from Service Bus namespace example.com"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := servicebus.NewPublisherWithIdentity("example.com", c.identity, "scale", servicebus.PublisherOptions{
				TryTimeout: c.timeout, RetryDelay: time.Millisecond,
				Client: client,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close(context.Background()) })
			err = p.Publish(t.Context(), numbered(t, "orders", 1))
			wantError(t, err, c.want, "-token")
			const command = "az role assignment create --assignee-object-id OBJECT_ID --role 'Azure Service Bus Data Sender' " +
				"--scope /subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.ServiceBus/namespaces/NAMESPACE/queues/scale"
			if refusal, ok := errors.AsType[*servicebus.Refusal](err); ok && refusal.Command != command {
				t.Errorf("got %s, want %s", refusal.Command, command)
			}
		})
	}
}

func TestConnectionStrings(t *testing.T) {
	t.Parallel()
	const endpoint = "Endpoint=sb://shop.servicebus.windows.net/;"
	cases := []struct {
		name                    string
		connectionString, queue string
		want                    string // in the error; "" = none
	}{
		{"of a namespace", endpoint + devKey, "scale", ""},
		{"in another order, with a line end", devKey + ";Endpoint=sb://shop.servicebus.windows.net/\n", "scale", ""},
		{"of the queue", endpoint + devKey + ";EntityPath=scale", "scale", ""},
		{"no queue anywhere", endpoint + devKey, "", "no Service Bus queue is named"},
		{"without endpoint", devKey, "scale", "Endpoint"},
		{"without key", endpoint + "SharedAccessKeyName=root", "scale", "SharedAccessKey"},
		{"empty", "", "scale", "reading the Service Bus connection string"},
		{"no connection string at all", "c2VjcmV0LXNlY3JldC1zZWNyZXQ", "scale", "reading the Service Bus connection string"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := servicebus.NewPublisher(c.connectionString, c.queue, servicebus.PublisherOptions{})
			wantError(t, err, c.want, "c2VjcmV0")
			_, err = servicebus.NewConsumer(c.connectionString, c.queue, servicebus.ConsumerOptions{})
			wantError(t, err, c.want, "c2VjcmV0")
		})
	}
}

func TestAnIdentityNeedsNamespaceAndQueue(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, namespace, queue string
		identity               azcore.TokenCredential
		want                   string
	}{
		{"a URL", "https://shop.servicebus.windows.net/", "scale", identity{}, "use its host name"},
		{"no namespace", "", "scale", identity{}, "is no Service Bus namespace"},
		{"no queue", "shop.servicebus.windows.net", "", identity{}, "no Service Bus queue"},
		{"no identity", "shop.servicebus.windows.net", "scale", nil, "no identity"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := servicebus.NewPublisherWithIdentity(c.namespace, c.identity, c.queue, servicebus.PublisherOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
