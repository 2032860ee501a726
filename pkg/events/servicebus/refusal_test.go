package servicebus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

func TestAnErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	refusing := func(op servicebusfake.Op, condition string) func(*testing.T) string {
		return func(t *testing.T) string {
			s := startBroker(t, "", servicebusfake.QueueSpec{MaxMessageSize: 64 << 10})
			if condition != "" {
				script(s, op, servicebusfake.Answer{Condition: condition, Description: "as the test wants it", Keep: true})
			}
			return s.ConnectionString()
		}
	}
	huge := ordersEvent()
	huge.Target = map[string]string{"note": strings.Repeat("x", 100<<10)}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	cases := []struct {
		name   string
		broker func(*testing.T) string
		body   []byte          // nil = an event
		ctx    context.Context // nil = that of the test
		want   string
		kind   servicebus.Kind // "" = it is no refusal
		lost   bool            // ErrUnreachable
	}{
		{"no such queue", refusing(servicebusfake.OpAttach, "amqp:not-found"), nil, nil, "create it, or correct its name", servicebus.QueueNotFound, false},
		{"the key is wrong", func(t *testing.T) string {
			host := startBroker(t, "", servicebusfake.QueueSpec{}).Addr().String()
			return fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true", host, devKey)
		}, nil, nil, "whose policy has the Send right", servicebus.NotPermitted, false},
		{"the key has no right to send", refusing(servicebusfake.OpAttach, "amqp:unauthorized-access"), nil, nil, "whose policy has the Send right", servicebus.NotPermitted, false},
		{"the network rules refuse the address", func(t *testing.T) string {
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			refuseNetwork(s)
			return s.ConnectionString()
		}, nil, nil, "do not let this network in: allow its address there", servicebus.NetworkDenied, false},
		{"the queue is full", refusing(servicebusfake.OpSend, "amqp:resource-limit-exceeded"), nil, nil, "see that its consumer runs", servicebus.QueueFull, false},
		{"the queue is disabled", refusing(servicebusfake.OpSend, "com.microsoft:entity-disabled"), nil, nil, "enable it", servicebus.QueueDisabled, false},
		{"the broker stays busy", refusing(servicebusfake.OpSend, "com.microsoft:server-busy"), nil, nil, "a larger tier", servicebus.Throttled, false},
		{"the event is too large", refusing("", ""), encode(t, huge), nil, "shorten the processor's target labels", servicebus.TooLarge, false},
		{"the event is too large, says the broker", refusing(servicebusfake.OpSend, "amqp:link:message-size-exceeded"), nil, nil, "shorten the processor's target labels", servicebus.TooLarge, false},
		{"nobody listens", func(t *testing.T) string {
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			_ = s.Close()
			return s.ConnectionString()
		}, nil, nil, "check its name, and that DNS and firewalls let port", "", true},
		{"a condition nobody knows, which the SDK takes for a lost connection", refusing(servicebusfake.OpSend, "com.example:moon"), nil, nil, "as the test wants it", "", true},
		{"the body is no event", refusing("", ""), []byte(`{"a":1}`), nil, "not a scale event: missing specversion, id", "", false},
		{"the caller has given up", refusing("", ""), nil, ended, "context canceled", "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			connectionString := c.broker(t)
			p := newPublisher(t, connectionString, patient())
			if c.body == nil {
				c.body = encode(t, ordersEvent())
			}
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			err := p.Publish(c.ctx, c.body)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if got := kind(err); got != c.kind {
				t.Errorf("got kind %q, want %q, of %v", got, c.kind, err)
			}
			if got, want := errors.Is(err, events.ErrTooLarge), c.kind == servicebus.TooLarge; got != want {
				t.Errorf("ErrTooLarge is %v, want %v, in %v", got, want, err)
			}
			if got := errors.Is(err, events.ErrUnreachable); got != c.lost {
				t.Errorf("ErrUnreachable is %v, want %v, in %v", got, c.lost, err)
			}
			withoutSecret(t, err, connectionString)
		})
	}
}

func TestARefusalSaysWhatTheServiceAnswered(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{})
	script(s, servicebusfake.OpSend, servicebusfake.Answer{Condition: "amqp:resource-limit-exceeded", Description: "TOPSECRET", Keep: true})
	var r *servicebus.Refusal
	if err := newPublisher(t, s.ConnectionString(), patient()).Publish(t.Context(), numbered(t, "orders", 1)); !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := servicebus.Refusal{
		Kind:    servicebus.QueueFull,
		Meaning: fmt.Sprintf(`queue or topic "scale" of Service Bus namespace %s is full (quota exceeded)`, s.Addr()),
		Remedy:  "see that its consumer runs, or raise its size",
	}
	if *r != want {
		t.Errorf("got  %+v\nwant %+v", *r, want)
	}
	if got := r.Error(); got != want.Meaning+": "+want.Remedy {
		t.Errorf("got %q", got)
	}
}
