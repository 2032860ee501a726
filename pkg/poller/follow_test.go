package poller_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// follows answers for two containers, of which one follows every processor, with what it was asked.
type follows struct {
	mu    sync.Mutex
	asked []poller.Want
}

func (f *follows) follow(_ context.Context, _ time.Time, processor string, w poller.Want, _ []state.ContainerThroughput) poller.Followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, w)
	d := &scaling.ThroughputDecision{RUPerSecond: 1000 * *w.Replicas, Provisioned: 500}
	return poller.Followed{Requests: 3, Charge: 2.5, Containers: []state.ContainerThroughput{
		{Account: "a", Database: "shop", Container: processor, Provisioned: 500, Decision: d}, {Account: "a", Database: "shop", Container: "both", Provisioned: 500, Decision: d},
	}}
}

// TestWhatContainersNeedIsDecidedWithTheReplicas looks at the State and the event of one tick.
func TestWhatContainersNeedIsDecidedWithTheReplicas(t *testing.T) {
	t.Parallel()
	w, alone := newWorld(t), newWorld(t)
	f := &follows{}
	w.poller.Follow = f.follow
	w.write(5)
	alone.write(5)
	without := alone.tick().Polled[0]
	polled := w.tick().Polled[0]
	if len(polled.Containers) != 2 || polled.Containers[0].Decision.RUPerSecond != 1000 || f.asked[0].Member {
		t.Errorf("got %+v, asked %+v", polled.Containers, f.asked)
	}
	if polled.Lag.Requests != without.Lag.Requests+3 || polled.Lag.Charge != without.Lag.Charge+2.5 {
		t.Errorf("%d requests with %g RU, and %d without", polled.Lag.Requests, polled.Lag.Charge, without.Lag.Requests)
	}
	record, err := storetest.Load(t.Context(), w.store, "orders")
	testworld.Must(t, err)
	if len(record.State.Containers) != 2 {
		t.Errorf("stored %+v", record.State.Containers)
	}
}

// TestTheEventOfAGroupHasTheContainersOfItsMembers has a member ask for more than the other.
func TestTheEventOfAGroupHasTheContainersOfItsMembers(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	f := &follows{}
	w.poller.Follow = f.follow
	w.write(5)
	w.Write("payments", 90)
	result := w.tick()
	want := *result.Groups[0].Memory.Replicas
	event, err := events.Decode(w.broker.got.Bytes())
	testworld.Must(t, err)
	var names []string
	for _, c := range event.Throughput {
		names = append(names, c.Container)
		if *c.Desired != 1000*want {
			t.Errorf("%s is to have %d RU/s for %d replicas of the group", c.Container, *c.Desired, want)
		}
	}
	if len(names) != 3 {
		t.Errorf("the event has %q, want each container once", names)
	}
	members := 0
	for _, asked := range f.asked {
		if asked.Member {
			members++
		}
	}
	if members != 2 || len(f.asked) != 4 {
		t.Errorf("asked %+v, want each member alone, and again with its group", f.asked)
	}
}
