package servicebus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// QueueSettings are what decides whether a queue keeps its signals while nobody tends it.
type QueueSettings struct {
	TimeToLive   string // of a message that says none, as an ISO 8601 duration; "" = for ever
	DeletedAfter string // of idleness, likewise; "" = never
	ForwardsTo   string // "" = nowhere
}

// Settings reads the settings of a queue through the management API (HTTPS), which needs more than to keep
// signals: the Manage right, or the role Azure Service Bus Data Owner. Where the key or the identity lacks
// that, the error is a *Refusal of the kind NotPermitted.
func (s *Signals) Settings(ctx context.Context, name string) (QueueSettings, error) {
	client, err := s.manage(&admin.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}})
	if err != nil {
		return QueueSettings{}, err
	}
	q, err := await(ctx, func() (*admin.GetQueueResponse, error) { return client.GetQueue(ctx, name, nil) })
	var refused *azcore.ResponseError
	switch {
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		return QueueSettings{}, &Refusal{
			Kind: NotPermitted, Meaning: fmt.Sprintf("the settings of queue %q in Service Bus namespace %s may not be read", name, s.namespace),
			Remedy: "read them with the Manage right, or with the role Azure Service Bus Data Owner",
		}
	case errors.As(err, &refused):
		return QueueSettings{}, fmt.Errorf("the management API of Service Bus namespace %s answered %d", s.namespace, refused.StatusCode)
	case err != nil:
		return QueueSettings{}, fmt.Errorf("the management API of Service Bus namespace %s (HTTPS): %w", s.namespace, err)
	case q == nil:
		return QueueSettings{}, &Refusal{
			Kind: QueueNotFound, Meaning: fmt.Sprintf("queue %q does not exist in Service Bus namespace %s", name, s.namespace), Remedy: "create it, or correct its name",
		}
	}
	settings := QueueSettings{TimeToLive: finite(q.DefaultMessageTimeToLive), DeletedAfter: finite(q.AutoDeleteOnIdle)}
	if q.ForwardTo != nil {
		settings.ForwardsTo = *q.ForwardTo
	}
	return settings, nil
}

// finite returns a duration; "" where it is the longest there is, by which the service says that there is
// none (https://learn.microsoft.com/azure/service-bus-messaging/message-expiration).
func finite(duration *string) string {
	if duration == nil || strings.HasPrefix(*duration, "P10675199D") {
		return ""
	}
	return *duration
}
