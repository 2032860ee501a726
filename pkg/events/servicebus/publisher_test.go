package servicebus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

func TestAMessageIsTheEvent(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name       string
		change     func(*events.ScaleEvent)
		id         string
		subject    string
		properties map[string]any
	}{
		{
			"of a processor", func(e *events.ScaleEvent) { e.Epoch = 1767225600 }, "orders-1767225600-000000000042", "orders",
			map[string]any{"processor": "orders", "epoch": int64(1767225600), "sequence": int64(42), "desiredReplicas": int64(5), "direction": "out"},
		},
		{
			"of a group", func(e *events.ScaleEvent) {
				e.Processor, e.Group, e.Epoch = "", "shop-workers", 1767225600
				e.Members = []events.Member{{Processor: "orders", Status: "lagging"}}
			}, "shop-workers-1767225600-000000000042", "shop-workers",
			map[string]any{"group": "shop-workers", "epoch": int64(1767225600), "sequence": int64(42), "desiredReplicas": int64(5), "direction": "out"},
		},
		{
			"of a release without epochs, out of the outbox", func(*events.ScaleEvent) {}, "orders-000000000042", "orders",
			map[string]any{"processor": "orders", "epoch": int64(0), "sequence": int64(42), "desiredReplicas": int64(5), "direction": "out"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
				s := startBroker(t, "", spec)
				e := ordersEvent()
				c.change(&e)
				body := encode(t, e)
				publish(t, newPublisher(t, s.ConnectionString(), patient()), body)
				messages := s.Messages("scale")
				if len(messages) != 1 {
					t.Fatalf("got %d messages, want 1", len(messages))
				}
				m := messages[0]
				if !bytes.Equal(m.Body, body) {
					t.Errorf("body is %s, want %s", m.Body, body)
				}
				got := []string{m.ID, m.SessionID, m.Subject, m.ContentType}
				if want := []string{c.id, c.subject, "feedscale.scale.v1", "application/cloudevents+json"}; !reflect.DeepEqual(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				if !reflect.DeepEqual(m.Properties, c.properties) {
					t.Errorf("properties are %#v, want %#v", m.Properties, c.properties)
				}
			})
		})
	}
}

func TestWhatIsNoEventIsSentWithItsIdAndItsTime(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{DuplicateDetectionWindow: time.Minute})
	p := newPublisher(t, s.ConnectionString(), patient())
	for range 2 {
		if err := p.Send(t.Context(), "one", []byte("body"), 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	messages := s.Messages("scale")
	if len(messages) != 1 {
		t.Fatalf("the queue has %d messages, want the one of its id", len(messages))
	}
	if m := messages[0]; m.ID != "one" || string(m.Body) != "body" || m.ContentType != "application/json" || m.ExpiresAt.Sub(m.EnqueuedAt) != 10*time.Second {
		t.Errorf("got %+v", m)
	}
}

func TestManyPublishThroughOneSenderInOrder(t *testing.T) {
	t.Parallel()
	const processors, each = 20, 25
	s := startBroker(t, "", servicebusfake.QueueSpec{})
	connections, links := count(s, servicebusfake.OpOpen), count(s, servicebusfake.OpAttach)
	p := newPublisher(t, s.ConnectionString(), patient())
	var wg sync.WaitGroup
	for i := range processors {
		wg.Go(func() {
			for sequence := range int64(each) {
				if err := p.Publish(t.Context(), numbered(t, fmt.Sprintf("p%d", i), sequence+1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	last := map[string]int64{}
	for _, m := range s.Messages("scale") {
		sequence, _ := m.Properties["sequence"].(int64)
		if sequence != last[m.SessionID]+1 {
			t.Fatalf("%s follows %d", m.ID, last[m.SessionID])
		}
		last[m.SessionID] = sequence
	}
	if len(last) != processors || last["p0"] != each {
		t.Errorf("got the events of %d processors, %d of the first", len(last), last["p0"])
	}
	if connections.Load() != 1 || links.Load() != 1 {
		t.Errorf("got %d connections and %d senders, want one of each", connections.Load(), links.Load())
	}
}

func TestTheSamePublisherSurvivesItsBroker(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{})
	p := newPublisher(t, s.ConnectionString(), patient())
	publish(t, p, numbered(t, "orders", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	err := p.Publish(t.Context(), numbered(t, "orders", 2))
	if err == nil || !strings.Contains(err.Error(), "no working connection to Service Bus namespace "+s.Addr().String()) {
		t.Errorf("without a broker: %v", err)
	}
	again := startBroker(t, s.Addr().String(), servicebusfake.QueueSpec{})
	publish(t, p, numbered(t, "orders", 2))
	if got, want := ids(again.Messages("scale")), []string{"orders-000000000002"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAPublishOutlivesAPassingFailure(t *testing.T) {
	t.Parallel()
	const window = time.Minute
	cases := []struct {
		name            string
		op              servicebusfake.Op
		times           int
		answer          servicebusfake.Answer
		wantConnections int64
	}{
		{"the connection is cut before the message is taken", servicebusfake.OpSend, 1, servicebusfake.Answer{Drop: true}, 2},
		{"the connection is cut after the message was taken", servicebusfake.OpSend, 1, servicebusfake.Answer{Drop: true, LoseReply: true}, 2},
		{"the connection is cut while the sender is attached", servicebusfake.OpAttach, 1, servicebusfake.Answer{Drop: true}, 2},
		{"the broker is busy for a while", servicebusfake.OpSend, 5, servicebusfake.Answer{Condition: "com.microsoft:server-busy"}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startBroker(t, "", servicebusfake.QueueSpec{DuplicateDetectionWindow: window})
			connections := count(s, servicebusfake.OpOpen)
			for range c.times {
				script(s, c.op, c.answer)
			}
			publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
			if got, want := ids(s.Messages("scale")), []string{"orders-000000000001"}; !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if got := connections.Load(); got != c.wantConnections {
				t.Errorf("got %d connections, want %d", got, c.wantConnections)
			}
		})
	}
}

func TestARepeatedEventIsDroppedByTheQueue(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{DuplicateDetectionWindow: time.Minute})
	p := newPublisher(t, s.ConnectionString(), patient())
	for _, sequence := range []int64{1, 1, 2, 1} {
		publish(t, p, numbered(t, "orders", sequence))
	}
	if got, want := ids(s.Messages("scale")), []string{"orders-000000000001", "orders-000000000002"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAQueueThatIsCreatedLaterIsFound(t *testing.T) {
	t.Parallel()
	s, err := servicebusfake.Start(servicebusfake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := newPublisher(t, s.ConnectionString(), patient())
	err = p.Publish(t.Context(), numbered(t, "orders", 1))
	if err == nil || !strings.Contains(err.Error(), `queue or topic "scale" does not exist`) {
		t.Fatalf("got %v", err)
	}
	if err := s.CreateQueue(servicebusfake.QueueSpec{Name: "scale"}); err != nil {
		t.Fatal(err)
	}
	publish(t, p, numbered(t, "orders", 1))
}

func TestAfterARefusalTheNextEventTriesANewLink(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"amqp:unauthorized-access", "amqp:not-found"} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			p := newPublisher(t, s.ConnectionString(), patient())
			publish(t, p, numbered(t, "orders", 1))
			script(s, servicebusfake.OpSend, servicebusfake.Answer{Condition: condition})
			if err := p.Publish(t.Context(), numbered(t, "orders", 2)); kind(err) == "" {
				t.Errorf("got %v, want a refusal", err)
			}
			publish(t, p, numbered(t, "orders", 2))
		})
	}
}

func TestABrokerThatHangsEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	mute := func(t *testing.T) string {
		return fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true", silentListener(t), devKey)
	}
	noReply := func(t *testing.T) string {
		s := startBroker(t, "", servicebusfake.QueueSpec{})
		script(s, servicebusfake.OpSend, servicebusfake.Answer{LoseReply: true, Keep: true})
		return s.ConnectionString()
	}
	noToken := func(t *testing.T) string {
		s := startBroker(t, "", servicebusfake.QueueSpec{})
		script(s, servicebusfake.OpPutToken, servicebusfake.Answer{LoseReply: true, Keep: true})
		return s.ConnectionString()
	}
	cases := []struct {
		name    string
		broker  func(*testing.T) string
		options servicebus.PublisherOptions
		ctx     time.Duration // 0 = none
		want    string
	}{
		{"it never greets", mute, impatient(), 0, "(2 tries of at most 100ms)"},
		{"it never confirms", noReply, impatient(), 0, "(2 tries of at most 100ms)"},
		{"it never takes the token", noToken, impatient(), 0, "(2 tries of at most 100ms)"},
		{"the caller's deadline comes first", mute, servicebus.PublisherOptions{}, 100 * time.Millisecond, "(1 tries of at most 5s)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPublisher(t, c.broker(t), c.options)
			ctx := t.Context()
			if c.ctx > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.ctx)
				defer cancel()
			}
			err := p.Publish(ctx, numbered(t, "orders", 1))
			if err == nil || !strings.Contains(err.Error(), "no answer from Service Bus namespace") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if !errors.Is(err, events.ErrUnreachable) {
				t.Errorf("%v is not ErrUnreachable", err)
			}
		})
	}
}

func TestAHangingTryIsRepeatedOnANewConnection(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{DuplicateDetectionWindow: time.Minute})
	connections := count(s, servicebusfake.OpOpen)
	script(s, servicebusfake.OpSend, servicebusfake.Answer{LoseReply: true})
	p := newPublisher(t, s.ConnectionString(), servicebus.PublisherOptions{TryTimeout: 2 * time.Second, RetryDelay: time.Millisecond})
	publish(t, p, numbered(t, "orders", 1))
	publish(t, p, numbered(t, "orders", 2))
	if got, want := ids(s.Messages("scale")), []string{"orders-000000000001", "orders-000000000002"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := connections.Load(); got != 2 {
		t.Errorf("got %d connections, want 2", got)
	}
}

func TestAfterAMessageThatIsTooLargeOthersPass(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{MaxMessageSize: 64 << 10})
	p := newPublisher(t, s.ConnectionString(), patient())
	huge := ordersEvent()
	huge.Target = map[string]string{"note": strings.Repeat("x", 100<<10)}
	if err := p.Publish(t.Context(), encode(t, huge)); err == nil {
		t.Error("a message beyond the limit was taken")
	}
	publish(t, p, numbered(t, "orders", 1))
}

func TestCloseWaitsForNoBroker(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		broker func(*testing.T) (connectionString string, busy <-chan struct{})
	}{
		{"that never greets", func(t *testing.T) (string, <-chan struct{}) {
			return fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true", silentListener(t), devKey), nil
		}},
		{"that never confirms", func(t *testing.T) (string, <-chan struct{}) {
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			busy := make(chan struct{})
			s.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
				if r.Op != servicebusfake.OpSend {
					return nil
				}
				close(busy)
				return &servicebusfake.Answer{LoseReply: true}
			})
			return s.ConnectionString(), busy
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			connectionString, busy := c.broker(t)
			p := newPublisher(t, connectionString, servicebus.PublisherOptions{TryTimeout: time.Hour})
			published := make(chan error, 1)
			go func() { published <- p.Publish(t.Context(), numbered(t, "orders", 1)) }()
			if busy != nil {
				<-busy
			}
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
			// Both would take an hour if Close, or Publish after it, waited.
			if err := <-published; err == nil || !strings.Contains(err.Error(), "the publisher is closed") {
				t.Errorf("the publish under way says %v", err)
			}
			if err := p.Publish(t.Context(), numbered(t, "orders", 2)); err == nil || !strings.Contains(err.Error(), "the publisher is closed") {
				t.Errorf("a later publish says %v", err)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Errorf("closing again: %v", err)
			}
		})
	}
}
