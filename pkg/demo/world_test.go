package demo_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
)

func start(t *testing.T, o demo.Options) *demo.World {
	t.Helper()
	w, err := demo.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func setting(w *demo.World, name string) string {
	for _, entry := range w.Environ() {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

func service(w *demo.World, name string) demo.Service {
	for _, s := range w.Snapshot() {
		if s.Name == name {
			return s
		}
	}
	return demo.Service{}
}

// publisher publishes scale events to the topic of a world, as feedscale would.
type publisher struct {
	t      *testing.T
	client *azservicebus.Client
	sender *azservicebus.Sender
}

func newPublisher(t *testing.T, w *demo.World) *publisher {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(setting(w, "SERVICEBUS"), nil)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := client.NewSender("scale-events", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Close(ended)
	})
	return &publisher{t, client, sender}
}

func (p *publisher) send(body []byte) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testworld.Deadline)
	defer cancel()
	if err := p.sender.SendMessage(ctx, &azservicebus.Message{Body: body}, nil); err != nil {
		p.t.Fatal(err)
	}
}

func (p *publisher) scale(processor string, sequence int64, replicas int) {
	p.t.Helper()
	body, err := events.ScaleEvent{
		Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Data: events.Data{Processor: processor, Sequence: sequence, DesiredReplicas: replicas, Direction: "out", Status: "lagging"},
	}.Encode()
	if err != nil {
		p.t.Fatal(err)
	}
	p.send(body)
}

// leases reads the leases of a processor.
func leases(t *testing.T, w *demo.World, processorName string) []leasefake.DotNetLease {
	t.Helper()
	return testworld.ReadLeases(t, testworld.SDK(t, setting(w, "COSMOS")), "shop", "leases", processorName)
}

// TestCloseLeavesNothingRunning counts goroutines, so no test may run in parallel with it.
func TestCloseLeavesNothingRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	consumed := make(chan demo.Event, 10)
	w, err := demo.Start(context.Background(), demo.Options{OnEvent: func(e demo.Event) { consumed <- e }})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("while everything works", func(t *testing.T) {
		p := newPublisher(t, w)
		p.scale("orders", 1, 2)
		p.scale("audit", 1, 1)
		testworld.Eventually(t, "the workers are busy", func() bool {
			return service(w, "orders").Processed > 0 && service(w, "audit").Replicas > 0
		})
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, of := range []string{"pkg/demo.(", "pkg/changefeedprocessor."} {
		if strings.Contains(string(stacks), of) {
			t.Errorf("a goroutine of %s outlived Close:\n%s", of, stacks)
		}
	}
	// The goroutines of the SDKs need a moment to end.
	testworld.Eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}

func TestNothingRunsBeforeAnEventAsksForIt(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	testworld.Eventually(t, "load is written", func() bool { return service(w, "orders").Written > 20 })
	for _, s := range w.Snapshot() {
		if s.Replicas != 0 || s.Asked != 0 || s.Processed != 0 || len(s.Events) != 0 {
			t.Errorf("got %+v, want no replica and no event", s)
		}
	}
	if found := leases(t, w, ""); len(found) != 0 {
		t.Errorf("got leases %v, want none", found)
	}
}

func TestEventsAloneScaleAService(t *testing.T) {
	t.Parallel()
	consumed := make(chan demo.Event, 10)
	w := start(t, demo.Options{OnEvent: func(e demo.Event) { consumed <- e }})
	p := newPublisher(t, w)

	p.scale("orders", 1, 3)
	want := demo.Event{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Processor: "orders", Sequence: 1, From: 0, To: 3, Status: "lagging"}
	if got := <-consumed; got != want {
		t.Errorf("got event %+v, want %+v", got, want)
	}
	testworld.Eventually(t, "three replicas run", func() bool { return service(w, "orders").Replicas == 3 })
	testworld.Eventually(t, "every partition is checkpointed", func() bool {
		found := leases(t, w, "order-projection")
		for _, l := range found {
			if l.Continuation == nil {
				return false
			}
		}
		return len(found) == 6
	})
	testworld.Eventually(t, "orders are processed", func() bool { return service(w, "orders").Processed > 100 })
	w.PauseLoad("orders", true) // with the load, the workers need CPU time to catch up
	testworld.Eventually(t, "the replicas have caught up", func() bool {
		s := service(w, "orders")
		return s.Processed == s.Written
	})
	w.PauseLoad("orders", false)

	p.scale("orders", 2, 0)
	<-consumed
	testworld.Eventually(t, "no replica runs", func() bool { return service(w, "orders").Replicas == 0 })
	for _, l := range leases(t, w, "order-projection") {
		if l.Owner != nil {
			t.Errorf("lease %s is owned by %s, want it released", l.ID, *l.Owner)
		}
	}
	s := service(w, "orders")
	if s.Processed > s.Written {
		t.Errorf("%d changes were processed of %d that were written", s.Processed, s.Written)
	}
	if len(s.Events) != 2 || s.Events[0] != want || s.Events[1].From != 3 || s.Events[1].To != 0 {
		t.Errorf("got events %+v, want both, the oldest first", s.Events)
	}
}

func TestTheStuckServiceRenewsAndNeverCheckpoints(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	newPublisher(t, w).scale("audit", 1, 1)
	var before []leasefake.DotNetLease
	testworld.Eventually(t, "both leases are owned", func() bool {
		before = leases(t, w, "audit-archive")
		for _, l := range before {
			if l.Owner == nil {
				return false
			}
		}
		return len(before) == 2
	})
	testworld.Eventually(t, "both leases are renewed", func() bool {
		for i, l := range leases(t, w, "audit-archive") {
			if *l.Timestamp == *before[i].Timestamp {
				return false
			}
		}
		return true
	})
	for _, l := range leases(t, w, "audit-archive") {
		if l.Continuation != nil {
			t.Errorf("lease %s has the checkpoint %s, want none", l.ID, *l.Continuation)
		}
	}
	if got := service(w, "audit"); got.Processed != 0 || got.Written == 0 {
		t.Errorf("got %+v, want changes written and none processed", got)
	}
}

// TestTheStuckServiceTakesItsLeasesAgainAfterItLostThem_Long throttles the account until the leases have
// expired. A handler that did not return then would keep its host, the only one, from taking them again.
func TestTheStuckServiceTakesItsLeasesAgainAfterItLostThem_Long(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	newPublisher(t, w).scale("audit", 1, 1)
	renewed := func(since time.Time) bool {
		all := leases(t, w, "audit-archive")
		for _, l := range all {
			if l.Owner == nil || l.Timestamp == nil {
				return false
			}
			if at, err := time.Parse(time.RFC3339Nano, *l.Timestamp); err != nil || !at.After(since) {
				return false
			}
		}
		return len(all) == 2
	}
	testworld.Eventually(t, "both leases are owned", func() bool { return renewed(time.Time{}) })
	toggle(t, w, "throttle", true)
	const expired = 8 * time.Second
	since := time.Now()
	testworld.Eventually(t, "the leases have expired", func() bool { return time.Since(since) > expired })
	toggle(t, w, "throttle", false)
	since = time.Now()
	testworld.Eventually(t, "both leases are renewed", func() bool { return renewed(since) })
}

func TestAnEventThatCameTooLateChangesNothing(t *testing.T) {
	t.Parallel()
	consumed := make(chan demo.Event, 10)
	w := start(t, demo.Options{OnEvent: func(e demo.Event) { consumed <- e }})
	p := newPublisher(t, w)
	wantNext := func(sequence int64, from, to int) {
		t.Helper()
		if got := <-consumed; got.Sequence != sequence || got.From != from || got.To != to {
			t.Errorf("got %+v, want sequence %d from %d to %d", got, sequence, from, to)
		}
	}
	p.scale("payments", 5, 2)
	wantNext(5, 0, 2) // before the others arrive, of which only the newest may be acted on
	p.scale("payments", 4, 7)
	p.scale("payments", 5, 7)
	p.scale("payments", 6, 1)
	wantNext(6, 2, 1)
	if got := service(w, "payments").Asked; got != 1 {
		t.Errorf("got %d replicas asked for, want 1", got)
	}
}

func TestWhatIsNoEventOfAServiceIsSetAside(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		send   func(*publisher)
		reason string
	}{
		{"no scale event", func(p *publisher) { p.send([]byte(`{"replicas":3}`)) }, "not a scale event"},
		{"a processor that is not there", func(p *publisher) { p.scale("refunds", 1, 1) }, "refunds"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, demo.Options{})
			p := newPublisher(t, w)
			c.send(p)
			receiver, err := p.client.NewReceiverForSubscription("scale-events", "workers", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), testworld.Deadline)
			defer cancel()
			set, err := receiver.ReceiveMessages(ctx, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			if reason := set[0].DeadLetterReason; reason == nil || !strings.Contains(*reason, c.reason) {
				t.Errorf("got reason %v, want one with %q", reason, c.reason)
			}
		})
	}
}

func TestTheWorldEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	w, err := demo.Start(ctx, demo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	newPublisher(t, w).scale("orders", 1, 1)
	testworld.Eventually(t, "a replica runs", func() bool { return service(w, "orders").Replicas == 1 })
	end()
	testworld.Eventually(t, "no replica runs", func() bool { return service(w, "orders").Replicas == 0 })
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
