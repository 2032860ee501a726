package servicebus

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/events"
)

// Kind is what the service refuses.
type Kind string

// The kinds of refusals.
const (
	QueueNotFound Kind = "not found"         // no queue, no topic, or no subscription
	NotPermitted  Kind = "not permitted"     // the key or the identity, for what the queue is used for
	NetworkDenied Kind = "network denied"    // by the network rules of the namespace
	QueueFull     Kind = "full"              // its quota is exceeded
	QueueDisabled Kind = "disabled"          // for sending or for receiving
	Throttled     Kind = "throttled"         // the only one that passes by itself
	TooLarge      Kind = "event too large"   // for this queue; other events may pass
	WrongSessions Kind = "wrong session use" // the queue requires sessions and is consumed without, or the other way round
	WrongEntity   Kind = "wrong entity"      // as a topic, from which nothing can be received
)

// Refusal is the error of a Publish, a Run or a Probe that the service refused. It leaves out the text of
// the service, which may contain keys and tokens.
type Refusal struct {
	Kind      Kind
	Condition string // the AMQP error condition, such as amqp:not-found
	Meaning   string // what is refused, and by whom
	Remedy    string // how to fix it

	command string
}

func (r *Refusal) Error() string { return r.Meaning + ": " + r.Remedy }

// Detail returns the Meaning.
func (r *Refusal) Detail() string { return r.Meaning }

// Advice returns the Remedy.
func (r *Refusal) Advice() string { return r.Remedy }

// Command returns the command of the Azure CLI for the Remedy; "" where there is none.
func (r *Refusal) Command() string { return r.command }

// Cause returns how the service refuses, without the queue, which the poller adds.
func (r *Refusal) Cause() changefeed.Cause {
	c := changefeed.Cause{Says: fmt.Sprintf("refuses (%s)", r.Kind), Remedy: r.Remedy}
	if r.command != "" {
		c.Remedy += ": " + r.command
	}
	return c
}

// Is reports whether target is events.ErrTooLarge and the refusal has that meaning.
func (r *Refusal) Is(target error) bool { return r.Kind == TooLarge && target == events.ErrTooLarge }

// Conditions that go-amqp does not name. The SDK lists them in
// sdk/messaging/azservicebus/internal/errors.go of github.com/Azure/azure-sdk-for-go.
const (
	conditionServerBusy     = amqp.ErrCond("com.microsoft:server-busy")
	conditionEntityDisabled = amqp.ErrCond("com.microsoft:entity-disabled")
)

// networkDenied is in the description where a network rule refuses, as in
// https://github.com/microsoft/AzureTRE/pull/734. The condition is the same as where key or identity is
// refused.
const networkDenied = "Ip has been prevented to connect"

// ofSessions is in the description where a receiver's use of sessions differs from the queue's, as in
// https://github.com/Azure/azure-service-bus-dotnet/issues/628 and
// https://github.com/danielgerlag/workflow-core/issues/1217. The condition alone says only that the entity
// does not allow the link (https://github.com/Azure/amqpnetlite/issues/427).
const ofSessions = "session"

// kindOf returns the kind of refusal of an error of the SDK; "" if it is none.
func kindOf(err error) Kind {
	switch condition(err) {
	case amqp.ErrCondNotFound:
		return QueueNotFound
	case amqp.ErrCondUnauthorizedAccess:
		if strings.Contains(err.Error(), networkDenied) {
			return NetworkDenied
		}
		return NotPermitted
	case amqp.ErrCondResourceLimitExceeded:
		return QueueFull
	case conditionEntityDisabled:
		return QueueDisabled
	case conditionServerBusy:
		return Throttled
	case amqp.ErrCondMessageSizeExceeded:
		return TooLarge
	case amqp.ErrCondNotAllowed:
		if strings.Contains(err.Error(), ofSessions) {
			return WrongSessions // of a receiver: a message of ours is one for either kind of queue
		}
		return WrongEntity
	}
	return ""
}

// condition returns the broker's answer; "" if there was none.
func condition(err error) amqp.ErrCond {
	var answer *amqp.Error
	if errors.As(err, &answer) {
		return answer.Condition
	}
	switch code(err) {
	case azservicebus.CodeUnauthorizedAccess:
		return amqp.ErrCondUnauthorizedAccess
	case azservicebus.CodeNotFound:
		return amqp.ErrCondNotFound
	}
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return amqp.ErrCondMessageSizeExceeded
	}
	return ""
}

// refusal returns what the service refused, after a number of tries; nil if err is no refusal.
func (q queue) refusal(err error, tries int) *Refusal {
	r := &Refusal{Kind: kindOf(err), Condition: string(condition(err))}
	say := func(meaning, remedy string) *Refusal {
		r.Meaning, r.Remedy = meaning, remedy
		return r
	}
	az := func(name string, arguments ...string) {
		r.command = azurecli.InGroup("servicebus "+name, append([]string{"--namespace-name", azurecli.ServiceBus.Resource(q.host)}, arguments...)...)
	}
	here := fmt.Sprintf("%s of Service Bus namespace %s", q, q.host)
	switch r.Kind {
	case QueueNotFound:
		az("queue create", append([]string{"--name", q.name}, q.create...)...)
		return say(fmt.Sprintf("%s does not exist in Service Bus namespace %s", q, q.host), "create it, or correct its name")
	case NotPermitted:
		if q.byKey {
			az("namespace authorization-rule keys list", "--name", "POLICY", "--query", "primaryConnectionString")
			return say(fmt.Sprintf("the key for %s is refused by Service Bus namespace %s", q, q.host),
				"use a current connection string whose policy has the "+q.right+" right")
		}
		r.command = azurecli.Assign(q.role, azurecli.ServiceBus.ID(q.host)+"/queues/"+q.name)
		return say("the identity may not "+q.verb+" "+here, "give it the role "+q.role+" there")
	case NetworkDenied:
		az("namespace network-rule-set ip-rule add", "--ip-rule", "ip-address="+azurecli.Address, "action=Allow")
		return say(fmt.Sprintf("the network rules of Service Bus namespace %s do not let this network in", q.host), "allow its address there")
	case QueueFull:
		return say(here+" is full (quota exceeded)", "see that its consumer runs, or raise its size")
	case QueueDisabled:
		return say(here+" is disabled for "+q.activity, "enable it")
	case Throttled:
		busy := "server busy"
		if tries > 1 {
			busy = fmt.Sprintf("server busy, %d tries", tries)
		}
		return say(fmt.Sprintf("%s is throttled (%s)", here, busy), "move the namespace to a larger tier")
	case TooLarge:
		return say("the event is larger than "+here+" takes", "shorten the processor's target labels, or raise the queue's message size")
	case WrongEntity:
		if q.subscription != "" {
			return nil // no reason is known for which a subscription is refused
		}
		return say(fmt.Sprintf("Service Bus namespace %s does not allow to %s %s", q.host, q.verb, q), strings.ReplaceAll(q.wrongEntity, "NAME", q.name))
	case WrongSessions:
		if q.sessions != "" {
			return say(here+" "+q.sessions, q.sessionsRemedy)
		}
	}
	return nil
}
