package servicebus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// startTopic starts a namespace with the topic scale and its subscriptions, and closes it with the test.
func startTopic(t *testing.T, subscriptions ...servicebusfake.SubscriptionSpec) *servicebusfake.Server {
	t.Helper()
	s, err := servicebusfake.Start(servicebusfake.Options{Topics: []servicebusfake.TopicSpec{
		{Name: "scale", DuplicateDetectionWindow: time.Minute, Subscriptions: subscriptions},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestEachConsumerOfATopicGetsEachEventByItsSubscription(t *testing.T) {
	t.Parallel()
	s := startTopic(t, servicebusfake.SubscriptionSpec{Name: "kubernetes"}, servicebusfake.SubscriptionSpec{Name: "audit", RequiresSession: true})
	received := map[string]chan events.ScaleEvent{"kubernetes": make(chan events.ScaleEvent), "audit": make(chan events.ScaleEvent)}
	for subscription, got := range received {
		consume(t, s.ConnectionString(), servicebus.ConsumerOptions{Subscription: subscription, Sessions: subscription == "audit", RetryDelay: time.Millisecond}, into(got))
	}
	p := newPublisher(t, s.ConnectionString(), patient())
	if err := p.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	for sequence := range int64(3) {
		publish(t, p, numbered(t, "orders", sequence+1))
		publish(t, p, numbered(t, "orders", sequence+1)) // which the topic drops
		for subscription, got := range received {
			if e := testworld.Came(t, "the event at "+subscription, got); e.Sequence != sequence+1 {
				t.Errorf("%s got event %d, want %d", subscription, e.Sequence, sequence+1)
			}
		}
	}
	for subscription := range received {
		testworld.Eventually(t, subscription+" empty", func() bool { return len(s.Messages("scale/Subscriptions/"+subscription)) == 0 })
	}
}

func TestAnEventThatOneConsumerGivesUpReachesTheOthers(t *testing.T) {
	t.Parallel()
	s := startTopic(t, servicebusfake.SubscriptionSpec{Name: "broken"}, servicebusfake.SubscriptionSpec{Name: "sound"})
	consume(t, s.ConnectionString(), servicebus.ConsumerOptions{Subscription: "broken"}, func(context.Context, events.ScaleEvent) error { return events.ErrDeadLetter })
	publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
	testworld.Eventually(t, "a dead letter", func() bool {
		return len(s.Messages("scale/Subscriptions/broken/$DeadLetterQueue")) == 1
	})
	got := make(chan events.ScaleEvent)
	consume(t, s.ConnectionString(), servicebus.ConsumerOptions{Subscription: "sound"}, into(got))
	testworld.Came(t, "the event", got)
}

func TestAConsumerOfATopicSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		consumer servicebus.ConsumerOptions
		want     string
		kind     servicebus.Kind
	}{
		{"a topic has no messages of its own", servicebus.ConsumerOptions{},
			`does not allow to receive from queue "scale": if it is a topic, consume one of its subscriptions: scale/Subscriptions/SUBSCRIPTION`, servicebus.WrongEntity},
		{"nor has it sessions", servicebus.ConsumerOptions{Sessions: true}, `consume one of its subscriptions: scale/Subscriptions/SUBSCRIPTION`, servicebus.WrongEntity},
		{"there is no such subscription", servicebus.ConsumerOptions{Subscription: "nowhere"}, `subscription "nowhere" of topic "scale" does not exist`, servicebus.QueueNotFound},
		{"the subscription requires sessions", servicebus.ConsumerOptions{Subscription: "ordered"},
			`subscription "ordered" of topic "scale" of Service Bus namespace`, servicebus.WrongSessions},
		{"the subscription has none", servicebus.ConsumerOptions{Subscription: "plain", Sessions: true}, "has no sessions: consume it without", servicebus.WrongSessions},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := startTopic(t, servicebusfake.SubscriptionSpec{Name: "plain"}, servicebusfake.SubscriptionSpec{Name: "ordered", RequiresSession: true})
			c.consumer.RetryDelay = time.Millisecond
			consumer, err := servicebus.NewConsumer(s.ConnectionString(), "scale", c.consumer)
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
			refusal, _ := errors.AsType[*servicebus.Refusal](err)
			if refusal.Kind == servicebus.QueueNotFound && !strings.HasSuffix(refusal.Command, "--topic-name scale --name nowhere") {
				t.Errorf("the command is %q", refusal.Command)
			}
		})
	}
}

func TestAPublisherToASubscriptionIsToldToTakeTheTopic(t *testing.T) {
	t.Parallel()
	s := startTopic(t, servicebusfake.SubscriptionSpec{Name: "a"})
	p, err := servicebus.NewPublisher(s.ConnectionString(), "scale/Subscriptions/a", patient())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	for use, err := range map[string]error{"probe": p.Probe(t.Context()), "publish": p.Publish(t.Context(), numbered(t, "orders", 1))} {
		if kind(err) != servicebus.WrongEntity || !strings.Contains(err.Error(), "if it is a subscription, publish to its topic") {
			t.Errorf("%s: got %v, want it to name the topic", use, err)
		}
	}
}

func TestAConnectionStringOfTheTopicOpensItsSubscriptions(t *testing.T) {
	t.Parallel()
	s := startTopic(t, servicebusfake.SubscriptionSpec{Name: "a"})
	publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
	consumer, err := servicebus.NewConsumer(s.ConnectionString()+";EntityPath=scale", "scale", servicebus.ConsumerOptions{Subscription: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	err = consumer.Run(ctx, func(context.Context, events.ScaleEvent) error {
		stop()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestARoleForATopicIsAssignedAtTheTopic has an identity that may not receive from a subscription.
func TestARoleForATopicIsAssignedAtTheTopic(t *testing.T) {
	t.Parallel()
	_, client := startTokenBroker(t)
	refusal := func(err error) *servicebus.Refusal {
		r, ok := errors.AsType[*servicebus.Refusal](err)
		if !ok {
			t.Fatalf("got %v, want a refusal", err)
		}
		return r
	}
	consumer, err := servicebus.NewConsumerWithIdentity("example.com", identity{token: "bad-token"}, "scale", servicebus.ConsumerOptions{Subscription: "a", Client: client})
	testworld.Must(t, err)
	if r := refusal(consumer.Run(t.Context(), into(nil))); !strings.HasSuffix(r.Command, "/namespaces/NAMESPACE/topics/scale") {
		t.Errorf("a consumer is told %s", r.Command)
	}
	// What a sender may not send to may be a queue or a topic.
	p, err := servicebus.NewPublisherWithIdentity("example.com", identity{token: "bad-token"}, "scale", servicebus.PublisherOptions{Client: client})
	testworld.Must(t, err)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	if r := refusal(p.Probe(t.Context())); !strings.Contains(r.Remedy, "/topics/scale") {
		t.Errorf("a publisher is told %q", r.Remedy)
	}
}
