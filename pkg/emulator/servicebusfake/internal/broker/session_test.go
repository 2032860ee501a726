package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

func (b *bench) accept(id string) *broker.SessionLock {
	b.Helper()
	l, err := b.Accept(b.now, id)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func TestASessionBelongsToOneReceiver(t *testing.T) {
	b := newBench(t, broker.Spec{RequiresSession: true})
	b.send("x1@x y1@y x2@x")
	x := b.accept("x")
	_, err := b.Accept(b.now, "x")
	b.refused(err, broker.ErrSessionLocked)
	if first, second := b.receive(x, broker.PeekLock), b.receive(x, broker.PeekLock); first.ID != "x1" || second.ID != "x2" {
		t.Errorf("got %s, %s", first.ID, second.ID)
	}
	next, err := b.AcceptNext(b.now)
	if err != nil || next.ID() != "y" {
		t.Fatalf("got %v, %v", next, err)
	}
	_, err = b.AcceptNext(b.now)
	b.refused(err, broker.ErrNoSession)
}

func TestTheNextSessionIsTheOneThatWaitsLongest(t *testing.T) {
	b := newBench(t, broker.Spec{RequiresSession: true})
	b.send("z1@z y1@y x1@x")
	for _, want := range []string{"z", "y", "x"} {
		if next, err := b.AcceptNext(b.now); err != nil || next.ID() != want {
			t.Fatalf("got %v, %v, want %s", next, err, want)
		}
	}
}

func TestHowASessionEndsDecidesWhetherItCounts(t *testing.T) {
	tests := map[string]struct {
		end  func(*bench, *broker.SessionLock)
		want string
	}{
		"given back, it does not": {func(b *bench, l *broker.SessionLock) { b.ReleaseSession(b.now, l) }, "a:active"},
		"expired, it does":        {func(b *bench, _ *broker.SessionLock) { b.pass(time.Minute) }, "a:active:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, broker.Spec{RequiresSession: true})
			b.send("a@x")
			l := b.accept("x")
			d := b.receive(l, broker.PeekLock)
			test.end(b, l)
			b.expect(test.want)
			b.refused(b.Complete(b.now, d.Token), broker.ErrLockLost)
			_, _, err := b.Receive(b.now, l, broker.PeekLock)
			b.refused(err, broker.ErrSessionLockLost)
			b.accept("x")
			b.ReleaseSession(b.now, l)
			if _, err := b.Accept(b.now, "x"); err == nil {
				t.Error("an old lock released a new one")
			}
		})
	}
}

func TestARenewedSessionKeepsItsMessagesLocked(t *testing.T) {
	b := newBench(t, broker.Spec{RequiresSession: true})
	b.send("a@x")
	d := b.receive(b.accept("x"), broker.PeekLock)
	b.pass(50 * time.Second)
	until, err := b.RenewSession(b.now, "x")
	if err != nil || !until.Equal(b.now.Add(time.Minute)) {
		t.Fatalf("got %v, %v", until, err)
	}
	b.pass(50 * time.Second)
	b.refused(b.Complete(b.now, d.Token), nil)
	_, err = b.RenewSession(b.now, "y")
	b.refused(err, broker.ErrSessionLockLost)
}

func TestASessionsStateOutlivesItsMessages(t *testing.T) {
	b := newBench(t, broker.Spec{RequiresSession: true})
	b.send("a@x b@y")
	x := b.accept("x")
	b.receive(x, broker.Delete)
	b.refused(b.SetSessionState(b.now, "x", []byte("s")), nil)
	b.ReleaseSession(b.now, x)
	b.refused(b.SetSessionState(b.now, "x", nil), broker.ErrSessionLockLost)
	before := b.now
	b.pass(time.Hour)
	list := func(after time.Time) []string {
		ids, err := b.Sessions(b.now, after)
		b.refused(err, nil)
		return ids
	}
	if got := list(time.Time{}); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("all: got %v", got)
	}
	if got := list(before.Add(-1)); !slices.Equal(got, []string{"x"}) {
		t.Errorf("with a state since: got %v", got)
	}
	if got := list(before); len(got) != 0 {
		t.Errorf("with a state after: got %v", got)
	}
	b.accept("x")
	if got, err := b.SessionState(b.now, "x"); err != nil || string(got) != "s" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestQueueAndReceiverMustAgreeOnSessions(t *testing.T) {
	with := newBench(t, broker.Spec{RequiresSession: true})
	_, err := with.Send(with.now, broker.Message{})
	with.refused(err, broker.ErrSessionIDMissing)
	_, _, err = with.Receive(with.now, nil, broker.PeekLock)
	with.refused(err, broker.ErrSessionRequired)
}

func TestAQueueWithoutSessionsHasNone(t *testing.T) {
	b := newBench(t, broker.Spec{})
	_, err := b.Accept(b.now, "x")
	b.refused(err, broker.ErrSessionNotSupported)
	_, err = b.AcceptNext(b.now)
	b.refused(err, broker.ErrSessionNotSupported)
	_, err = b.Sessions(b.now, time.Time{})
	b.refused(err, broker.ErrSessionNotSupported)
	b.send("a@x b@y")
	if got := b.receive(nil, broker.PeekLock); got.ID != "a" {
		t.Errorf("got %s", got.ID)
	}
}

func TestDeferredMessagesOfASessionNeedItsLock(t *testing.T) {
	b := newBench(t, broker.Spec{RequiresSession: true})
	b.send("a@x b@y")
	x := b.accept("x")
	b.refused(b.Defer(b.now, b.receive(x, broker.PeekLock).Token, nil), nil)
	_, err := b.ReceiveDeferred(b.now, []int64{1}, "y", broker.PeekLock)
	b.refused(err, broker.ErrSessionLockLost)
	y := b.accept("y")
	_, err = b.ReceiveDeferred(b.now, []int64{1}, y.ID(), broker.PeekLock)
	b.refused(err, broker.ErrMessageNotFound)
	got, err := b.ReceiveDeferred(b.now, []int64{1}, "x", broker.PeekLock)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	b.ReleaseSession(b.now, x)
	b.expect("a:deferred b:active")
}

func TestADeadLetteredMessageLeavesItsSession(t *testing.T) {
	b := newBench(t, broker.Spec{RequiresSession: true})
	b.send("a@x")
	x := b.accept("x")
	b.refused(b.DeadLetter(b.now, b.receive(x, broker.PeekLock).Token, "r", "", nil), nil)
	b.ReleaseSession(b.now, x)
	_, err := b.AcceptNext(b.now)
	b.refused(err, broker.ErrNoSession)
	if d, ok, err := b.DeadLetters().Receive(b.now, nil, broker.PeekLock); err != nil || !ok || d.SessionID != "x" {
		t.Errorf("got %+v, %v, %v", d, ok, err)
	}
}
