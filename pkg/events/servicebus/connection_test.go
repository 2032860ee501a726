package servicebus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

func TestTheSameConsumerSurvivesItsBroker(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		j := &journal{}
		got := make(chan events.ScaleEvent)
		stop := consume(t, s.ConnectionString(), options(spec, j), into(got))
		p := newPublisher(t, s.ConnectionString(), patient())
		publish(t, p, numbered(t, "orders", 1))
		testworld.Came(t, "the event", got)
		for restart := range int64(2) {
			testworld.Eventually(t, "an empty queue", isEmpty(s))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			tried := j.at(t, slog.LevelDebug)
			testworld.Eventually(t, "several tries", func() bool { return len(j.at(t, slog.LevelDebug)) > len(tried)+3 })
			s = startBroker(t, s.Addr().String(), spec)
			publish(t, p, numbered(t, "orders", restart+2))
			if e := testworld.Came(t, "the event after the restart", got); e.Sequence != restart+2 {
				t.Errorf("got %d, want %d", e.Sequence, restart+2)
			}
			if lines := j.at(t, slog.LevelWarn); len(lines) != int(restart)+1 {
				t.Errorf("the log warns %q, want once for each outage", lines)
			}
			if lines := j.at(t, slog.LevelInfo); len(lines) != int(restart)+1 {
				t.Errorf("the log says %q, want that it works again", lines)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestABrokerThatIsNotThereYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		_ = s.Close()
		j := &journal{}
		got := make(chan events.ScaleEvent)
		consume(t, s.ConnectionString(), options(spec, j), into(got))
		testworld.Eventually(t, "the warning", j.has(t, slog.LevelWarn, "check its name, and that DNS and firewalls let port"))
		if !j.has(t, slog.LevelWarn, `"after":"1ms"`)() {
			t.Errorf("the log says %q, want the pause in words", j.at(t, slog.LevelWarn))
		}
		s = startBroker(t, s.Addr().String(), spec)
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		testworld.Came(t, "the event", got)
		testworld.Eventually(t, "an empty queue", isEmpty(s))
	})
}

func TestABrokerThatHangsIsLoggedAndHoldsUpNoStop(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		j := &journal{}
		o := options(spec, j)
		o.TryTimeout = 50 * time.Millisecond
		connectionString := fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true", silentListener(t), devKey)
		stop := consume(t, connectionString, o, into(make(chan events.ScaleEvent)))
		testworld.Eventually(t, "the warning", j.has(t, slog.LevelWarn, "firewalls let port"))
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAHandlerOutlivesALostConnectionAsLongAsItsLock(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{LockDuration: 2 * time.Second})
	h := newGate()
	j := &journal{}
	consume(t, s.ConnectionString(), options(servicebusfake.QueueSpec{}, j), h.handle)
	publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
	testworld.Came(t, "the event", h.begun)
	script(s, servicebusfake.OpManage, servicebusfake.Answer{Drop: true}) // the renewal
	testworld.Eventually(t, "the new connection", j.has(t, slog.LevelInfo, "received again"))
	close(h.open)
	testworld.Eventually(t, "that the event comes again, and is completed as repeated", isEmpty(s))
	if len(h.begun) != 0 || len(h.ending) != 0 {
		t.Errorf("the handler was called %d times more, and interrupted %d times", len(h.begun), len(h.ending))
	}
}

func TestALostSessionEndsItsHandler(t *testing.T) {
	t.Parallel()
	spec := servicebusfake.QueueSpec{RequiresSession: true, LockDuration: 2 * time.Second}
	s := startBroker(t, "", spec)
	h := newGate()
	consume(t, s.ConnectionString(), options(spec, &journal{}), h.handle)
	publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
	testworld.Came(t, "the event", h.begun)
	script(s, servicebusfake.OpManage, servicebusfake.Answer{Drop: true}) // the renewal
	testworld.Came(t, "the end of the handler", h.ending)
	close(h.open)
	testworld.Came(t, "the event again", h.begun)
	testworld.Eventually(t, "an empty queue", isEmpty(s))
}

func TestWhatNoOtherTryWouldChangeEndsRun(t *testing.T) {
	t.Parallel()
	refusing := func(spec servicebusfake.QueueSpec, condition string) func(*testing.T) string {
		return func(t *testing.T) string {
			s := startBroker(t, "", spec)
			if condition != "" {
				script(s, servicebusfake.OpAttach, servicebusfake.Answer{Condition: condition, Description: "as the test wants it", Keep: true})
			}
			return s.ConnectionString()
		}
	}
	wrongKey := func(t *testing.T) string {
		host := startBroker(t, "", servicebusfake.QueueSpec{}).Addr().String()
		return fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true", host, devKey)
	}
	sessions := servicebusfake.QueueSpec{RequiresSession: true}
	cases := []struct {
		name     string
		broker   func(*testing.T) string
		sessions bool
		want     string
		kind     servicebus.Kind
	}{
		{"no such queue", refusing(servicebusfake.QueueSpec{}, "amqp:not-found"), false, "create it, or correct its name", servicebus.QueueNotFound},
		{"no such queue, with sessions", refusing(sessions, "amqp:not-found"), true, "create it, or correct its name", servicebus.QueueNotFound},
		{"the key is wrong", wrongKey, false, "whose policy has the Listen right", servicebus.NotPermitted},
		{"the key is wrong, with sessions", wrongKey, true, "whose policy has the Listen right", servicebus.NotPermitted},
		{"the key has no right to listen", refusing(servicebusfake.QueueSpec{}, "amqp:unauthorized-access"), false, "whose policy has the Listen right", servicebus.NotPermitted},
		{"the network rules refuse the address", func(t *testing.T) string {
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			refuseNetwork(s)
			return s.ConnectionString()
		}, false, "do not let this network in: allow its address there", servicebus.NetworkDenied},
		{"the queue is disabled", refusing(servicebusfake.QueueSpec{}, "com.microsoft:entity-disabled"), false, "is disabled for receiving: enable it", servicebus.QueueDisabled},
		{"the queue requires sessions", refusing(sessions, ""), false, "requires sessions: consume it with sessions", servicebus.WrongSessions},
		{"the queue has no sessions", refusing(servicebusfake.QueueSpec{}, ""), true, "has no sessions: consume it without", servicebus.WrongSessions},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			connectionString := c.broker(t)
			o := servicebus.ConsumerOptions{Sessions: c.sessions, RetryDelay: time.Millisecond}
			consumer, err := servicebus.NewConsumer(connectionString, "scale", o)
			if err != nil {
				t.Fatal(err)
			}
			err = consumer.Run(t.Context(), into(nil))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if got := kind(err); got != c.kind {
				t.Errorf("got kind %q, want %q, of %v", got, c.kind, err)
			}
			withoutSecret(t, err, connectionString)
		})
	}
}

func TestWhatIsRefusedLaterIsLoggedAndTriedAgain(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		j := &journal{}
		got := make(chan events.ScaleEvent)
		consume(t, s.ConnectionString(), options(spec, j), into(got))
		p := newPublisher(t, s.ConnectionString(), patient())
		publish(t, p, numbered(t, "orders", 1))
		testworld.Came(t, "the event", got)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := servicebusfake.Start(servicebusfake.Options{Addr: s.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = again.Close() })
		testworld.Eventually(t, "the error", j.has(t, slog.LevelError, "create it, or correct its name"))
		spec.Name = "scale"
		if err := again.CreateQueue(spec); err != nil {
			t.Fatal(err)
		}
		publish(t, p, numbered(t, "orders", 2))
		testworld.Came(t, "the event", got)
		testworld.Eventually(t, "an empty queue", isEmpty(again))
		if lines := j.at(t, slog.LevelError); len(lines) != 1 {
			t.Errorf("the log says %q, want it once", lines)
		}
	})
}

func TestAnIdentityConsumes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		identity identity
		want     string // in the error; "" = none
	}{
		{"that may receive", identity{token: "good-token"}, ""},
		{"that may not", identity{token: "bad-token"}, `may not receive from queue "scale" of Service Bus namespace example.com: give it the role Azure Service Bus Data Receiver`},
		{"that gets no token", identity{err: errors.New("no managed identity here")}, "getting a token for Service Bus namespace example.com: no managed identity here"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, client := startTokenBroker(t)
			p, err := servicebus.NewPublisherWithIdentity("example.com", identity{token: "good-token"}, "scale", servicebus.PublisherOptions{Client: client})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close(context.Background()) })
			publish(t, p, numbered(t, "orders", 1))
			consumer, err := servicebus.NewConsumerWithIdentity("example.com", c.identity, "scale", servicebus.ConsumerOptions{Client: client})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			err = consumer.Run(ctx, func(context.Context, events.ScaleEvent) error {
				stop()
				return nil
			})
			wantError(t, err, c.want, "-token")
			if left := s.Messages("scale"); c.want == "" && len(left) != 0 {
				t.Errorf("left %v", states(left))
			}
		})
	}
}

// TestAStopLeavesNothingRunning counts goroutines, and therefore has no other
// test beside it.
func TestAStopLeavesNothingRunning(t *testing.T) {
	for name, spec := range map[string]servicebusfake.QueueSpec{"a plain queue": {}, "a queue with sessions": {RequiresSession: true}} {
		before := runtime.NumGoroutine()
		t.Run(name, func(t *testing.T) {
			s := startBroker(t, "", spec)
			got := make(chan events.ScaleEvent)
			stop := consume(t, s.ConnectionString(), options(spec, &journal{}), into(got))
			p := newPublisher(t, s.ConnectionString(), patient())
			for _, processor := range []string{"orders", "invoices", "audit"} {
				publish(t, p, numbered(t, processor, 1))
				testworld.Came(t, "the event", got)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			if strings.Contains(string(stacks), "servicebus.(*consumerRun)") {
				t.Errorf("a goroutine outlived Run:\n%s", stacks)
			}
		})
		// Those of the SDK need a moment.
		testworld.Eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	}
}
