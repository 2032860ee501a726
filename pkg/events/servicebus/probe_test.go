package servicebus_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

func TestAProbeOpensTheQueueAndSendsNothing(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{})
	attached, sent := count(s, servicebusfake.OpAttach), count(s, servicebusfake.OpSend)
	p := newPublisher(t, s.ConnectionString(), patient())
	if err := p.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if attached.Load() == 0 || sent.Load() != 0 || len(s.Messages("scale")) != 0 {
		t.Errorf("%d links attached, %d messages sent; want a link and no message", attached.Load(), sent.Load())
	}
	publish(t, p, numbered(t, "orders", 1)) // over the same link
}

func TestWhatIsPublishedToIsKnownToWhoMayReceive(t *testing.T) {
	t.Parallel()
	queue := func(spec servicebusfake.QueueSpec) func(*testing.T) *servicebusfake.Server {
		return func(t *testing.T) *servicebusfake.Server { return startBroker(t, "", spec) }
	}
	topic := func(t *testing.T) *servicebusfake.Server { return startTopic(t) }
	// As the service answers a policy without the Listen right.
	mayNotListen := func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op != servicebusfake.OpAttach || !r.Receiver || strings.Contains(r.Entity, "$") {
			return nil
		}
		return &servicebusfake.Answer{Condition: "amqp:unauthorized-access", Description: "Unauthorized access. 'Listen' claim(s) are required to perform this operation.", Keep: true}
	}
	for _, c := range []struct {
		rule    string
		broker  func(*testing.T) *servicebusfake.Server
		control func(*servicebusfake.Request) *servicebusfake.Answer
		want    servicebus.Entity
	}{
		{"a queue", queue(servicebusfake.QueueSpec{}), nil, servicebus.Queue},
		{"a queue with sessions", queue(servicebusfake.QueueSpec{RequiresSession: true}), nil, servicebus.QueueWithSessions},
		{"a topic", topic, nil, servicebus.Topic},
		{"a queue, without the right", queue(servicebusfake.QueueSpec{}), mayNotListen, servicebus.UnknownEntity},
		{"a topic, without the right", topic, mayNotListen, servicebus.UnknownEntity},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := c.broker(t)
			if c.control != nil {
				s.Control(c.control)
			}
			p := newPublisher(t, s.ConnectionString(), patient())
			publish(t, p, numbered(t, "orders", 1))
			waiting := s.Messages("scale")
			if got := p.Entity(t.Context()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if left := s.Messages("scale"); len(left) != len(waiting) || len(left) > 0 && left[0].State != servicebusfake.Active {
				t.Errorf("left %v, want it untouched", states(left))
			}
		})
	}
}

func TestAProbeSaysWhatTheServiceRefused(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		rule        string
		queue       string
		script      func(*servicebusfake.Server)
		ctx         context.Context
		want        servicebus.Kind // "" = it is no refusal
		unreachable bool
		says        string
	}{
		{"there is no such queue", "nowhere", func(*servicebusfake.Server) {}, t.Context(), servicebus.QueueNotFound, false, "does not exist"},
		{"the policy lacks the Send right", "scale", func(s *servicebusfake.Server) {
			script(s, servicebusfake.OpAttach, servicebusfake.Answer{Condition: "amqp:unauthorized-access", Description: "Unauthorized access. 'Send' claim(s) are required.", Keep: true})
		}, t.Context(), servicebus.NotPermitted, false, "Send right"},
		{"the key is wrong", "scale", func(s *servicebusfake.Server) {
			script(s, servicebusfake.OpPutToken, servicebusfake.Answer{Condition: "amqp:unauthorized-access", Description: "InvalidSignature", Status: 401, Keep: true})
		}, t.Context(), servicebus.NotPermitted, false, "is refused"},
		{"the network rules refuse the address", "scale", refuseNetwork, t.Context(), servicebus.NetworkDenied, false, "network rules"},
		{"nobody is there any more", "scale", func(s *servicebusfake.Server) { _ = s.Close() }, t.Context(), "", true, "firewalls"},
		{"the caller has given up", "scale", func(*servicebusfake.Server) {}, ended, "", false, "context canceled"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			c.script(s)
			p, err := servicebus.NewPublisher(s.ConnectionString(), c.queue, patient())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close(context.Background()) })
			err = p.Probe(c.ctx)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want an error with %q", err, c.says)
			}
			if got := kind(err); got != c.want {
				t.Errorf("got kind %q, want %q, of %v", got, c.want, err)
			}
			if got := errors.Is(err, events.ErrUnreachable); got != c.unreachable {
				t.Errorf("ErrUnreachable is %v, want %v, in %v", got, c.unreachable, err)
			}
			withoutSecret(t, err, s.ConnectionString())
		})
	}
}

func TestAProbeOfAnIdentityThatMayNotSend(t *testing.T) {
	t.Parallel()
	o := patient()
	_, o.Client = startTokenBroker(t)
	p, err := servicebus.NewPublisherWithIdentity("example.com", identity{token: "secret-token"}, "scale", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	err = p.Probe(t.Context())
	if kind(err) != servicebus.NotPermitted || !strings.Contains(err.Error(), "Azure Service Bus Data Sender") || strings.Contains(err.Error(), "-token") {
		t.Errorf("got %v, want a refusal that names the role and not the token", err)
	}
}
