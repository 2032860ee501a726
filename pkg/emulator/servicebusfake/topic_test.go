package servicebusfake_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// events is a namespace with the topic events and its subscriptions.
func events(spec servicebusfake.TopicSpec, subscriptions ...servicebusfake.SubscriptionSpec) servicebusfake.Options {
	spec.Name, spec.Subscriptions = "events", subscriptions
	return servicebusfake.Options{Topics: []servicebusfake.TopicSpec{spec}}
}

func newSubscriber(t *testing.T, client *azservicebus.Client, subscription string, o *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	t.Helper()
	receiver, err := client.NewReceiverForSubscription("events", subscription, o)
	testworld.Must(t, err)
	return receiver
}

func TestEachSubscriptionReceivesWhatIsSentToTheTopic(t *testing.T) {
	t.Parallel()
	s := start(t, events(servicebusfake.TopicSpec{}, servicebusfake.SubscriptionSpec{Name: "a"}, servicebusfake.SubscriptionSpec{Name: "b", MaxDeliveryCount: 1}))
	client := connect(t, s)
	a, b := newSubscriber(t, client, "a", nil), newSubscriber(t, client, "b", nil)
	sender := newSender(t, client, "events")
	send(t, sender, text("1"))
	batch, err := sender.NewMessageBatch(deadline(t), nil)
	testworld.Must(t, err)
	testworld.Must(t, batch.AddMessage(text("2"), nil))
	testworld.Must(t, batch.AddMessage(text("3"), nil))
	testworld.Must(t, sender.SendMessageBatch(deadline(t), batch, nil))

	got := receive(t, a, 3)
	if bodies(got) != "1 2 3" || *got[2].SequenceNumber != 3 || *got[2].EnqueuedSequenceNumber != 3 {
		t.Errorf("a got %q, the last with the numbers %d and %d", bodies(got), *got[2].SequenceNumber, *got[2].EnqueuedSequenceNumber)
	}
	for _, m := range got {
		testworld.Must(t, a.CompleteMessage(deadline(t), m, nil))
	}
	if got := s.Messages("EVENTS/subscriptions/A"); got == nil || len(got) != 0 {
		t.Errorf("a has %+v, want none", got)
	}
	testworld.Must(t, b.AbandonMessage(deadline(t), receive(t, b, 1)[0], nil))
	dead := newSubscriber(t, client, "b", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if got := receive(t, dead, 1); bodies(got) != "1" || *got[0].DeadLetterReason != "MaxDeliveryCountExceeded" {
		t.Errorf("dead letters of b: %q", bodies(got))
	}
	if got := states(s, "events/Subscriptions/b"); !slices.Equal(got, []servicebusfake.State{servicebusfake.Active, servicebusfake.Active, servicebusfake.Locked}) {
		t.Errorf("b has %v", got)
	}
}

func TestAReceiverThatWaitsIsWokenByTheTopic(t *testing.T) {
	t.Parallel()
	s := start(t, events(servicebusfake.TopicSpec{}, servicebusfake.SubscriptionSpec{Name: "plain"}, servicebusfake.SubscriptionSpec{Name: "ordered", RequiresSession: true}))
	client := connect(t, s)
	got := make(chan string, 3)
	plain := newSubscriber(t, client, "plain", nil)
	dead := newSubscriber(t, client, "ordered", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	for _, r := range []*azservicebus.Receiver{plain, dead} {
		go func() {
			messages, err := r.ReceiveMessages(deadline(t), 1, nil)
			if err != nil {
				t.Error(err)
			}
			got <- bodies(messages)
		}()
	}
	go func() {
		session, err := client.AcceptNextSessionForSubscription(deadline(t), "events", "ordered", nil)
		if err != nil {
			t.Error(err)
			got <- ""
			return
		}
		messages, err := session.ReceiveMessages(deadline(t), 1, nil)
		if err != nil {
			t.Error(err)
		}
		got <- session.SessionID() + ":" + bodies(messages)
	}()
	sender := newSender(t, client, "events")
	send(t, sender, text("1"))
	send(t, sender, &azservicebus.Message{Body: []byte("2"), SessionID: ptr("s")})
	// the first is dead-lettered where sessions are required
	want := map[string]bool{"1": true, "s:2": true}
	for range 3 {
		if got := <-got; !want[got] {
			t.Errorf("got %q", got)
		}
	}
}

func TestATopicSchedules(t *testing.T) {
	t.Parallel()
	s := start(t, events(servicebusfake.TopicSpec{}, servicebusfake.SubscriptionSpec{Name: "a"}))
	client := connect(t, s)
	sender := newSender(t, client, "events")
	numbers, err := sender.ScheduleMessages(deadline(t), []*azservicebus.Message{text("never"), text("later")}, time.Now().Add(time.Hour), nil)
	testworld.Must(t, err)
	testworld.Must(t, sender.CancelScheduledMessages(deadline(t), numbers[:1], nil))
	if got := states(s, "events"); !slices.Equal(got, []servicebusfake.State{servicebusfake.Scheduled}) || len(s.Messages("events/Subscriptions/a")) != 0 {
		t.Errorf("the topic has %v, want one that is scheduled", got)
	}
	_, err = sender.ScheduleMessages(deadline(t), []*azservicebus.Message{text("soon")}, time.Now().Add(50*time.Millisecond), nil)
	testworld.Must(t, err)
	if got := receive(t, newSubscriber(t, client, "a", nil), 1); bodies(got) != "soon" {
		t.Errorf("got %q", bodies(got))
	}
}

func TestASubscriptionThatComesLaterGetsWhatIsSentFromThenOn(t *testing.T) {
	t.Parallel()
	s := start(t, events(servicebusfake.TopicSpec{}))
	client := connect(t, s)
	sender := newSender(t, client, "events")
	send(t, sender, text("lost"))
	testworld.Must(t, s.CreateSubscription("Events", servicebusfake.SubscriptionSpec{Name: "late"}))
	send(t, sender, text("kept"))
	if got := receive(t, newSubscriber(t, client, "late", nil), 1); bodies(got) != "kept" {
		t.Errorf("got %q", bodies(got))
	}
}

// TestWhatAnEntityIsNotForIsRefused: the link is refused, with another condition than for a missing
// entity.
func TestWhatAnEntityIsNotForIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, events(servicebusfake.TopicSpec{}, servicebusfake.SubscriptionSpec{Name: "a"}))
	client := connect(t, s)
	receiving := func(path string) func() error {
		return func() error {
			_, err := newReceiver(t, client, path, nil).ReceiveMessages(deadline(t), 1, nil)
			return err
		}
	}
	sending := func(path string) func() error {
		return func() error { return newSender(t, client, path).SendMessage(deadline(t), text("x"), nil) }
	}
	for name, c := range map[string]struct {
		use  func() error
		want goamqp.ErrCond
	}{
		"to receive from a topic": {receiving("events"), goamqp.ErrCondNotAllowed},
		"to accept a session of a topic": {func() error {
			_, err := client.AcceptNextSessionForQueue(deadline(t), "events", nil)
			return err
		}, goamqp.ErrCondNotAllowed},
		"to send to a subscription":                        {sending("events/subscriptions/a"), goamqp.ErrCondNotAllowed},
		"to send to its dead letters":                      {sending("events/subscriptions/a/$deadletterqueue"), goamqp.ErrCondNotAllowed},
		"to receive from a subscription that is not there": {receiving("events/Subscriptions/b"), goamqp.ErrCondNotFound},
		"to name it without the word":                      {receiving("events/a"), goamqp.ErrCondNotFound},
		"to name it in the singular":                       {receiving("events/Subscription/a"), goamqp.ErrCondNotFound},
		"to receive from the dead letters of a topic":      {receiving("events/$deadletterqueue"), goamqp.ErrCondNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refused *goamqp.Error
			if err := c.use(); !errors.As(err, &refused) || refused.Condition != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestRulesSelectWhatASubscriptionGets(t *testing.T) {
	t.Parallel()
	ruled := func(rules ...servicebusfake.Rule) servicebusfake.SubscriptionSpec {
		return servicebusfake.SubscriptionSpec{Name: "a", Rules: append([]servicebusfake.Rule{}, rules...)}
	}
	correlation := func(f servicebusfake.CorrelationFilter) servicebusfake.Rule {
		return servicebusfake.Rule{Name: "r", Filter: f}
	}
	for name, c := range map[string]struct {
		subscription servicebusfake.SubscriptionSpec
		want         string
	}{
		"the default rule takes all":      {servicebusfake.SubscriptionSpec{Name: "a"}, "1 2"},
		"no rule takes nothing":           {ruled(), ""},
		"a false filter takes nothing":    {ruled(servicebusfake.Rule{Name: "r", Filter: servicebusfake.FalseFilter{}}), ""},
		"by the subject":                  {ruled(correlation(servicebusfake.CorrelationFilter{Subject: "first"})), "1"},
		"by the letter":                   {ruled(correlation(servicebusfake.CorrelationFilter{Subject: "First"})), ""},
		"by a text":                       {ruled(correlation(servicebusfake.CorrelationFilter{Properties: map[string]any{"processor": "orders"}})), "1"},
		"by a number of any length":       {ruled(correlation(servicebusfake.CorrelationFilter{Properties: map[string]any{"replicas": 7}})), "2"},
		"by all that is set":              {ruled(correlation(servicebusfake.CorrelationFilter{Subject: "first", SessionID: "s2"})), ""},
		"by a property that is not there": {ruled(correlation(servicebusfake.CorrelationFilter{Properties: map[string]any{"missing": ""}})), ""},
		"once, where two rules take it": {ruled(correlation(servicebusfake.CorrelationFilter{Subject: "first"}),
			servicebusfake.Rule{Name: "all", Filter: servicebusfake.TrueFilter{}}), "1 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, events(servicebusfake.TopicSpec{}, c.subscription))
			send(t, newSender(t, connect(t, s), "events"),
				&azservicebus.Message{Body: []byte("1"), Subject: ptr("first"), SessionID: ptr("s1"), ApplicationProperties: map[string]any{"processor": "orders", "replicas": int64(70000)}},
				&azservicebus.Message{Body: []byte("2"), SessionID: ptr("s2"), ApplicationProperties: map[string]any{"processor": "audit", "replicas": int64(7)}})
			var got []string
			for _, m := range s.Messages("events/subscriptions/a") {
				got = append(got, string(m.Body))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestATopicThatIsDescribedWronglyIsRefused(t *testing.T) {
	t.Parallel()
	topic := func(subscriptions ...servicebusfake.SubscriptionSpec) servicebusfake.TopicSpec {
		return servicebusfake.TopicSpec{Name: "t", Subscriptions: subscriptions}
	}
	rule := func(rules ...servicebusfake.Rule) servicebusfake.TopicSpec {
		return topic(servicebusfake.SubscriptionSpec{Name: "a", Rules: rules})
	}
	all := servicebusfake.Rule{Name: "r", Filter: servicebusfake.TrueFilter{}}
	for name, c := range map[string]struct {
		spec servicebusfake.TopicSpec
		want string
	}{
		"without a name":                   {servicebusfake.TopicSpec{}, "a topic needs a name"},
		"of the name of a queue":           {servicebusfake.TopicSpec{Name: "Orders"}, `"Orders" exists already`},
		"as a subscription":                {servicebusfake.TopicSpec{Name: "t/subscriptions/a"}, "stands between a topic and its subscription"},
		"with a negative window":           {servicebusfake.TopicSpec{Name: "t", DuplicateDetectionWindow: -1}, "cannot be negative"},
		"with a subscription of two parts": {topic(servicebusfake.SubscriptionSpec{Name: "a/b"}), `subscription "a/b"`},
		"with a long subscription":         {topic(servicebusfake.SubscriptionSpec{Name: strings.Repeat("a", 51)}), "up to 50 letters"},
		"with a subscription twice":        {topic(servicebusfake.SubscriptionSpec{Name: "a"}, servicebusfake.SubscriptionSpec{Name: "A"}), `two subscriptions "A"`},
		"with a negative lock":             {topic(servicebusfake.SubscriptionSpec{Name: "a", LockDuration: -1}), "cannot be negative"},
		"with a rule without a filter":     {rule(servicebusfake.Rule{Name: "r"}), "needs a filter"},
		"with a filter of nothing":         {rule(servicebusfake.Rule{Name: "r", Filter: servicebusfake.CorrelationFilter{}}), "at least one condition"},
		"with a rule twice":                {rule(all, all), `two rules "r"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, orders(servicebusfake.QueueSpec{}))
			if err := s.CreateTopic(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if s.Messages("t") != nil {
				t.Error("the topic is there all the same")
			}
		})
	}
	s := start(t, events(servicebusfake.TopicSpec{}, servicebusfake.SubscriptionSpec{Name: "a"}))
	for want, err := range map[string]error{
		`"EVENTS" exists already`:        s.CreateQueue(servicebusfake.QueueSpec{Name: "EVENTS"}),
		`there is no topic "nowhere"`:    s.CreateSubscription("nowhere", servicebusfake.SubscriptionSpec{Name: "a"}),
		`has a subscription "A" already`: s.CreateSubscription("events", servicebusfake.SubscriptionSpec{Name: "A"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
