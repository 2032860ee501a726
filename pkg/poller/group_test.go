package poller_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// grouped is a world of orders, of one partition, and payments, of three, in one group.
type grouped struct {
	*world
	payments leasefake.Processor
}

func newGrouped(t *testing.T) grouped {
	t.Helper()
	w := grouped{world: newWorld(t)}
	w.Container("payments", 3)
	w.payments = w.LeasesOf("payments", "acct", "payments")
	second := w.poller.Processors[0]
	second.Name, second.ProcessorName, second.Container = "payments", "payments", cosmos.Container{Database: testworld.Database, ID: "payments"}
	w.poller.Processors[0].Target = nil
	w.poller.Processors = append(w.poller.Processors, second)
	for i := range w.poller.Processors {
		w.poller.Processors[i].Group = "shop-workers"
	}
	most := 4
	w.poller.Groups = []poller.Group{{Name: "shop-workers", Policy: scaling.GroupPolicy{MaxReplicas: &most}, Target: map[string]string{"deployment": "shop-workers"}}}
	w.processPayments(0, 0, 0)
	return w
}

func (w grouped) processPayments(lsns ...int64) {
	w.t.Helper()
	for i, lsn := range lsns {
		w.Put(testworld.Leases, w.payments.DotNetPKOld([]string{"0", "1", "2"}[i], leasefake.Fields{Continuation: leasefake.At(lsn)}))
	}
}

func (w grouped) state(name string) state.State {
	w.t.Helper()
	record, err := storetest.Load(w.t.Context(), w.store, name)
	testworld.Must(w.t, err)
	return record.State
}

func TestAGroupIsPublishedInPlaceOfItsMembers(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	w.write(5)
	w.Write("payments", 90)
	r := w.tick()
	if len(r.Polled) != 2 || len(r.Groups) != 1 {
		t.Fatalf("%d processors and %d groups, want 2 and 1", len(r.Polled), len(r.Groups))
	}
	body := w.broker.got.String()
	e, err := events.Decode([]byte(body))
	testworld.Must(t, err)
	if e.Subject() != "shop-workers" || e.Processor != "" || e.DesiredReplicas != 3 || e.PreviousReplicas != nil || e.Epoch == 0 || *e.Lag != 95 ||
		*e.PartitionCount != 4 || e.Target["deployment"] != "shop-workers" || len(e.Members) != 2 || e.Members[0].Processor != "orders" ||
		*e.Members[0].DesiredReplicas != 1 || *e.Members[1].DesiredReplicas != 3 || *e.Members[1].Lag != 90 || e.Members[1].Status != "lagging" {
		t.Errorf("%s", body)
	}
	w.broker.take(t)
	w.tick()
	w.wantEvents()
	orders, group := w.state("orders"), w.state("shop-workers")
	if orders.Published != nil || orders.Sequence != 0 || orders.Group != "shop-workers" || orders.Decision.Replicas != 1 {
		t.Errorf("the member: %+v", orders)
	}
	if group.Sequence != 1 || group.Published.Replicas != 3 || group.PolledAt.IsZero() || report.NewGroup(group).Members[1].Processor != "payments" {
		t.Errorf("the group: %+v", group)
	}
	samples, err := w.store.History(t.Context(), "shop-workers", time.Time{}, w.clock.Now().Add(time.Hour))
	testworld.Must(t, err)
	if len(samples) != 2 || *samples[0].Lag != 95 || *samples[0].Replicas != 3 {
		t.Errorf("its history: %+v", samples)
	}
}

func TestAMemberThatCannotBeMeasuredHoldsItsLast(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	w.write(5)
	w.Write("payments", 90)
	w.tick()
	w.broker.take(t)
	w.poller.Processors[1].Container.ID = "nowhere"
	w.poller.Processors[1].Policy.Fallback.FailureThreshold = 100
	r := w.tick()
	w.wantEvents()
	if g := r.Groups[0]; g.Decision.Replicas != 3 || g.Totals().Complete || g.Decision.Reasons[0].Why != "payments holds its last decision, the highest of 2 members" {
		t.Errorf("%+v", g.Decision)
	}
}

// unread is a store that cannot read the row of one processor.
type unread struct {
	state.Store
	processor string
}

func (s unread) Load(ctx context.Context, processor string) (state.Entry, error) {
	if processor == s.processor {
		return state.Entry{}, errors.New("the row cannot be read")
	}
	return s.Store.Load(ctx, processor)
}

// TestAMemberWhoseStateCannotBeReadLowersNothing is seed 120 of the simulation: the row of a member that is
// paused, and asked for the most before the pause, hangs for a tick.
func TestAMemberWhoseStateCannotBeReadLowersNothing(t *testing.T) {
	t.Parallel()
	for rule, paused := range map[string]bool{"paused": true, "not paused": false} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			w := newGrouped(t)
			w.write(5)
			w.Write("payments", 90)
			w.tick()
			w.broker.take(t)
			w.poller.Processors[1].Policy.Paused = paused
			w.tick()
			w.poller.Store = unread{w.poller.Store, "payments"}
			if g := w.tick().Groups[0]; g.Decision.Replicas != 3 {
				t.Errorf("the group has %d, want 3: %v", g.Decision.Replicas, g.Decision.Reasons)
			}
			w.wantEvents()
		})
	}
}

// TestAMemberThatWasNeverMeasuredLowersNothing: a state that is lost must not scale in what runs.
func TestAMemberThatWasNeverMeasuredLowersNothing(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	w.poller.Processors[1].Container.ID = "nowhere"
	w.tick()
	w.wantEvents()
	if r := w.tick(); r.Groups[0].Decision != nil {
		t.Errorf("zero was decided beside a member that may ask for any number: %+v", r.Groups[0].Decision)
	}
	w.write(5)
	w.tick()
	w.wantEvents("/1 null->1 true")
}

func TestAPollOfNamedProcessorsTouchesNoOther(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	w.write(5)
	w.Write("payments", 90)
	w.broker.setDown(true)
	w.tick()
	left := w.state("orders")
	var mu sync.Mutex
	var told []string
	each := func(s state.State) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, s.Processor)
	}
	w.clock.Advance(time.Second)
	r, err := w.poller.Tick(t.Context(), poller.Mode{All: true, Only: []string{"payments"}, Each: each})
	testworld.Must(t, err)
	if len(r.Polled) != 1 || r.Polled[0].Processor != "payments" || len(r.Groups) != 1 || r.Groups[0].Decision.Replicas != 3 {
		t.Errorf("%d processors and %d groups", len(r.Polled), len(r.Groups))
	}
	if now := w.state("orders"); !now.AttemptedAt.Equal(left.AttemptedAt) {
		t.Errorf("orders was polled at %s", now.AttemptedAt)
	}
	if want := []string{"payments"}; !slices.Equal(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
}

func TestAGroupIsDecidedWhereAMemberIsDueAndOnlyThere(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	for i := range w.poller.Processors {
		w.poller.Processors[i].Schedule = everyHour{}
	}
	w.poller.Processors[0].Schedule = nil
	w.write(5)
	w.tick()
	w.broker.take(t)
	if r := w.tick(); len(r.Polled) != 1 || len(r.Groups) != 1 {
		t.Errorf("one member is due: %d and %d", len(r.Polled), len(r.Groups))
	}
	w.poller.Processors[0].Schedule = everyHour{}
	if r := w.tick(); len(r.Polled) != 0 || len(r.Groups) != 0 {
		t.Errorf("no member is due: %d and %d", len(r.Polled), len(r.Groups))
	}
	// What waits in the group's outbox is published nevertheless.
	w.poller.Processors[0].Schedule = nil
	w.broker.setDown(true)
	w.write(0)
	w.checkpoint(5)
	w.tick()
	w.poller.Processors[0].Schedule = everyHour{}
	w.broker.setDown(false)
	w.tick()
	w.wantEvents("/2 1->1 false")
}

func TestAGroupWhoseMembersArePausedPublishesNothing(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	w.tick()
	w.wantEvents("/1 null->0 false")
	w.poller.Processors[0].Policy.Paused = true
	w.write(5)
	w.tick()
	w.wantEvents() // it holds what it asked for before the pause
	w.poller.Processors[1].Policy.Paused = true
	w.clock.Advance(2 * time.Hour)
	w.tick()
	w.wantEvents()
	w.poller.Processors[0].Policy.Paused = false
	w.tick()
	w.wantEvents("/2 0->1 true")
}

func TestAProcessorThatLeavesItsGroupIsPublishedAnew(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	w.poller.Processors[0].Group = ""
	w.write(5)
	w.tick()
	if got := w.broker.take(t); len(got) != 2 || !slices.Contains(got, "orders/1 null->1 true") || !slices.Contains(got, "/1 null->0 false") {
		t.Errorf("events %q", got)
	}
	w.poller.Processors[0].Group = "shop-workers"
	w.tick()
	w.wantEvents("/2 0->1 true")
	w.poller.Processors[0].Group = ""
	w.tick()
	if got := w.broker.take(t); len(got) != 2 || !slices.Contains(got, "orders/2 null->1 true") || !slices.Contains(got, "/3 1->0 false") {
		t.Errorf("events %q", got)
	}
}
