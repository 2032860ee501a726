package servicebus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/feedscale/feedscale/pkg/bounded"
)

// QueueSettings are the settings by which a queue may lose its signals while feedscale is down.
type QueueSettings struct {
	TimeToLive   string // of a message without one of its own, as an ISO 8601 duration; "" = for ever
	DeletedAfter string // of the queue when it is idle, as an ISO 8601 duration; "" = never
	ForwardsTo   string // "" = nowhere
}

// Settings reads the settings of a queue through the management API (HTTPS). It needs more than Keep: the
// Manage right, or the role Azure Service Bus Data Owner. Without it the error is a *Refusal of the kind
// NotPermitted.
func (s *Signals) Settings(ctx context.Context, name string) (QueueSettings, error) {
	q, err := managed(s.namespace, fmt.Sprintf("queue %q", name), func(client *admin.Client) (*admin.GetQueueResponse, error) {
		return client.GetQueue(ctx, name, nil)
	})
	if err != nil {
		return QueueSettings{}, err
	}
	return QueueSettings{finite(q.DefaultMessageTimeToLive), finite(q.AutoDeleteOnIdle), *cmp.Or(q.ForwardTo, new(""))}, nil
}

// Subscriptions reads through the management API how many subscriptions the Publisher's topic has; isTopic
// is false for a queue. It needs the permissions of [Signals.Settings], and has its errors.
func (p *Publisher) Subscriptions(ctx context.Context) (n int, isTopic bool, err error) {
	topic, err := managed(p.queue.namespace, p.queue.String(), func(client *admin.Client) (*admin.GetTopicResponse, error) {
		return client.GetTopic(ctx, p.queue.name, nil)
	})
	if err != nil || topic.Status == nil { // of a queue the client reads no field of a topic
		return 0, false, err
	}
	counts, err := managed(p.queue.namespace, p.queue.String(), func(client *admin.Client) (*admin.GetTopicRuntimePropertiesResponse, error) {
		return client.GetTopicRuntimeProperties(ctx, p.queue.name, nil)
	})
	if err != nil {
		return 0, true, err
	}
	return int(counts.SubscriptionCount), true, nil
}

// managed reads something of a queue or topic from the management API, without a retry.
func managed[T any](n namespace, what string, read func(*admin.Client) (*T, error)) (*T, error) {
	in := "Service Bus namespace " + strings.ToLower(n.host)
	client, err := n.manage(&admin.ClientOptions{ClientOptions: policy.ClientOptions{Transport: bounded.NewClient(), Retry: policy.RetryOptions{MaxRetries: -1}}})
	if err != nil {
		return nil, err
	}
	found, err := read(client)
	refused, isAnswer := errors.AsType[*azcore.ResponseError](err)
	switch {
	case isAnswer && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		return nil, &Refusal{
			Kind: NotPermitted, Meaning: fmt.Sprintf("the properties of %s in %s may not be read", what, in),
			Remedy: "read them with the Manage right, or with the role Azure Service Bus Data Owner",
		}
	case isAnswer:
		return nil, fmt.Errorf("the management API of %s answered %d", in, refused.StatusCode)
	case err != nil:
		return nil, fmt.Errorf("the management API of %s (HTTPS): %w", in, err)
	case found == nil:
		return nil, &Refusal{Kind: QueueNotFound, Meaning: fmt.Sprintf("%s does not exist in %s", what, in), Remedy: "create it, or correct its name"}
	}
	return found, nil
}

// finite returns a duration; "" for the longest one, which the service uses for "never"
// (https://learn.microsoft.com/azure/service-bus-messaging/message-expiration).
func finite(duration *string) string {
	if duration == nil || strings.HasPrefix(*duration, "P10675199D") {
		return ""
	}
	return *duration
}
