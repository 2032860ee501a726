package servicebus_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
)

// isRenewal reports whether a lock is to be renewed, be it of a message or of a session.
func isRenewal(r *servicebusfake.Request) bool {
	return r.Op == servicebusfake.OpManage && slices.Contains([]string{"com.microsoft:renew-lock", "com.microsoft:renew-session-lock"}, r.Operation)
}

func TestTheLockIsRenewedAsLongAsAHandlerRuns(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		spec.LockDuration, spec.MaxDeliveryCount = 5*time.Second, 1 // a busy machine renews a lock of a second too late
		s := startBroker(t, "", spec)
		renewed := make(chan struct{}, 100)
		s.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
			if isRenewal(r) {
				renewed <- struct{}{}
			}
			return nil
		})
		h := newGate()
		stop := consume(t, s.ConnectionString(), options(spec, &journal{}), h.handle)
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		testworld.Came(t, "the event", h.begun)
		for range 3 { // one comes after each half of the lock
			testworld.Came(t, "a renewal", renewed)
		}
		close(h.open)
		testworld.Eventually(t, "an empty queue", isEmpty(s))
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(h.ending) != 0 || len(h.begun) != 0 {
			t.Errorf("the handler was interrupted %d times, and called %d times more", len(h.ending), len(h.begun))
		}
	})
}

func TestTheLockIsRenewedWhileAnEventWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	spec := servicebusfake.QueueSpec{LockDuration: 5 * time.Second, MaxDeliveryCount: 1} // a busy machine renews a lock of a second too late
	s := startBroker(t, "", spec)
	renewals := make(chan struct{}, 100)
	s.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if isRenewal(r) {
			renewals <- struct{}{}
		}
		return nil
	})
	o := options(spec, &journal{})
	o.Concurrency = 1
	h := newGate()
	consume(t, s.ConnectionString(), o, h.handle)
	p := newPublisher(t, s.ConnectionString(), patient())
	publish(t, p, numbered(t, "orders", 1))
	testworld.Came(t, "the first event", h.begun)
	publish(t, p, numbered(t, "orders", 2))
	for range 8 {
		testworld.Came(t, "a renewal", renewals)
	}
	close(h.open)
	testworld.Came(t, "the second event", h.begun)
	testworld.Eventually(t, "an empty queue", isEmpty(s))
}

func TestALostLockEndsTheHandlerAndTheEventComesAgain(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		spec.LockDuration = 500 * time.Millisecond
		s := startBroker(t, "", spec)
		refuse := make(chan struct{})
		s.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
			select {
			case <-refuse:
				return nil
			default:
			}
			if !isRenewal(r) {
				return nil
			}
			return &servicebusfake.Answer{Condition: "com.microsoft:message-lock-lost", Status: 410, Keep: true}
		})
		h := newGate()
		j := &journal{}
		consume(t, s.ConnectionString(), options(spec, j), h.handle)
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		testworld.Came(t, "the event", h.begun)
		if cause := testworld.Came(t, "the end of the handler", h.ending); cause == nil || !strings.Contains(cause.Error(), "lock was lost") {
			t.Errorf("the handler's context ended for %v", cause)
		}
		close(refuse)
		close(h.open)
		if e := testworld.Came(t, "the event again", h.begun); e.Sequence != 1 {
			t.Errorf("got %d, want 1", e.Sequence)
		}
		testworld.Eventually(t, "an empty queue", isEmpty(s))
		testworld.Eventually(t, "the log", j.has(t, slog.LevelWarn, "it comes again"))
	})
}

func TestWhatAnotherConsumerDidNotSettleIsHandled(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		spec.LockDuration = 200 * time.Millisecond
		s := startBroker(t, "", spec)
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		client := rawClient(t, s)
		var crashed interface {
			ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
		}
		var err error
		if spec.RequiresSession {
			crashed, err = client.AcceptNextSessionForQueue(t.Context(), "scale", nil)
		} else {
			crashed, err = client.NewReceiverForQueue("scale", nil)
		}
		testworld.Must(t, err)
		locked, err := crashed.ReceiveMessages(t.Context(), 1, nil)
		testworld.Must(t, err)
		if len(locked) != 1 {
			t.Fatalf("another consumer got %d messages", len(locked))
		}
		_ = client.Close(t.Context())
		got := make(chan events.ScaleEvent)
		consume(t, s.ConnectionString(), options(spec, &journal{}), into(got))
		testworld.Came(t, "the event", got)
		testworld.Eventually(t, "an empty queue", isEmpty(s))
	})
}

// states says where messages stand.
func states(messages []servicebusfake.Message) []string {
	var got []string
	for _, m := range messages {
		got = append(got, fmt.Sprintf("%s %s", m.ID, m.State))
	}
	return got
}

// stopping stops a consumer, and returns where its end is reported.
func stopping(stop func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	return ended
}

func TestAStopLetsHandlersEndAndGivesBackTheRest(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		h := newGate()
		o := options(spec, &journal{})
		o.Grace = time.Hour
		stop := consume(t, s.ConnectionString(), o, h.handle)
		t.Cleanup(func() { _ = stop() })
		p := newPublisher(t, s.ConnectionString(), patient())
		publish(t, p, numbered(t, "orders", 1))
		testworld.Came(t, "the event", h.begun)
		publish(t, p, numbered(t, "orders", 2))
		publish(t, p, numbered(t, "orders", 3))
		testworld.Eventually(t, "that the third waits in place of the second", func() bool { return len(s.Messages("scale")) == 2 })
		ended := stopping(stop)
		select {
		case err := <-ended:
			t.Fatalf("Run did not wait for its handler: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		close(h.open)
		if err := testworld.Came(t, "the end of Run", ended); err != nil {
			t.Error(err)
		}
		if len(h.begun) != 0 || len(h.ending) != 0 {
			t.Errorf("%d handlers were called after the stop, %d interrupted", len(h.begun), len(h.ending))
		}
		left := s.Messages("scale")
		if len(left) != 1 || left[0].ID != "orders-000000000003" || left[0].State != servicebusfake.Active {
			t.Errorf("left is %v, want the third event, free to be taken", states(left))
		}
	})
}

func TestAHandlerThatOutlastsTheGraceIsInterrupted(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		h := newGate()
		o := options(spec, &journal{})
		o.Grace = 20 * time.Millisecond
		stop := consume(t, s.ConnectionString(), o, h.handle)
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		testworld.Came(t, "the event", h.begun)
		if err := stop(); err == nil || !strings.Contains(err.Error(), "1 handlers were still under way 20ms after the stop") {
			t.Errorf("got %v", err)
		}
		testworld.Came(t, "the end of the handler", h.ending)
		if left := s.Messages("scale"); len(left) != 1 || left[0].State != servicebusfake.Active {
			t.Errorf("left is %v, want the event, free to be taken", states(left))
		}
	})
}

func TestAHandlerThatIgnoresItsContextHoldsUpNoStop(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{})
	o := options(servicebusfake.QueueSpec{}, &journal{})
	o.Grace, o.TryTimeout = 20*time.Millisecond, time.Second
	begun, open := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(open) })
	stop := consume(t, s.ConnectionString(), o, func(context.Context, events.ScaleEvent) error {
		close(begun)
		<-open
		return nil
	})
	publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
	testworld.Came(t, "the event", begun)
	if err := stop(); err == nil || !strings.Contains(err.Error(), "have handlers end with their context") {
		t.Errorf("got %v", err)
	}
}

func TestAnEventThatFailsIsGivenBackAtAStop(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		o := options(spec, &journal{})
		o.RetryDelay = time.Hour
		tried := make(chan struct{}, 10)
		stop := consume(t, s.ConnectionString(), o, func(context.Context, events.ScaleEvent) error {
			tried <- struct{}{}
			return context.DeadlineExceeded
		})
		publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
		testworld.Came(t, "the event", tried)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if left := s.Messages("scale"); len(left) != 1 || left[0].State != servicebusfake.Active || len(tried) != 0 {
			t.Errorf("left is %v, tried %d times more", states(left), len(tried))
		}
	})
}

func TestAnIdleSessionIsReleased(t *testing.T) {
	t.Parallel()
	spec := servicebusfake.QueueSpec{RequiresSession: true}
	s := startBroker(t, "", spec)
	got := make(chan events.ScaleEvent)
	consume(t, s.ConnectionString(), options(spec, &journal{}), into(got))
	publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
	testworld.Came(t, "the event", got)
	testworld.Eventually(t, "that another may have the session", func() bool {
		session, err := rawClient(t, s).AcceptSessionForQueue(t.Context(), "scale", "orders", nil)
		return err == nil && session.Close(t.Context()) == nil
	})
}
