package broker_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// bench is a queue and the time that passes over it.
type bench struct {
	*testing.T
	*broker.Queue
	now time.Time
}

func newBench(t *testing.T, spec broker.Spec) *bench {
	t.Helper()
	t.Parallel()
	var tokens uint64
	next := func() (token broker.Token) {
		tokens++
		binary.BigEndian.PutUint64(token[:], tokens)
		return token
	}
	spec.Name = "q"
	return &bench{T: t, Queue: broker.NewQueue(spec, next), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (b *bench) pass(d time.Duration) { b.now = b.now.Add(d) }

// send sends messages whose ids are the words of a text. "id@session" names a session.
func (b *bench) send(words string) {
	b.Helper()
	for word := range strings.FieldsSeq(words) {
		id, session, _ := strings.Cut(word, "@")
		if _, err := b.Send(b.now, broker.Message{ID: id, SessionID: session}); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bench) receive(session *broker.SessionLock, mode broker.Mode) broker.Delivery {
	b.Helper()
	d, ok, err := b.Receive(b.now, session, mode)
	if err != nil || !ok {
		b.Fatalf("nothing to receive: %v", err)
	}
	return d
}

// expect compares all messages with a text: "id:state" or, where deliveries have failed,
// "id:state:failures".
func (b *bench) expect(want string) {
	b.Helper()
	var got []string
	for _, d := range b.All(b.now) {
		message := fmt.Sprintf("%s:%s", d.ID, d.State)
		if d.DeliveryCount > 0 {
			message += fmt.Sprintf(":%d", d.DeliveryCount)
		}
		got = append(got, message)
	}
	if strings.Join(got, " ") != want {
		b.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
}

func (b *bench) refused(got, want error) {
	b.Helper()
	if !errors.Is(got, want) {
		b.Errorf("got %v, want %v", got, want)
	}
}

func TestMessagesAreReceivedInOrder(t *testing.T) {
	b := newBench(t, broker.Spec{})
	b.send("a b c")
	first := b.receive(nil, broker.PeekLock)
	b.receive(nil, broker.Delete)
	b.expect("a:locked c:active")
	if err := b.Release(b.now, first.Token); err != nil {
		t.Fatal(err)
	}
	if got := b.receive(nil, broker.PeekLock); got.ID != "a" || got.DeliveryCount != 0 {
		t.Errorf("a released message: got %s with %d failures", got.ID, got.DeliveryCount)
	}
}

func TestEverySettlementNeedsTheLock(t *testing.T) {
	settlements := map[string]func(*bench, broker.Token) error{
		"complete":    func(b *bench, token broker.Token) error { return b.Complete(b.now, token) },
		"abandon":     func(b *bench, token broker.Token) error { return b.Abandon(b.now, token, nil) },
		"release":     func(b *bench, token broker.Token) error { return b.Release(b.now, token) },
		"defer":       func(b *bench, token broker.Token) error { return b.Defer(b.now, token, nil) },
		"dead-letter": func(b *bench, token broker.Token) error { return b.DeadLetter(b.now, token, "", "", nil) },
		"renew":       func(b *bench, token broker.Token) error { _, err := b.Renew(b.now, token); return err },
	}
	for name, settle := range settlements {
		t.Run(name+" within the lock", func(t *testing.T) {
			b := newBench(t, broker.Spec{})
			b.send("a")
			d := b.receive(nil, broker.PeekLock)
			b.pass(time.Minute - 1)
			b.refused(settle(b, d.Token), nil)
		})
		t.Run(name+" when the lock has expired", func(t *testing.T) {
			b := newBench(t, broker.Spec{})
			b.send("a")
			d := b.receive(nil, broker.PeekLock)
			b.pass(time.Minute)
			b.refused(settle(b, d.Token), broker.ErrLockLost)
			b.expect("a:active:1")
		})
	}
}

func TestARenewedLockLastsFromTheRenewal(t *testing.T) {
	b := newBench(t, broker.Spec{LockDuration: 10 * time.Second})
	b.send("a")
	d := b.receive(nil, broker.PeekLock)
	b.pass(9 * time.Second)
	until, err := b.Renew(b.now, d.Token)
	if err != nil || !until.Equal(b.now.Add(10*time.Second)) {
		t.Fatalf("got %v, %v", until, err)
	}
	b.pass(9 * time.Second)
	b.expect("a:locked")
	b.pass(time.Second)
	b.expect("a:active:1")
}

func TestTheLastFailedDeliveryDeadLetters(t *testing.T) {
	b := newBench(t, broker.Spec{MaxDeliveryCount: 2, LockDuration: time.Second})
	b.send("a")
	if err := b.Abandon(b.now, b.receive(nil, broker.PeekLock).Token, nil); err != nil {
		t.Fatal(err)
	}
	b.expect("a:active:1")
	b.receive(nil, broker.PeekLock)
	b.pass(time.Second)
	b.expect("a:dead-lettered:2")
	d, ok, err := b.DeadLetters().Receive(b.now, nil, broker.PeekLock)
	if err != nil || !ok || d.Properties[0].Value != "MaxDeliveryCountExceeded" || d.SequenceNumber != 1 {
		t.Fatalf("got %+v, %v", d, err)
	}
	b.refused(b.DeadLetters().DeadLetter(b.now, d.Token, "", "", nil), broker.ErrDeadLetterTwice)
	for range 5 {
		if err := b.DeadLetters().Abandon(b.now, d.Token, nil); err != nil {
			t.Fatal(err)
		}
		d, _, _ = b.DeadLetters().Receive(b.now, nil, broker.PeekLock)
	}
	b.expect("a:locked:7")
}

func TestPropertiesAreMergedByName(t *testing.T) {
	b := newBench(t, broker.Spec{})
	b.send("a")
	for _, properties := range [][]broker.Property{{{Name: "x", Value: 1}, {Name: "y", Value: 1}}, {{Name: "x", Value: 2}}} {
		if err := b.Abandon(b.now, b.receive(nil, broker.PeekLock).Token, properties); err != nil {
			t.Fatal(err)
		}
	}
	got := b.receive(nil, broker.PeekLock).Properties
	if want := []broker.Property{{Name: "x", Value: 2}, {Name: "y", Value: 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDeferredMessagesAreReceivedByNumberOnly(t *testing.T) {
	b := newBench(t, broker.Spec{})
	b.send("a b")
	if err := b.Defer(b.now, b.receive(nil, broker.PeekLock).Token, nil); err != nil {
		t.Fatal(err)
	}
	b.expect("a:deferred b:active")
	for name, numbers := range map[string][]int64{"active": {2}, "unknown": {3}, "one of two": {1, 3}, "twice": {1, 1}} {
		if _, err := b.ReceiveDeferred(b.now, numbers, "", broker.PeekLock); !errors.Is(err, broker.ErrMessageNotFound) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	got, err := b.ReceiveDeferred(b.now, []int64{1}, "", broker.PeekLock)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	b.pass(time.Minute)
	b.expect("a:deferred:1 b:active")
	if _, err := b.ReceiveDeferred(b.now, []int64{1}, "", broker.Delete); err != nil {
		t.Fatal(err)
	}
	b.expect("b:active")
}

func TestADuplicateIsDroppedWithinTheWindow(t *testing.T) {
	b := newBench(t, broker.Spec{DuplicateDetectionWindow: time.Minute})
	b.send("a")
	b.receive(nil, broker.Delete)
	b.pass(time.Minute - 1)
	b.send("a")
	b.expect("")
	// Had the duplicate prolonged the window, this one would be dropped too.
	b.pass(1)
	b.send("a")
	b.expect("a:active")
	for range 2 {
		if _, err := b.Send(b.now, broker.Message{}); err != nil {
			t.Fatal(err)
		}
	}
	b.expect("a:active :active :active")
}

func TestAScheduledMessageIsNumberedWhenItsTimeComes(t *testing.T) {
	b := newBench(t, broker.Spec{})
	for _, id := range []string{"later", "sooner", "cancelled"} {
		delay := map[string]time.Duration{"later": 2 * time.Hour, "sooner": time.Hour, "cancelled": time.Minute}[id]
		if _, err := b.Send(b.now, broker.Message{ID: id, ScheduledFor: b.now.Add(delay), TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	b.refused(b.CancelScheduled(b.now, []int64{3, 4}), broker.ErrMessageNotFound)
	b.refused(b.CancelScheduled(b.now, []int64{3}), nil)
	b.send("now")
	b.expect("later:scheduled sooner:scheduled now:active")
	if due, ok := b.NextDue(); !ok || due.After(b.now.Add(time.Hour)) {
		t.Errorf("next due at %v, %v", due, ok)
	}
	b.pass(time.Hour)
	b.expect("later:scheduled now:active sooner:active")
	b.refused(b.CancelScheduled(b.now, []int64{2}), broker.ErrMessageNotFound)
	b.pass(time.Hour)
	b.expect("now:active later:active")
}

func TestMessagesExpire(t *testing.T) {
	tests := map[string]struct {
		spec broker.Spec
		ttl  time.Duration
		want string // after a minute
	}{
		"without any time to live never":        {broker.Spec{}, 0, "a:active"},
		"after their own time to live":          {broker.Spec{}, time.Minute, ""},
		"not before":                            {broker.Spec{}, time.Minute + 1, "a:active"},
		"after the queue's":                     {broker.Spec{DefaultTTL: time.Minute}, 0, ""},
		"after the queue's where that is less":  {broker.Spec{DefaultTTL: time.Minute}, time.Hour, ""},
		"after their own where that is less":    {broker.Spec{DefaultTTL: time.Hour}, time.Minute, ""},
		"into the dead-letter queue if told so": {broker.Spec{DeadLetterOnExpiry: true}, time.Minute, "a:dead-lettered"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.spec)
			if _, err := b.Send(b.now, broker.Message{ID: "a", TTL: test.ttl}); err != nil {
				t.Fatal(err)
			}
			b.pass(time.Minute)
			b.expect(test.want)
		})
	}
}

func TestALockedMessageExpiresBehindItsLock(t *testing.T) {
	b := newBench(t, broker.Spec{DefaultTTL: time.Second, DeadLetterOnExpiry: true})
	b.send("a")
	d := b.receive(nil, broker.PeekLock)
	b.pass(30 * time.Second)
	b.expect("a:locked")
	if err := b.Abandon(b.now, d.Token, nil); err != nil {
		t.Fatal(err)
	}
	b.expect("a:dead-lettered:1")
}

func TestPeekingGivesNoLockAway(t *testing.T) {
	b := newBench(t, broker.Spec{})
	b.send("a b c")
	b.receive(nil, broker.PeekLock)
	got := b.Peek(b.now, 1, 2, nil)
	if len(got) != 2 || got[0].ID != "a" || got[0].State != broker.Locked || got[0].Token != (broker.Token{}) {
		t.Errorf("got %+v", got)
	}
	if got := b.Peek(b.now, 3, 10, nil); len(got) != 1 || got[0].ID != "c" {
		t.Errorf("from the third on: got %+v", got)
	}
}

func TestABatchIsDeletedOldestFirst(t *testing.T) {
	b := newBench(t, broker.Spec{})
	b.send("a b")
	b.receive(nil, broker.PeekLock)
	b.pass(time.Second)
	b.send("c")
	if got := b.DeleteBatch(b.now, 10, b.now); got != 1 {
		t.Errorf("deleted %d, want 1", got)
	}
	b.expect("a:locked c:active")
	if got := b.receive(nil, broker.PeekLock); got.ID != "c" {
		t.Errorf("got %s", got.ID)
	}
}

func TestNothingIsDueInAnIdleQueue(t *testing.T) {
	b := newBench(t, broker.Spec{})
	b.send("a")
	if at, ok := b.NextDue(); ok {
		t.Errorf("due at %v", at)
	}
	before := b.Changes()
	d := b.receive(nil, broker.PeekLock)
	if b.Changes() != before {
		t.Error("receiving told receivers to look again")
	}
	if at, ok := b.NextDue(); !ok || !at.Equal(d.LockedUntil) {
		t.Errorf("due at %v, %v, want %v", at, ok, d.LockedUntil)
	}
	b.pass(time.Minute)
	b.Advance(b.now)
	if b.Changes() == before {
		t.Error("an expired lock told nobody")
	}
}

func TestADeferredMessageDoesNotExpire(t *testing.T) {
	b := newBench(t, broker.Spec{DefaultTTL: time.Hour})
	b.send("a")
	if err := b.Defer(b.now, b.receive(nil, broker.PeekLock).Token, nil); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Hour)
	b.expect("a:deferred")
}
