package broker_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

func newTopic(t *testing.T, spec broker.TopicSpec) (inbox *bench, topic *broker.Topic) {
	t.Helper()
	t.Parallel()
	var tokens uint64
	next := func() (token broker.Token) {
		tokens++
		binary.BigEndian.PutUint64(token[:], tokens)
		return token
	}
	spec.Name = "t"
	topic = broker.NewTopic(spec, next)
	return &bench{T: t, Queue: topic.Inbox(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, topic
}

func everything(broker.Message) bool { return true }

// subscribed is a subscription, at the time of the topic.
func subscribed(inbox *bench, topic *broker.Topic, spec broker.Spec, accepts func(broker.Message) bool) *bench {
	return &bench{T: inbox.T, Queue: topic.Subscribe(spec, accepts), now: inbox.now}
}

func TestEachSubscriptionHasItsOwnCopy(t *testing.T) {
	inbox, topic := newTopic(t, broker.TopicSpec{})
	a, b := subscribed(inbox, topic, broker.Spec{}, everything), subscribed(inbox, topic, broker.Spec{}, everything)
	inbox.send("1 2")
	inbox.expect("")
	got := a.receive(nil, broker.PeekLock)
	a.refused(a.Complete(a.now, got.Token), nil)
	a.expect("2:active")
	b.expect("1:active 2:active")
}

func TestASubscriptionGetsWhatItAcceptsFromItsBeginning(t *testing.T) {
	inbox, topic := newTopic(t, broker.TopicSpec{})
	inbox.send("lost")
	odd := subscribed(inbox, topic, broker.Spec{}, func(m broker.Message) bool { return m.ID != "2" })
	inbox.send("1 2 3")
	odd.expect("1:active 3:active")
	if got := odd.Peek(odd.now, 0, 10, nil); got[1].SequenceNumber != 2 || got[1].EnqueuedSequenceNumber != 4 {
		t.Errorf("the second message has number %d, and had %d in the topic; want 2 and 4", got[1].SequenceNumber, got[1].EnqueuedSequenceNumber)
	}
}

func TestATopicDetectsDuplicatesForItsSubscriptions(t *testing.T) {
	inbox, topic := newTopic(t, broker.TopicSpec{DuplicateDetectionWindow: time.Minute})
	a := subscribed(inbox, topic, broker.Spec{}, everything)
	inbox.send("1 1 2")
	a.expect("1:active 2:active")
	inbox.pass(time.Minute)
	inbox.send("1")
	a.expect("1:active 2:active 1:active")
}

func TestAScheduledMessageWaitsInTheTopic(t *testing.T) {
	inbox, topic := newTopic(t, broker.TopicSpec{})
	a := subscribed(inbox, topic, broker.Spec{}, everything)
	if _, err := inbox.Send(inbox.now, broker.Message{ID: "1", ScheduledFor: inbox.now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	inbox.expect("1:scheduled")
	a.expect("")
	inbox.pass(time.Hour)
	inbox.expect("")
	a.expect("1:active")
}

func TestTheShortestTimeToLiveCounts(t *testing.T) {
	for name, c := range map[string]struct{ message, topic, subscription, want time.Duration }{
		"of the message":             {time.Second, time.Minute, time.Hour, time.Second},
		"of the topic":               {time.Hour, time.Minute, 0, time.Minute},
		"of the subscription":        {time.Hour, time.Minute, time.Second, time.Second},
		"of the topic, by default":   {0, time.Minute, time.Hour, time.Minute},
		"of the subscription, alone": {0, 0, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inbox, topic := newTopic(t, broker.TopicSpec{DefaultTTL: c.topic})
			a := subscribed(inbox, topic, broker.Spec{DefaultTTL: c.subscription, DeadLetterOnExpiry: true}, everything)
			b := subscribed(inbox, topic, broker.Spec{DefaultTTL: c.subscription}, everything)
			if _, err := inbox.Send(inbox.now, broker.Message{ID: "1", TTL: c.message}); err != nil {
				t.Fatal(err)
			}
			a.pass(c.want - 1)
			a.expect("1:active")
			a.pass(1)
			a.expect("1:dead-lettered")
			b.pass(c.want)
			b.expect("")
		})
	}
}

func TestAMessageWithoutSessionIsDeadLetteredWhereTheSubscriptionRequiresOne(t *testing.T) {
	inbox, topic := newTopic(t, broker.TopicSpec{})
	a := subscribed(inbox, topic, broker.Spec{RequiresSession: true}, everything)
	b := subscribed(inbox, topic, broker.Spec{}, everything)
	inbox.send("1 2@s")
	a.expect("2:active 1:dead-lettered")
	b.expect("1:active 2:active")
	session, err := a.AcceptNext(a.now)
	if err != nil || session.ID() != "s" {
		t.Fatalf("accepted %v: %v, want the session s", session, err)
	}
	if got := a.receive(session, broker.PeekLock); got.ID != "2" {
		t.Errorf("received %s, want 2", got.ID)
	}
	if got := a.DeadLetters().All(a.now); got[0].Properties[0].Value != "Session ID is null" {
		t.Errorf("the reason is %v", got[0].Properties)
	}
}
