package events

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/go-amqp"
)

// What Probe tells apart.
var (
	ErrNoQueue    = errors.New("the queue does not exist")
	ErrMayNotSend = errors.New("sending is not permitted")
	ErrFirewall   = errors.New("the firewall refuses this network")
)

// firewallRefusal is how Service Bus words that a network rule refuses a token.
const firewallRefusal = "Ip has been prevented to connect"

// Probe opens a link that can send to the queue, and sends nothing. Its error
// says what to do; it is ErrNoQueue, ErrMayNotSend or ErrFirewall where the
// service said so, and ErrUnreachable where it did not answer.
func (s *ServiceBus) Probe(ctx context.Context) error {
	link, err := s.use()
	if err != nil {
		return s.queue.explain(err, 1, s.options.TryTimeout)
	}
	defer link.users.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.TryTimeout, errNoAnswer)
	defer cancel()
	opened := make(chan error, 1)
	go func() {
		_, err := link.sender.NewMessageBatch(ctx, nil)
		opened <- err
	}()
	select {
	case err = <-opened:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	s.retire(link)
	if ctx.Err() != nil {
		return s.queue.explain(context.Cause(ctx), 1, s.options.TryTimeout)
	}
	sentence := s.queue.explain(err, 1, s.options.TryTimeout)
	switch condition(err) {
	case amqp.ErrCondNotFound:
		return denial{sentence, ErrNoQueue}
	case amqp.ErrCondUnauthorizedAccess:
		if strings.Contains(err.Error(), firewallRefusal) {
			return denial{fmt.Errorf("the network rules of Service Bus namespace %s do not let this network in: allow its address there", s.queue.host), ErrFirewall}
		}
		return denial{sentence, ErrMayNotSend}
	}
	return sentence
}

// denial adds what the service said to an error without changing its words.
type denial struct {
	error
	kind error
}

func (d denial) Is(target error) bool { return target == d.kind }
func (d denial) Unwrap() error        { return d.error }
