package demo_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// fault returns the fault of a name.
func fault(t *testing.T, w *demo.World, name string) demo.Fault {
	t.Helper()
	all := w.Faults()
	at := slices.IndexFunc(all, func(f demo.Fault) bool { return f.Name == name })
	if at < 0 {
		t.Fatalf("there is no fault %s", name)
	}
	return all[at]
}

// toggle switches a fault and checks that the world shows it.
func toggle(t *testing.T, w *demo.World, name string, on bool) {
	t.Helper()
	before := fault(t, w, name)
	testworld.Must(t, w.Switch(name, on))
	if after := fault(t, w, name); after.On != on || after.Label == before.Label || w.Watch() == "" {
		t.Errorf("%s: got %+v, before %+v, and %q", name, after, before, w.Watch())
	}
}

func TestAHandlerThatHangsOrThrowsStopsItsServiceUntilItIsMended(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hang", "throw"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, demo.Options{})
			newPublisher(t, w).scale("orders", 1, 3)
			testworld.Eventually(t, "changes are processed", func() bool { return service(w, "orders").Processed > 100 })
			toggle(t, w, name, true)
			var stopped int64
			since := time.Now()
			testworld.Eventually(t, "nothing is processed for two seconds", func() bool {
				if now := service(w, "orders").Processed; now != stopped {
					stopped, since = now, time.Now()
				}
				return time.Since(since) > 2*time.Second
			})
			toggle(t, w, name, false)
			testworld.Eventually(t, "changes are processed again", func() bool { return service(w, "orders").Processed > stopped+100 })
		})
	}
}

func TestAPartitionIsSplitAndMergedWhenThatIsAsked(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{Reshaping: demo.Reshaping{SplitAfter: time.Hour, SplitTakes: time.Millisecond, MergeAfter: time.Hour}})
	toggle(t, w, "split", true)
	testworld.Eventually(t, "the partition is split", func() bool {
		return happened(w, "you: split a partition of orders", "partition 2 of orders is being split", "partition 2 of orders was split into 6 and 7")
	})
	testworld.Must(t, w.Switch("split", true)) // it is on already
	toggle(t, w, "split", false)
	testworld.Eventually(t, "it is merged, once", func() bool {
		return happened(w, "you: split a partition of orders", "partition 2 of orders is being split", "partition 2 of orders was split into 6 and 7",
			"you: merge the partition of orders again", "partitions 6 and 7 of orders were merged into 8")
	})
}

func TestAThrottledAccountRefusesWhoeverAsks(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	o := newOrders(t, w)
	newPublisher(t, w).scale("orders", 1, 1)
	testworld.Eventually(t, "there are leases", func() bool { return len(o.measure().Partitions) == 6 })
	toggle(t, w, "throttle", true)
	if measured := o.estimator.EstimateAll(t.Context(), []estimator.Processor{o.processor})[0]; measured.Complete() {
		t.Errorf("got %+v, want what is unknown", measured)
	}
	toggle(t, w, "throttle", false)
	o.measure()
}

func TestALeaseThatIsLostLeavesKeysUncoveredUntilItIsBack(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	p := newPublisher(t, w)
	o := newOrders(t, w)
	o.processor.Name, o.processor.Container.ID, o.processor.ProcessorName = "payments", "payments", "payment-settlement"
	p.scale("payments", 1, 1)
	testworld.Eventually(t, "there are leases", func() bool { return len(o.measure().Partitions) == 8 })
	toggle(t, w, "gap", true)
	testworld.Eventually(t, "keys are uncovered", func() bool { l := o.measure(); return l.Status() == changefeed.StatusUncovered })
	toggle(t, w, "gap", false)
	testworld.Eventually(t, "all keys are covered", func() bool { l := o.measure(); return len(l.Partitions) == 8 && !l.Uncovered() })
}

func TestLeasesThatAreRestoredFromElsewhereAreAheadUntilTheOldOnesAreBack(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	o := newOrders(t, w)
	o.processor.Name, o.processor.Container.ID, o.processor.ProcessorName = "audit", "audit", "audit-archive"
	replicas := newPublisher(t, w)
	replicas.scale("audit", 1, 1)
	counts := func(of func(*changefeed.Partition) bool) (n int) {
		l := o.measure()
		for i := range l.Partitions {
			if of(&l.Partitions[i]) {
				n++
			}
		}
		return n
	}
	owned := func(p *changefeed.Partition) bool { return p.Owner != "" }
	testworld.Eventually(t, "both leases have an owner", func() bool { return counts(owned) == 2 })
	toggle(t, w, "ahead", true)
	before := service(w, "audit").Written
	if got := counts((*changefeed.Partition).Beyond); got != 2 {
		t.Errorf("%d positions are ahead, want 2", got)
	}
	replicas.scale("audit", 2, 2)
	testworld.Eventually(t, "another host goes on, and more changes are written", func() bool {
		return counts(owned) > 0 && service(w, "audit").Written > before+10
	})
	if got := counts((*changefeed.Partition).Beyond); got != 2 {
		t.Errorf("%d positions stay ahead under load, want 2", got)
	}
	toggle(t, w, "ahead", false)
	testworld.Eventually(t, "both lag", func() bool { return counts((*changefeed.Partition).Pending) == 2 })
}

func TestABrokerThatIsStoppedTakesNoEventUntilItIsStarted(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	p := newPublisher(t, w)
	p.scale("orders", 1, 1)
	testworld.Eventually(t, "a replica runs", func() bool { return service(w, "orders").Replicas == 1 })
	toggle(t, w, "broker", true)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := p.sender.SendMessage(ctx, &azservicebus.Message{Body: []byte("{}")}, nil); err == nil {
		t.Error("an event was taken")
	}
	toggle(t, w, "broker", false)
	newPublisher(t, w).scale("orders", 2, 2)
	testworld.Eventually(t, "two replicas run", func() bool { return service(w, "orders").Replicas == 2 })
}

func TestWhatIsNoFaultIsNotSwitched(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	if err := w.Switch("earthquake", true); !errors.Is(err, demo.ErrNoFault) {
		t.Errorf("got %v", err)
	}
	if w.Watch() != "" {
		t.Errorf("got %q, and nothing was switched", w.Watch())
	}
}
