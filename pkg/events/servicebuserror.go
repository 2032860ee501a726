package events

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

var (
	errClosed   = errors.New("the publisher is closed")
	errNoAnswer = errors.New("no answer in time")
)

// Conditions of the service that the SDK does not name.
const (
	condServerBusy     = amqp.ErrCond("com.microsoft:server-busy")
	condEntityDisabled = amqp.ErrCond("com.microsoft:entity-disabled")
)

// tokenError is a failure to get a token for the identity.
type tokenError struct{ err error }

func (e tokenError) Error() string { return e.err.Error() }
func (e tokenError) Unwrap() error { return e.err }

// NonRetriable marks the error for the SDK, which would otherwise hide it in
// one that says that the connection was lost.
func (e tokenError) NonRetriable() {}

// unreachable adds ErrUnreachable to an error without changing what it says.
type unreachable struct{ error }

func (e unreachable) Is(target error) bool { return target == ErrUnreachable }
func (e unreachable) Unwrap() error        { return e.error }

// condition is what the broker answered, "" where it answered nothing.
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
	return ""
}

// code is the SDK's own reading of an error, which hides the error itself.
func code(err error) azservicebus.Code {
	var sdk *azservicebus.Error
	if errors.As(err, &sdk) {
		return sdk.Code
	}
	return ""
}

// isAccess tells whether the broker refused the link rather than the message.
func isAccess(err error) bool {
	c := condition(err)
	return c == amqp.ErrCondNotFound || c == amqp.ErrCondUnauthorizedAccess
}

// isFinal tells whether another try would end the same.
func isFinal(err error) bool {
	switch condition(err) {
	case amqp.ErrCondNotFound, amqp.ErrCondUnauthorizedAccess, amqp.ErrCondNotAllowed, amqp.ErrCondResourceLimitExceeded, condEntityDisabled:
		return true
	}
	return errors.Is(err, azservicebus.ErrMessageTooLarge) || errors.As(err, new(tokenError)) || errors.Is(err, errClosed)
}

// isRejection tells whether the broker refused the message alone, so that the
// link can carry the next one. After any other error the SDK may keep a dead
// sender for good.
func isRejection(err error) bool {
	switch condition(err) {
	case condServerBusy, amqp.ErrCondResourceLimitExceeded:
		return !errors.As(err, new(*amqp.LinkError)) && !errors.As(err, new(*amqp.SessionError)) && !errors.As(err, new(*amqp.ConnError))
	}
	return false
}

// explain says in one sentence what is wrong and what to do. What the broker
// says of keys and tokens is left out, since it may repeat them.
func (q serviceBusQueue) explain(err error, tries int, tryTimeout time.Duration) error {
	switch condition(err) {
	case amqp.ErrCondNotFound:
		return fmt.Errorf("queue %q does not exist in Service Bus namespace %s: create it, or correct its name", q.name, q.host)
	case amqp.ErrCondUnauthorizedAccess:
		if q.byKey {
			return fmt.Errorf("the key for queue %q is refused by Service Bus namespace %s: use a current connection string whose policy has the %s right", q.name, q.host, q.use.right)
		}
		return fmt.Errorf("the identity may not %s queue %q of Service Bus namespace %s: give it the role %s there", q.use.may, q.name, q.host, q.use.role)
	case amqp.ErrCondResourceLimitExceeded:
		return fmt.Errorf("queue %q of Service Bus namespace %s is full (quota exceeded): see that its consumer runs, or raise its size", q.name, q.host)
	case condEntityDisabled:
		return fmt.Errorf("queue %q of Service Bus namespace %s is disabled for %s: enable it", q.name, q.host, q.use.disabled)
	case condServerBusy:
		return fmt.Errorf("queue %q of Service Bus namespace %s is throttled (server busy, %d tries): publish less often, or move the namespace to a larger tier", q.name, q.host, tries)
	}
	switch {
	case errors.Is(err, errClosed), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, azservicebus.ErrMessageTooLarge):
		return fmt.Errorf("the event is larger than queue %q of Service Bus namespace %s takes: shorten the processor's target labels, or raise the queue's message size", q.name, q.host)
	case errors.As(err, new(tokenError)):
		return fmt.Errorf("getting a token for Service Bus namespace %s: %w", q.host, err)
	case errors.Is(err, errNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return unreachable{fmt.Errorf("no answer from Service Bus namespace %s (%d tries of at most %s): see that it is up, and that firewalls let port %s through: %w",
			q.host, tries, tryTimeout, q.port(), err)}
	case code(err) == azservicebus.CodeConnectionLost:
		return unreachable{fmt.Errorf("no working connection to Service Bus namespace %s: check its name, and that DNS and firewalls let port %s through: %w", q.host, q.port(), err)}
	}
	return fmt.Errorf("queue %q of Service Bus namespace %s: %w", q.name, q.host, err)
}

// port is the one that a firewall has to let through.
func (q serviceBusQueue) port() string {
	if _, port, err := net.SplitHostPort(q.host); err == nil {
		return port
	}
	return "5671 (AMQP over TLS)"
}
