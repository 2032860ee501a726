package servicebusfake_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// start runs a stand-in with the given queues for the length of a test.
func start(t *testing.T, o servicebusfake.Options) *servicebusfake.Server {
	t.Helper()
	s, err := servicebusfake.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, s *servicebusfake.Server) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(s.ConnectionString(), &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// deadline is far beyond what any operation takes; it only ends a test that hangs.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testworld.Deadline)
	t.Cleanup(cancel)
	return ctx
}

func newSender(t *testing.T, client *azservicebus.Client, queue string) *azservicebus.Sender {
	t.Helper()
	sender, err := client.NewSender(queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

func newReceiver(t *testing.T, client *azservicebus.Client, queue string, o *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	t.Helper()
	receiver, err := client.NewReceiverForQueue(queue, o)
	if err != nil {
		t.Fatal(err)
	}
	return receiver
}

func send(t *testing.T, sender *azservicebus.Sender, messages ...*azservicebus.Message) {
	t.Helper()
	for _, m := range messages {
		if err := sender.SendMessage(deadline(t), m, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func text(body string) *azservicebus.Message { return &azservicebus.Message{Body: []byte(body)} }

type receiving interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// receive returns exactly as many messages, however many calls that takes.
func receive(t *testing.T, r receiving, count int) []*azservicebus.ReceivedMessage {
	t.Helper()
	var all []*azservicebus.ReceivedMessage
	for len(all) < count {
		messages, err := r.ReceiveMessages(deadline(t), count-len(all), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, messages...)
	}
	return all
}

func bodies(messages []*azservicebus.ReceivedMessage) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, string(m.Body))
	}
	return strings.Join(texts, " ")
}

func states(s *servicebusfake.Server, queue string) []servicebusfake.State {
	var all []servicebusfake.State
	for _, m := range s.Messages(queue) {
		all = append(all, m.State)
	}
	return all
}

func ptr[T any](v T) *T { return &v }

func orders(spec servicebusfake.QueueSpec) servicebusfake.Options {
	spec.Name = "orders"
	return servicebusfake.Options{Queues: []servicebusfake.QueueSpec{spec}}
}

func TestAMessageArrivesWithAllItsProperties(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), &azservicebus.Message{
		Body: []byte("hello"), MessageID: ptr("m1"), CorrelationID: ptr("c1"), Subject: ptr("s1"), ContentType: ptr("text/plain"),
		To: ptr("to"), ReplyTo: ptr("reply"), PartitionKey: ptr("p"), TimeToLive: ptr(time.Hour),
		ApplicationProperties: map[string]any{"text": "x", "int": int64(7), "yes": true, "float": 1.5},
	})

	got := receive(t, newReceiver(t, client, "orders", nil), 1)[0]
	if string(got.Body) != "hello" || got.MessageID != "m1" || *got.CorrelationID != "c1" || *got.Subject != "s1" ||
		*got.ContentType != "text/plain" || *got.To != "to" || *got.ReplyTo != "reply" || *got.PartitionKey != "p" {
		t.Errorf("got %+v", got)
	}
	for name, want := range map[string]any{"text": "x", "int": int64(7), "yes": true, "float": 1.5} {
		if got := got.ApplicationProperties[name]; got != want {
			t.Errorf("property %s: got %v (%T), want %v (%T)", name, got, got, want, want)
		}
	}
	if *got.SequenceNumber != 1 || got.DeliveryCount != 1 || got.State != azservicebus.MessageStateActive || *got.TimeToLive != time.Hour {
		t.Errorf("got sequence %d, delivery %d, state %v, ttl %v", *got.SequenceNumber, got.DeliveryCount, got.State, *got.TimeToLive)
	}
	if got.LockedUntil.Sub(*got.EnqueuedTime) < 50*time.Second {
		t.Errorf("locked until %v, enqueued %v", got.LockedUntil, got.EnqueuedTime)
	}
}

func TestSettling(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		settle func(context.Context, *azservicebus.Receiver, *azservicebus.ReceivedMessage) error
		want   servicebusfake.State // empty = gone
		count  int
	}{
		"complete removes the message": {
			settle: func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.CompleteMessage(ctx, m, nil)
			},
		},
		"abandon returns it and counts the delivery": {
			settle: func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.AbandonMessage(ctx, m, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"tried": "yes"}})
			},
			want: servicebusfake.Active, count: 1,
		},
		"defer sets it aside": {
			settle: func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.DeferMessage(ctx, m, &azservicebus.DeferMessageOptions{PropertiesToModify: map[string]any{"tried": "yes"}})
			},
			want: servicebusfake.Deferred,
		},
		"dead-letter moves it": {
			settle: func(ctx context.Context, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.DeadLetterMessage(ctx, m, &azservicebus.DeadLetterOptions{PropertiesToModify: map[string]any{"tried": "yes"}})
			},
			want: servicebusfake.DeadLettered,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, orders(servicebusfake.QueueSpec{}))
			client := connect(t, s)
			send(t, newSender(t, client, "orders"), text("a"))
			receiver := newReceiver(t, client, "orders", nil)
			testworld.Must(t, test.settle(deadline(t), receiver, receive(t, receiver, 1)[0]))
			got := s.Messages("orders")
			if test.want == "" {
				if len(got) != 0 {
					t.Errorf("got %+v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].State != test.want || got[0].DeliveryCount != test.count || got[0].Properties["tried"] != "yes" {
				t.Errorf("got %+v, want one that is %s", got, test.want)
			}
		})
	}
}

func TestAnAbandonedMessageComesAgain(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), text("a"))
	receiver := newReceiver(t, client, "orders", nil)
	testworld.Must(t, receiver.AbandonMessage(deadline(t), receive(t, receiver, 1)[0], nil))
	if got := receive(t, receiver, 1)[0]; got.DeliveryCount != 2 {
		t.Errorf("got delivery %d, want 2", got.DeliveryCount)
	}
}

func TestADeadLetterTellsItsReason(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), text("a"))
	receiver := newReceiver(t, client, "orders", nil)
	testworld.Must(t, receiver.DeadLetterMessage(deadline(t), receive(t, receiver, 1)[0], &azservicebus.DeadLetterOptions{
		Reason: ptr("bad"), ErrorDescription: ptr("very bad"),
	}))
	dead := newReceiver(t, client, "orders", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	got := receive(t, dead, 1)[0]
	if *got.DeadLetterReason != "bad" || *got.DeadLetterErrorDescription != "very bad" {
		t.Errorf("got %q, %q", *got.DeadLetterReason, *got.DeadLetterErrorDescription)
	}
	testworld.Must(t, dead.CompleteMessage(deadline(t), got, nil))
	if got := s.Messages("orders"); len(got) != 0 {
		t.Errorf("got %+v, want none", got)
	}
}

func TestTooManyDeliveriesDeadLetter(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{MaxDeliveryCount: 2}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), text("a"))
	receiver := newReceiver(t, client, "orders", nil)
	for range 2 {
		testworld.Must(t, receiver.AbandonMessage(deadline(t), receive(t, receiver, 1)[0], nil))
	}
	got := s.Messages("orders/$deadletterqueue")
	if len(got) != 1 || got[0].Properties["DeadLetterReason"] != "MaxDeliveryCountExceeded" {
		t.Errorf("got %+v", got)
	}
}

func TestADeferredMessageIsReceivedByItsNumber(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), text("a"))
	receiver := newReceiver(t, client, "orders", nil)
	testworld.Must(t, receiver.DeferMessage(deadline(t), receive(t, receiver, 1)[0], nil))
	got, err := receiver.ReceiveDeferredMessages(deadline(t), []int64{1}, nil)
	testworld.Must(t, err)
	if bodies(got) != "a" {
		t.Fatalf("got %q", bodies(got))
	}
	testworld.Must(t, receiver.AbandonMessage(deadline(t), got[0], nil))
	if got := states(s, "orders"); !slices.Equal(got, []servicebusfake.State{servicebusfake.Deferred}) {
		t.Errorf("abandoned: got %v, want it deferred still", got)
	}
	got, err = receiver.ReceiveDeferredMessages(deadline(t), []int64{1}, nil)
	testworld.Must(t, err)
	testworld.Must(t, receiver.CompleteMessage(deadline(t), got[0], nil))
	if got := states(s, "orders"); len(got) != 0 {
		t.Errorf("completed: got %v, want none", got)
	}
	_, err = receiver.ReceiveDeferredMessages(deadline(t), []int64{1}, nil)
	var refused *azservicebus.Error
	if !errors.As(err, &refused) || refused.Code != azservicebus.CodeNotFound {
		t.Errorf("got %v, want not found", err)
	}
}

func TestReceiveAndDeleteNeedsNoSettling(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), text("a"), text("b"))
	receiver := newReceiver(t, client, "orders", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if got := bodies(receive(t, receiver, 2)); got != "a b" {
		t.Errorf("got %q", got)
	}
	if got := s.Messages("orders"); len(got) != 0 {
		t.Errorf("got %+v, want none", got)
	}
}

func TestALockIsRenewed(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), text("a"))
	receiver := newReceiver(t, client, "orders", nil)
	m := receive(t, receiver, 1)[0]
	before := *m.LockedUntil
	testworld.Must(t, receiver.RenewMessageLock(deadline(t), m, nil))
	if m.LockedUntil.Before(before) {
		t.Errorf("locked until %v, before until %v", m.LockedUntil, before)
	}
	testworld.Must(t, receiver.CompleteMessage(deadline(t), m, nil))
	var lost *azservicebus.Error
	if err := receiver.RenewMessageLock(deadline(t), m, nil); !errors.As(err, &lost) || lost.Code != azservicebus.CodeLockLost {
		t.Errorf("a settled message: got %v, want lock lost", err)
	}
}

func TestALostLockCannotSettle(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{LockDuration: 20 * time.Millisecond}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), text("a"))
	receiver := newReceiver(t, client, "orders", nil)
	first := receive(t, receiver, 1)[0]
	again := receive(t, receiver, 1)[0]
	if again.DeliveryCount < 2 {
		t.Errorf("got delivery %d, want a second one", again.DeliveryCount)
	}
	var lost *azservicebus.Error
	if err := receiver.CompleteMessage(deadline(t), first, nil); !errors.As(err, &lost) || lost.Code != azservicebus.CodeLockLost {
		t.Errorf("got %v, want lock lost", err)
	}
}

func TestABatchArrivesAsItsMessages(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	sender := newSender(t, client, "orders")
	batch, err := sender.NewMessageBatch(deadline(t), nil)
	testworld.Must(t, err)
	for _, body := range []string{"a", "b", "c"} {
		testworld.Must(t, batch.AddMessage(text(body), nil))
	}
	testworld.Must(t, sender.SendMessageBatch(deadline(t), batch, nil))
	if got := bodies(receive(t, newReceiver(t, client, "orders", nil), 3)); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

func TestALargeMessageArrivesWhole(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	large := strings.Repeat("0123456789", 20_000)
	send(t, newSender(t, client, "orders"), text(large))
	if got := bodies(receive(t, newReceiver(t, client, "orders", nil), 1)); got != large {
		t.Errorf("got %d bytes, want %d", len(got), len(large))
	}
}

func TestAMessageBeyondTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{MaxMessageSize: 1000}))
	err := newSender(t, connect(t, s), "orders").SendMessage(deadline(t), text(strings.Repeat("x", 1001)), nil)
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("got %v, want too large", err)
	}
}

func TestManyMessagesPassTheWindows(t *testing.T) {
	t.Parallel()
	const count = 12_000
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	sender := newSender(t, client, "orders")
	for sent := 0; sent < count; {
		batch, err := sender.NewMessageBatch(deadline(t), nil)
		testworld.Must(t, err)
		for sent < count && batch.AddMessage(text("x"), nil) == nil {
			sent++
		}
		testworld.Must(t, sender.SendMessageBatch(deadline(t), batch, nil))
	}
	receiver := newReceiver(t, client, "orders", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	received := 0
	for received < count {
		messages, err := receiver.ReceiveMessages(deadline(t), 5000, nil)
		testworld.Must(t, err)
		for _, m := range messages {
			received++
			if *m.SequenceNumber != int64(received) {
				t.Fatalf("got number %d, want %d", *m.SequenceNumber, received)
			}
		}
	}
}

func TestADuplicateIsTakenAndDropped(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{DuplicateDetectionWindow: time.Hour}))
	sender := newSender(t, connect(t, s), "orders")
	for _, id := range []string{"1", "2", "1"} {
		send(t, sender, &azservicebus.Message{Body: []byte(id), MessageID: &id})
	}
	if got := s.Messages("orders"); len(got) != 2 || got[0].ID != "1" || got[1].ID != "2" {
		t.Errorf("got %+v", got)
	}
}

func TestAScheduledMessageWaits(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	sender := newSender(t, client, "orders")
	numbers, err := sender.ScheduleMessages(deadline(t), []*azservicebus.Message{text("a"), text("b")}, time.Now().Add(time.Hour), nil)
	testworld.Must(t, err)
	if !slices.Equal(numbers, []int64{1, 2}) {
		t.Errorf("got numbers %v", numbers)
	}
	testworld.Must(t, sender.CancelScheduledMessages(deadline(t), numbers[:1], nil))
	if got := states(s, "orders"); !slices.Equal(got, []servicebusfake.State{servicebusfake.Scheduled}) {
		t.Errorf("got %v", got)
	}
	send(t, sender, &azservicebus.Message{Body: []byte("soon"), ScheduledEnqueueTime: ptr(time.Now().Add(50 * time.Millisecond))})
	if got := bodies(receive(t, newReceiver(t, client, "orders", nil), 1)); got != "soon" {
		t.Errorf("got %q", got)
	}
}

func TestPeekingShowsEveryStateAndChangesNone(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	sender := newSender(t, client, "orders")
	send(t, sender, text("deferred"), text("locked"), text("active"))
	_, err := sender.ScheduleMessages(deadline(t), []*azservicebus.Message{text("scheduled")}, time.Now().Add(time.Hour), nil)
	testworld.Must(t, err)
	receiver := newReceiver(t, client, "orders", nil)
	testworld.Must(t, receiver.DeferMessage(deadline(t), receive(t, receiver, 1)[0], nil))
	receive(t, receiver, 1)
	before := states(s, "orders")
	got, err := receiver.PeekMessages(deadline(t), 10, nil)
	testworld.Must(t, err)
	if bodies(got) != "deferred locked active scheduled" {
		t.Errorf("got %q", bodies(got))
	}
	var seen []azservicebus.MessageState
	for _, m := range got {
		seen = append(seen, m.State)
	}
	want := []azservicebus.MessageState{
		azservicebus.MessageStateDeferred, azservicebus.MessageStateActive, azservicebus.MessageStateActive, azservicebus.MessageStateScheduled,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got states %v, want %v", seen, want)
	}
	if got := states(s, "orders"); !slices.Equal(got, before) {
		t.Errorf("got %v, before %v", got, before)
	}
	if again, err := receiver.PeekMessages(deadline(t), 10, nil); err != nil || len(again) != 0 {
		t.Errorf("behind the last: got %q, %v", bodies(again), err)
	}
}

func TestAnUnknownQueueIsNotFound(t *testing.T) {
	t.Parallel()
	s := start(t, servicebusfake.Options{})
	err := newSender(t, connect(t, s), "nowhere").SendMessage(deadline(t), text("a"), nil)
	if err == nil || !strings.Contains(err.Error(), "amqp:not-found") {
		t.Errorf("got %v, want amqp:not-found", err)
	}
}

func TestNamesHaveNoCase(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	send(t, newSender(t, client, "ORDERS"), text("a"))
	if got := bodies(receive(t, newReceiver(t, client, "Orders", nil), 1)); got != "a" {
		t.Errorf("got %q", got)
	}
}
