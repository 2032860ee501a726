package servicebus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/refusal"
)

var (
	errClosed   = errors.New("the publisher is closed")
	errNoAnswer = errors.New("no answer in time")
	errLinkLost = errors.New("the link was lost")
)

// Refusal is the error of a Publish, a Run or a Probe that the service refused, without the text of the service,
// which may contain keys and tokens. Its Meaning says what is refused and by whom, its Remedy how to fix it.
type Refusal = refusal.Error

// Kind is what the service refuses.
type Kind = refusal.Kind

// The kinds of refusals.
const (
	QueueNotFound Kind = "not found"         // no queue, no topic, or no subscription
	NotPermitted  Kind = "not permitted"     // the key or the identity, for what the queue is used for
	NetworkDenied Kind = "network denied"    // by the network rules of the namespace
	QueueFull     Kind = "full"              // its quota is exceeded
	QueueDisabled Kind = "disabled"          // for sending or for receiving
	Throttled     Kind = "throttled"         // the only one that passes by itself
	TooLarge      Kind = "event too large"   // for this queue; other events may pass; it wraps events.ErrTooLarge
	WrongSessions Kind = "wrong session use" // the queue requires sessions and is consumed without, or the other way round
	WrongEntity   Kind = "wrong entity"      // as a topic, from which nothing can be received
)

// kinds are what the conditions of the broker mean. The SDK lists those that go-amqp does not name in
// sdk/messaging/azservicebus/internal/errors.go of github.com/Azure/azure-sdk-for-go.
var kinds = map[amqp.ErrCond]Kind{
	amqp.ErrCondNotFound:              QueueNotFound,
	amqp.ErrCondUnauthorizedAccess:    NotPermitted,
	amqp.ErrCondResourceLimitExceeded: QueueFull,
	amqp.ErrCondMessageSizeExceeded:   TooLarge,
	amqp.ErrCondNotAllowed:            WrongEntity,
	"com.microsoft:entity-disabled":   QueueDisabled,
	"com.microsoft:server-busy":       Throttled,
}

// kindOf returns the kind of refusal of an error of the SDK; "" if it is none. The description tells a
// network rule from a key (https://github.com/microsoft/AzureTRE/pull/734), and sessions from what else does
// not allow a link (https://github.com/Azure/azure-service-bus-dotnet/issues/628).
func kindOf(err error) (kind Kind) {
	if answer, ok := errors.AsType[*amqp.Error](err); ok {
		kind = kinds[answer.Condition]
	} else if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		kind = TooLarge
	} else {
		kind = map[azservicebus.Code]Kind{azservicebus.CodeUnauthorizedAccess: NotPermitted, azservicebus.CodeNotFound: QueueNotFound}[code(err)]
	}
	switch {
	case kind == NotPermitted && strings.Contains(err.Error(), "Ip has been prevented to connect"):
		return NetworkDenied
	case kind == WrongEntity && strings.Contains(err.Error(), "session"):
		return WrongSessions
	}
	return kind
}

// code is the code that the SDK puts in place of the broker's error; "" if it has none.
func code(err error) azservicebus.Code {
	if sdk, ok := errors.AsType[*azservicebus.Error](err); ok {
		return sdk.Code
	}
	return ""
}

// isFinal reports whether another try would fail in the same way.
func isFinal(err error) bool {
	kind := kindOf(err)
	return kind != "" && kind != Throttled || errors.As(err, new(tokenError)) || errors.Is(err, errClosed)
}

// refusesMessage reports whether the broker refused the message alone, so that the link can carry the
// next one. After any other error the SDK may keep a dead sender for good.
func refusesMessage(err error) bool {
	return kindOf(err) == Throttled &&
		!errors.As(err, new(*amqp.LinkError)) && !errors.As(err, new(*amqp.SessionError)) && !errors.As(err, new(*amqp.ConnError))
}

// explain says in one sentence what is wrong and what to do; it returns a *Refusal if the service refused, and
// nil for no error. It leaves out what the broker says of keys and tokens, which may repeat them.
func (q queue) explain(err error, tries int) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != "" {
		r := &Refusal{Kind: kind}
		if kind == TooLarge {
			r.Sentinel = events.ErrTooLarge
		}
		r.Meaning, r.Remedy, r.Command = q.meaning(kind)
		return r
	}
	in := "Service Bus namespace " + q.host
	switch {
	case errors.Is(err, errClosed), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, new(tokenError)):
		return fmt.Errorf("getting a token for %s: %w", in, err)
	case errors.Is(err, errNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer from %s (%d tries of at most %s): see that it is up, and that firewalls let port 5671 through, or that of its name: %w", events.ErrUnreachable, in, tries, q.try, err)
	case errors.Is(err, errLinkLost), code(err) == azservicebus.CodeConnectionLost:
		return fmt.Errorf("%w: no working connection to %s: check its name, and that DNS and firewalls let port 5671 through, or that of its name: %w", events.ErrUnreachable, in, err)
	}
	return fmt.Errorf("%s of %s: %w", q, in, err)
}

// meaning says what a refusal means, and what to do, with a command for that if there is one.
func (q queue) meaning(kind Kind) (meaning, remedy, command string) {
	verb, activity, right, role := "receive from", "receiving", "Listen", "Azure Service Bus Data Receiver"
	if q.sends {
		verb, activity, right, role = "send to", "sending", "Send", "Azure Service Bus Data Sender"
	}
	in := "Service Bus namespace " + q.host
	here := fmt.Sprintf("%s of %s", q, in)
	switch kind {
	case QueueNotFound:
		return fmt.Sprintf("%s does not exist in %s", q, in), "create it, or correct its name", q.creation()
	case NotPermitted:
		if q.byKey {
			return fmt.Sprintf("the key for %s is refused by %s", q, in), "use a current connection string whose policy has the " + right + " right",
				q.az("namespace authorization-rule keys list", "--name", "POLICY", "--query", "primaryConnectionString")
		}
		entity := "/queues/"
		if remedy = "give it the role " + role + " there"; q.subscription != "" {
			entity = "/topics/"
		} else if q.sends && !q.signals {
			remedy += "; the scope of a topic ends with /topics/" + q.name
		}
		return "the identity may not " + verb + " " + here, remedy, azurecli.Assign(role, azurecli.ServiceBus.ID(q.host)+entity+q.name)
	case NetworkDenied:
		return "the network rules of " + in + " do not let this network in", "allow its address there",
			q.az("namespace network-rule-set ip-rule add", "--ip-rule", "ip-address="+azurecli.Address, "action=Allow")
	case QueueFull:
		return here + " is full (quota exceeded)", "see that its consumer runs, or raise its size", ""
	case QueueDisabled:
		return here + " is disabled for " + activity, "enable it", ""
	case Throttled:
		return here + " is throttled (server busy)", "move the namespace to a larger tier", ""
	case TooLarge:
		return "the event is larger than " + here + " takes", "shorten the processor's target labels, or raise the queue's message size", ""
	case WrongEntity: // which a subscription never is
		if remedy = "if it is a subscription, publish to its topic"; !q.sends {
			remedy = "if it is a topic, consume one of its subscriptions: " + q.name + "/Subscriptions/SUBSCRIPTION"
		}
		return fmt.Sprintf("%s does not allow to %s %s", in, verb, q), remedy, ""
	case WrongSessions:
		switch {
		case q.sessions:
			return here + " has no sessions", "consume it without, or create it anew with requiresSession", ""
		case q.signals:
			return here + " requires sessions", "create it anew without requiresSession", ""
		}
		return here + " requires sessions", "consume it with sessions", ""
	}
	return "", "", ""
}

// az is a command of the Azure CLI for the namespace.
func (q queue) az(name string, arguments ...string) string {
	return azurecli.InGroup("servicebus "+name, append([]string{"--namespace-name", azurecli.ServiceBus.Resource(q.host)}, arguments...)...)
}

// creation is the command that creates the queue or subscription.
func (q queue) creation() string {
	switch {
	case q.subscription != "":
		return q.az("topic subscription create", "--topic-name", q.name, "--name", q.subscription)
	case q.signals:
		return q.az("queue create", "--name", q.name, "--default-message-time-to-live", NoTimeToLive)
	case q.sends:
		return q.az("queue create", "--name", q.name, "--enable-duplicate-detection", "true", "--duplicate-detection-history-time-window", "PT10M")
	}
	return q.az("queue create", "--name", q.name)
}
