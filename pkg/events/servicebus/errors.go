package servicebus

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/feedscale/feedscale/pkg/events"
)

var (
	errClosed   = errors.New("the publisher is closed")
	errNoAnswer = errors.New("no answer in time")
	errLinkLost = errors.New("the link was lost")
)

// unreachable adds events.ErrUnreachable to an error without changing what it says.
type unreachable struct{ error }

func (e unreachable) Is(target error) bool { return target == events.ErrUnreachable }
func (e unreachable) Unwrap() error        { return e.error }

// code is the code that the SDK puts in place of the broker's error; "" if it has none.
func code(err error) azservicebus.Code {
	var sdk *azservicebus.Error
	if errors.As(err, &sdk) {
		return sdk.Code
	}
	return ""
}

// isFinal reports whether another try would fail in the same way.
func isFinal(err error) bool {
	switch kindOf(err) {
	case "":
		return errors.As(err, new(tokenError)) || errors.Is(err, errClosed)
	case Throttled:
		return false
	}
	return true
}

// refusesMessage reports whether the broker refused the message alone, so that the link can carry the
// next one. After any other error the SDK may keep a dead sender for good.
func refusesMessage(err error) bool {
	switch kindOf(err) {
	case Throttled, QueueFull:
		return !errors.As(err, new(*amqp.LinkError)) && !errors.As(err, new(*amqp.SessionError)) && !errors.As(err, new(*amqp.ConnError))
	}
	return false
}

// explain says in one sentence what is wrong and what to do; it returns a *Refusal if the service refused.
// It leaves out what the broker says of keys and tokens, which may repeat them.
func (q queue) explain(err error, tries int) error {
	if r := q.refusal(err, tries); r != nil {
		return r
	}
	switch {
	case errors.Is(err, errClosed), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, errLinkLost):
		return fmt.Errorf("the connection to %s of Service Bus namespace %s was lost: if it stays so, see that the namespace is up, and that firewalls let port %s through", q, q.host, q.port())
	case errors.As(err, new(tokenError)):
		return fmt.Errorf("getting a token for Service Bus namespace %s: %w", q.host, err)
	case errors.Is(err, errNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return unreachable{fmt.Errorf("no answer from Service Bus namespace %s (%d tries of at most %s): see that it is up, and that firewalls let port %s through: %w",
			q.host, tries, q.try, q.port(), err)}
	case code(err) == azservicebus.CodeConnectionLost:
		return unreachable{fmt.Errorf("no working connection to Service Bus namespace %s: check its name, and that DNS and firewalls let port %s through: %w", q.host, q.port(), err)}
	}
	return fmt.Errorf("%s of Service Bus namespace %s: %w", q, q.host, err)
}

// port is the one that a firewall has to let through.
func (q queue) port() string {
	if _, port, err := net.SplitHostPort(q.host); err == nil {
		return port
	}
	return "5671 (AMQP over TLS)"
}
