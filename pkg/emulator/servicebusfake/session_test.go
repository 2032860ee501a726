package servicebusfake_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func inSession(session, body string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body), SessionID: &session}
}

func accept(t *testing.T, client *azservicebus.Client, session string) *azservicebus.SessionReceiver {
	t.Helper()
	receiver, err := client.AcceptSessionForQueue(deadline(t), "orders", session, nil)
	if err != nil {
		t.Fatal(err)
	}
	return receiver
}

func sessionful(t *testing.T, spec servicebusfake.QueueSpec) (*servicebusfake.Server, *azservicebus.Client) {
	t.Helper()
	spec.RequiresSession = true
	s := start(t, orders(spec))
	return s, connect(t, s)
}

func TestASessionKeepsItsOrder(t *testing.T) {
	t.Parallel()
	_, client := sessionful(t, servicebusfake.QueueSpec{})
	send(t, newSender(t, client, "orders"), inSession("x", "x1"), inSession("y", "y1"), inSession("x", "x2"))
	receiver := accept(t, client, "x")
	got := receive(t, receiver, 2)
	if bodies(got) != "x1 x2" || *got[0].SessionID != "x" {
		t.Errorf("got %q of %q", bodies(got), *got[0].SessionID)
	}
	testworld.Must(t, receiver.AbandonMessage(deadline(t), got[0], nil))
	testworld.Must(t, receiver.CompleteMessage(deadline(t), got[1], nil))
	if got := bodies(receive(t, receiver, 1)); got != "x1" {
		t.Errorf("got %q", got)
	}
}

func TestASessionHasOneReceiver(t *testing.T) {
	t.Parallel()
	s, client := sessionful(t, servicebusfake.QueueSpec{})
	first := accept(t, client, "x")
	_, err := connect(t, s).AcceptSessionForQueue(deadline(t), "orders", "x", nil)
	if err == nil {
		t.Fatal("a locked session was accepted again")
	}
	testworld.Must(t, first.Close(deadline(t)))
	accept(t, connect(t, s), "x")
}

func TestTheNextSessionIsWaitedFor(t *testing.T) {
	t.Parallel()
	_, client := sessionful(t, servicebusfake.QueueSpec{})
	accepted := make(chan string, 1)
	go func() {
		receiver, err := client.AcceptNextSessionForQueue(deadline(t), "orders", nil)
		if err != nil {
			accepted <- err.Error()
			return
		}
		accepted <- receiver.SessionID()
	}()
	send(t, newSender(t, client, "orders"), inSession("x", "x1"))
	if got := <-accepted; got != "x" {
		t.Errorf("got %q", got)
	}
}

func TestWaitingForASessionTimesOut(t *testing.T) {
	t.Parallel()
	s, _ := sessionful(t, servicebusfake.QueueSpec{})
	// azservicebus leaves the broker hardly any time to answer before its own deadline, so the bare
	// protocol must do.
	_, err := attached(t, s, &goamqp.ReceiverOptions{
		Filters:    []goamqp.LinkFilter{goamqp.NewLinkFilter("com.microsoft:session-filter", 0x137000000C, nil)},
		Properties: map[string]any{"com.microsoft:timeout": uint32(50)},
	})
	var timeout *goamqp.Error
	if !errors.As(err, &timeout) || timeout.Condition != "com.microsoft:timeout" {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestASessionHasAState(t *testing.T) {
	t.Parallel()
	_, client := sessionful(t, servicebusfake.QueueSpec{})
	receiver := accept(t, client, "x")
	if got, err := receiver.GetSessionState(deadline(t), nil); err != nil || got != nil {
		t.Errorf("at first: got %q, %v", got, err)
	}
	testworld.Must(t, receiver.SetSessionState(deadline(t), []byte("half done"), nil))
	testworld.Must(t, receiver.Close(deadline(t)))
	if got, err := accept(t, client, "x").GetSessionState(deadline(t), nil); err != nil || string(got) != "half done" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestASessionLockIsRenewed(t *testing.T) {
	t.Parallel()
	_, client := sessionful(t, servicebusfake.QueueSpec{})
	receiver := accept(t, client, "x")
	before := receiver.LockedUntil()
	testworld.Must(t, receiver.RenewSessionLock(deadline(t), nil))
	if receiver.LockedUntil().Before(before) || time.Until(before) < 30*time.Second {
		t.Errorf("locked until %v, before until %v", receiver.LockedUntil(), before)
	}
}

func TestALostSessionReturnsItsMessages(t *testing.T) {
	t.Parallel()
	s, client := sessionful(t, servicebusfake.QueueSpec{LockDuration: 100 * time.Millisecond})
	send(t, newSender(t, client, "orders"), inSession("x", "x1"))
	lost := accept(t, client, "x")
	receive(t, lost, 1)
	other := connect(t, s)
	receiver, err := other.AcceptNextSessionForQueue(deadline(t), "orders", nil)
	testworld.Must(t, err)
	if got := receive(t, receiver, 1)[0]; string(got.Body) != "x1" || got.DeliveryCount < 2 {
		t.Errorf("got %q, delivery %d", got.Body, got.DeliveryCount)
	}
}

func TestSessionsAreListed(t *testing.T) {
	t.Parallel()
	_, client := sessionful(t, servicebusfake.QueueSpec{})
	send(t, newSender(t, client, "orders"), inSession("b", "1"), inSession("a", "2"))
	page, err := client.NewListSessionsForQueuePager("orders", nil).NextPage(deadline(t))
	testworld.Must(t, err)
	if !slices.Equal(page.Sessions, []string{"a", "b"}) {
		t.Errorf("got %v", page.Sessions)
	}
	started := time.Now().Add(-time.Minute)
	updated := &azservicebus.ListSessionsOptions{SessionStateUpdatedAfter: &started}
	page, err = client.NewListSessionsForQueuePager("orders", updated).NextPage(deadline(t))
	testworld.Must(t, err)
	if len(page.Sessions) != 0 {
		t.Errorf("without any state: got %v", page.Sessions)
	}
}

func TestQueueAndClientMustAgreeOnSessions(t *testing.T) {
	t.Parallel()
	t.Run("a message without a session is refused", func(t *testing.T) {
		t.Parallel()
		_, client := sessionful(t, servicebusfake.QueueSpec{})
		if err := newSender(t, client, "orders").SendMessage(deadline(t), text("a"), nil); err == nil {
			t.Error("it was taken")
		}
	})
	t.Run("a receiver without a session is refused", func(t *testing.T) {
		t.Parallel()
		_, client := sessionful(t, servicebusfake.QueueSpec{})
		if _, err := newReceiver(t, client, "orders", nil).ReceiveMessages(deadline(t), 1, nil); err == nil {
			t.Error("it was attached")
		}
	})
	t.Run("a session of a queue without sessions is refused", func(t *testing.T) {
		t.Parallel()
		client := connect(t, start(t, orders(servicebusfake.QueueSpec{})))
		if _, err := client.AcceptSessionForQueue(deadline(t), "orders", "x", nil); err == nil {
			t.Error("it was accepted")
		}
	})
}

func TestADeadLetterOfASessionNeedsNoSession(t *testing.T) {
	t.Parallel()
	s, client := sessionful(t, servicebusfake.QueueSpec{})
	send(t, newSender(t, client, "orders"), inSession("x", "x1"), inSession("x", "x2"))
	receiver := accept(t, client, "x")
	testworld.Must(t, receiver.DeadLetterMessage(deadline(t), receive(t, receiver, 1)[0], nil))
	if got := states(s, "orders"); !slices.Equal(got, []servicebusfake.State{servicebusfake.Active, servicebusfake.DeadLettered}) {
		t.Errorf("got %v", got)
	}
	dead := newReceiver(t, client, "orders", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if got := bodies(receive(t, dead, 1)); got != "x1" {
		t.Errorf("got %q", got)
	}
}
