package servicebus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// onBothQueues runs a test on a queue without sessions, and on one with.
func onBothQueues(t *testing.T, test func(t *testing.T, spec servicebusfake.QueueSpec)) {
	for name, spec := range map[string]servicebusfake.QueueSpec{"a plain queue": {}, "a queue with sessions": {RequiresSession: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, spec)
		})
	}
}

// journal is a log that a test reads.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(line))
	return len(line), nil
}

// at returns the lines of a level.
func (j *journal) at(t *testing.T, level slog.Level) []string {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for _, line := range j.lines {
		var entry struct{ Level slog.Level }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Level == level {
			found = append(found, line)
		}
	}
	return found
}

func (j *journal) has(t *testing.T, level slog.Level, text string) func() bool {
	return func() bool {
		return slices.ContainsFunc(j.at(t, level), func(line string) bool { return strings.Contains(line, text) })
	}
}

// options are those of a consumer that pauses hardly at all.
func options(spec servicebusfake.QueueSpec, j *journal) servicebus.ConsumerOptions {
	return servicebus.ConsumerOptions{
		Sessions: spec.RequiresSession, RetryDelay: time.Millisecond, Grace: 5 * time.Second,
		Log: slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// consume runs a consumer of the queue scale, which the end of the test stops.
// stop stops it before, and returns what Run says.
func consume(t *testing.T, connectionString string, o servicebus.ConsumerOptions, handle servicebus.Handler) (stop func() error) {
	t.Helper()
	c, err := servicebus.NewConsumer(connectionString, "scale", o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = c.Run(ctx, handle)
	}()
	stop = func() error {
		cancel()
		select {
		case <-ended:
			return err
		case <-time.After(testworld.Deadline):
			return errors.New("Run never ended")
		}
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// into is a handler that hands on what it gets.
func into(got chan<- events.ScaleEvent) servicebus.Handler {
	return func(ctx context.Context, e events.ScaleEvent) error {
		select {
		case got <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gate is a handler that reports each event, and waits until it is open or its context ends, which it
// reports too.
type gate struct {
	begun  chan events.ScaleEvent
	open   chan struct{}
	ending chan error
}

func newGate() gate {
	return gate{make(chan events.ScaleEvent, 10), make(chan struct{}), make(chan error, 10)}
}

func (g gate) handle(ctx context.Context, e events.ScaleEvent) error {
	g.begun <- e
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		g.ending <- context.Cause(ctx)
		return ctx.Err()
	}
}

// made is the event of a processor at an epoch and a sequence, made so many minutes later.
func made(t *testing.T, processor string, epoch, sequence int64, minutes time.Duration) []byte {
	t.Helper()
	e := ordersEvent()
	e.Processor, e.Epoch, e.Sequence, e.Time = processor, epoch, sequence, e.Time.Add(minutes*time.Minute)
	return encode(t, e)
}

// sendRaw sends a message that no publisher would.
func sendRaw(t *testing.T, s *servicebusfake.Server, message *azservicebus.Message) {
	t.Helper()
	client := rawClient(t, s)
	sender, err := client.NewSender("scale", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.SendMessage(t.Context(), message, nil); err != nil {
		t.Fatal(err)
	}
}

func rawClient(t *testing.T, s *servicebusfake.Server) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(s.ConnectionString(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func isEmpty(s *servicebusfake.Server) func() bool {
	return func() bool { return len(s.Messages("scale")) == 0 }
}

// dead returns the dead letters of the queue once there are so many.
func dead(t *testing.T, s *servicebusfake.Server, n int) []servicebusfake.Message {
	t.Helper()
	var found []servicebusfake.Message
	testworld.Eventually(t, "the dead letters", func() bool {
		found = s.Messages("scale/$DeadLetterQueue")
		return len(found) >= n
	})
	return found
}

func TestAnEventIsHandledAndCompleted(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		got := make(chan events.ScaleEvent)
		stop := consume(t, s.ConnectionString(), options(spec, &journal{}), into(got))
		p := newPublisher(t, s.ConnectionString(), patient())
		for sequence := range int64(3) {
			body := numbered(t, "orders", sequence+1)
			publish(t, p, body)
			if again := encode(t, testworld.Came(t, "the event", got)); !bytes.Equal(again, body) {
				t.Errorf("got  %s\nwant %s", again, body)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if left := s.Messages("scale"); len(left) != 0 {
			t.Errorf("%v are left", ids(left))
		}
	})
}

func TestWhatIsStaleOrRepeatedIsCompletedUnhandled(t *testing.T) {
	t.Parallel()
	type event struct {
		epoch    int64
		sequence int64
		minutes  time.Duration // of its making
	}
	cases := []struct {
		name         string
		first, later event
		want         bool // handled
	}{
		{"the next sequence", event{5, 7, 0}, event{5, 8, 1}, true},
		{"a sequence far ahead, since events may be lost", event{5, 7, 0}, event{5, 70, 1}, true},
		{"the same event again", event{5, 7, 0}, event{5, 7, 0}, false},
		{"the same id, made anew", event{5, 7, 0}, event{5, 7, 5}, false},
		{"a lower sequence", event{5, 7, 0}, event{5, 6, 1}, false},
		{"a later epoch, which begins at 1 again", event{5, 7, 0}, event{6, 1, 1}, true},
		{"an earlier epoch, whatever its sequence", event{5, 7, 0}, event{4, 70, 1}, false},
		{"without epochs: the next sequence", event{0, 7, 0}, event{0, 8, 1}, true},
		{"without epochs: the same event again", event{0, 7, 0}, event{0, 7, 0}, false},
		{"without epochs: the same id, made anew", event{0, 7, 0}, event{0, 7, 5}, false},
		{"without epochs: a lower sequence, made before", event{0, 7, 0}, event{0, 6, -1}, false},
		{"without epochs: a lower sequence, made at the same time", event{0, 7, 0}, event{0, 6, 0}, false},
		{"without epochs: a lower sequence, made later", event{0, 7, 0}, event{0, 1, 1}, false},
		{"the first with an epoch, after an upgrade", event{0, 7, 0}, event{5, 8, 1}, true},
		{"one without an epoch, left behind by an upgrade", event{5, 8, 0}, event{0, 9, 1}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
				s := startBroker(t, "", spec)
				got := make(chan events.ScaleEvent, 2)
				stop := consume(t, s.ConnectionString(), options(spec, &journal{}), into(got))
				p := newPublisher(t, s.ConnectionString(), patient())
				publish(t, p, made(t, "orders", c.first.epoch, c.first.sequence, c.first.minutes))
				testworld.Came(t, "the first event", got)
				publish(t, p, made(t, "orders", c.later.epoch, c.later.sequence, c.later.minutes))
				testworld.Eventually(t, "an empty queue", isEmpty(s))
				if err := stop(); err != nil {
					t.Error(err)
				}
				if handled := len(got) == 1; handled != c.want {
					t.Errorf("handled is %v, want %v", handled, c.want)
				}
			})
		})
	}
}

func TestAGroupHasItsOwnOrder(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		got := make(chan events.ScaleEvent, 3)
		consume(t, s.ConnectionString(), options(spec, &journal{}), into(got))
		p := newPublisher(t, s.ConnectionString(), patient())
		group := ordersEvent()
		group.Processor, group.Group, group.Sequence = "", "shop-workers", 1
		group.Members = []events.Member{{Processor: "orders", Status: "lagging"}}
		for _, c := range []struct {
			body    []byte
			subject string
		}{{numbered(t, "orders", 7), "orders"}, {encode(t, group), "shop-workers"}} {
			publish(t, p, c.body)
			if e := testworld.Came(t, "the event", got); e.Subject() != c.subject {
				t.Errorf("got an event of %q, want one of %q", e.Subject(), c.subject)
			}
		}
		publish(t, p, encode(t, group))
		testworld.Eventually(t, "an empty queue", isEmpty(s))
		if len(got) != 0 {
			t.Error("the group's event was handled twice")
		}
	})
}

func TestAfterARestartTheFirstEventCountsWhateverItsSequence(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{})
	p := newPublisher(t, s.ConnectionString(), patient())
	for _, sequence := range []int64{9, 4} {
		got := make(chan events.ScaleEvent)
		stop := consume(t, s.ConnectionString(), options(servicebusfake.QueueSpec{}, &journal{}), into(got))
		publish(t, p, numbered(t, "orders", sequence))
		if e := testworld.Came(t, "the event", got); e.Sequence != sequence {
			t.Errorf("got sequence %d, want %d", e.Sequence, sequence)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestOfSeveralThatWaitOnlyTheNewestIsHandled(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		h := newGate()
		consume(t, s.ConnectionString(), options(spec, &journal{}), h.handle)
		p := newPublisher(t, s.ConnectionString(), patient())
		publish(t, p, numbered(t, "orders", 1))
		first := testworld.Came(t, "the first event", h.begun)
		for _, sequence := range []int64{2, 5, 3, 4} {
			publish(t, p, numbered(t, "orders", sequence))
		}
		testworld.Eventually(t, "that the others are completed", func() bool { return len(s.Messages("scale")) == 2 })
		close(h.open)
		second := testworld.Came(t, "the newest event", h.begun)
		if first.Sequence != 1 || second.Sequence != 5 {
			t.Errorf("got %d and %d, want 1 and 5", first.Sequence, second.Sequence)
		}
		testworld.Eventually(t, "an empty queue", isEmpty(s))
	})
}

func TestWhatCannotBeReadIsDeadLetteredWithItsReason(t *testing.T) {
	t.Parallel()
	other := bytes.Replace(encode(t, ordersEvent()), []byte("feedscale.scale.v1"), []byte("TOPSECRET.v2"), 1)
	huge := []byte(`{"specversion":"1.0","type":"` + strings.Repeat("é", 5000) + `"}`)
	cases := []struct {
		name string
		body []byte
		want string // in the description
	}{
		{"no JSON", []byte("scale orders to TOPSECRET"), "no JSON object"},
		{"nothing", nil, "no JSON object"},
		{"another type", other, `type is "TOPSECRET.v2"`},
		{"a description longer than the broker takes is cut", huge, "ééé"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
				s := startBroker(t, "", spec)
				session, id := "orders", "m-1"
				sendRaw(t, s, &azservicebus.Message{Body: c.body, SessionID: &session, MessageID: &id})
				j := &journal{}
				got := make(chan events.ScaleEvent)
				consume(t, s.ConnectionString(), options(spec, j), into(got))
				m := dead(t, s, 1)[0]
				reason, _ := m.Properties["DeadLetterReason"].(string)
				description, _ := m.Properties["DeadLetterErrorDescription"].(string)
				if reason != "not a scale event" || !strings.Contains(description, c.want) || len(description) > 1024 {
					t.Errorf("got %q, %q", reason, description)
				}
				publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
				testworld.Came(t, "the event behind it", got)
				testworld.Eventually(t, "the log", j.has(t, slog.LevelWarn, "m-1"))
				if lines := j.at(t, slog.LevelWarn); !strings.Contains(lines[0], `"reason":"not a scale event"`) || strings.Contains(lines[0], "TOPSECRET") {
					t.Errorf("the log says %s, want the reason and nothing of the body", lines[0])
				}
			})
		})
	}
}

// TestEventsOfBadNamesHoldUpNobody has a handler that fails for what it cannot put into a header.
func TestEventsOfBadNamesHoldUpNobody(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		sender, err := rawClient(t, s).NewSender("scale", nil)
		testworld.Must(t, err)
		batch, err := sender.NewMessageBatch(t.Context(), nil)
		testworld.Must(t, err)
		const bad = 40
		for i := range bad {
			session := fmt.Sprintf("bad%d\r\n", i)
			body := strings.ReplaceAll(string(numbered(t, "orders", 1)), "orders", fmt.Sprintf(`bad%d\r\n`, i))
			testworld.Must(t, batch.AddMessage(&azservicebus.Message{Body: []byte(body), SessionID: &session}, nil))
		}
		testworld.Must(t, sender.SendMessageBatch(t.Context(), batch, nil))
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		got := make(chan events.ScaleEvent, bad)
		consume(t, s.ConnectionString(), options(spec, &journal{}), func(_ context.Context, e events.ScaleEvent) error {
			got <- e
			if e.Processor != "orders" {
				return errors.New("invalid header")
			}
			return nil
		})
		if e := testworld.Came(t, "the event of another processor", got); e.Processor != "orders" {
			t.Errorf("%q is handled", e.Processor)
		}
		for _, m := range dead(t, s, bad) {
			if description, _ := m.Properties["DeadLetterErrorDescription"].(string); !strings.Contains(description, "allowed are 1 to 63 lower-case letters") {
				t.Errorf("a dead letter says %q", description)
			}
		}
	})
}

// TestAnEpochInTheFutureSilencesNobody has an event that would make all later ones of its subject stale.
func TestAnEpochInTheFutureSilencesNobody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		epoch func(now int64) int64
		dead  bool
	}{
		{"the last epoch there is", func(int64) int64 { return events.MaxEpoch }, true},
		// Five minutes are allowed. On a busy machine some of the twenty pass before the event is received.
		{"twenty minutes ahead", func(now int64) int64 { return now + 1200 }, true},
		{"four minutes ahead, as a clock may be", func(now int64) int64 { return now + 240 }, false},
		{"now", func(now int64) int64 { return now }, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
				s := startBroker(t, "", spec)
				got := make(chan events.ScaleEvent, 2)
				consume(t, s.ConnectionString(), options(spec, &journal{}), into(got))
				p := newPublisher(t, s.ConnectionString(), patient())
				publish(t, p, made(t, "orders", c.epoch(time.Now().Unix()), 1, 0))
				if !c.dead {
					testworld.Came(t, "the event", got)
					return
				}
				if m := dead(t, s, 1)[0]; m.Properties["DeadLetterReason"] != "its epoch is in the future" {
					t.Errorf("the dead letter says %v", m.Properties)
				}
				publish(t, p, made(t, "orders", 5, 1, 0))
				if e := testworld.Came(t, "the event behind it", got); e.Epoch != 5 {
					t.Errorf("epoch %d is handled", e.Epoch)
				}
			})
		})
	}
}

func TestAHandlerDeadLettersWhatItCannotActUpon(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		j := &journal{}
		consume(t, s.ConnectionString(), options(spec, j), func(context.Context, events.ScaleEvent) error {
			return errors.Join(events.ErrDeadLetter, errors.New("no deployment is named"))
		})
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		m := dead(t, s, 1)[0]
		if reason, _ := m.Properties["DeadLetterReason"].(string); !strings.Contains(reason, "no deployment is named") || m.DeliveryCount != 0 {
			t.Errorf("got %q after %d deliveries", reason, m.DeliveryCount)
		}
		if !j.has(t, slog.LevelWarn, "no deployment is named")() {
			t.Errorf("the log warns %q, want the reason", j.at(t, slog.LevelWarn))
		}
	})
}

func TestAHandlerThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		spec.MaxDeliveryCount = 1 // so that giving it back would lose it
		s := startBroker(t, "", spec)
		tries := make(chan int, 10)
		j := &journal{}
		consume(t, s.ConnectionString(), options(spec, j), func(context.Context, events.ScaleEvent) error {
			tries <- 1
			if len(tries) < 3 {
				return errors.New("the cluster is busy")
			}
			return nil
		})
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		testworld.Eventually(t, "an empty queue", isEmpty(s))
		if len(tries) != 3 {
			t.Errorf("got %d tries, want 3", len(tries))
		}
		if lines := j.at(t, slog.LevelWarn); len(lines) != 1 || !strings.Contains(lines[0], "the cluster is busy") {
			t.Errorf("the log says %q, want it once", lines)
		}
	})
}

func TestAHandlerThatKeepsFailingUsesUpTheDeliveries(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		spec.MaxDeliveryCount = 2
		s := startBroker(t, "", spec)
		tries := make(chan int, 100)
		consume(t, s.ConnectionString(), options(spec, &journal{}), func(context.Context, events.ScaleEvent) error {
			tries <- 1
			return errors.New("the cluster is gone")
		})
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		if reason := dead(t, s, 1)[0].Properties["DeadLetterReason"]; reason != "MaxDeliveryCountExceeded" {
			t.Errorf("got %v", reason)
		}
		if len(tries) != 12 {
			t.Errorf("got %d tries, want 6 in each of 2 deliveries", len(tries))
		}
	})
}

func TestANewerEventSupersedesOneThatFails(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		o := options(spec, &journal{})
		o.Concurrency, o.RetryDelay = 1, time.Hour
		got := make(chan int64, 10)
		consume(t, s.ConnectionString(), o, func(_ context.Context, e events.ScaleEvent) error {
			got <- e.Sequence
			if e.Sequence == 1 {
				return errors.New("no such size")
			}
			return nil
		})
		p := newPublisher(t, s.ConnectionString(), patient())
		publish(t, p, numbered(t, "orders", 1))
		testworld.Came(t, "the first event", got)
		// While it waits for its hour, its place as the only handler is another's.
		publish(t, p, numbered(t, "invoices", 3))
		if sequence := testworld.Came(t, "the event of another processor", got); sequence != 3 {
			t.Errorf("got %d, want 3", sequence)
		}
		publish(t, p, numbered(t, "orders", 2))
		if sequence := testworld.Came(t, "the newer event", got); sequence != 2 {
			t.Errorf("got %d, want 2", sequence)
		}
		testworld.Eventually(t, "an empty queue", isEmpty(s))
	})
}

func TestAConsumerWithAnIdentityNeedsNamespaceAndQueue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, namespace, queue string }{{"no namespace", "", "scale"}, {"no queue", "shop.servicebus.windows.net", ""}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := servicebus.NewConsumerWithIdentity(c.namespace, identity{}, c.queue, servicebus.ConsumerOptions{}); err == nil {
				t.Error("no error")
			}
		})
	}
}
