package poller_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// TestWhatProcessorsWantIsHandedOverAfterTheTick looks at each tick's Provision.
func TestWhatProcessorsWantIsHandedOverAfterTheTick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got []poller.Want
	w.poller.Provision = func(_ context.Context, _ time.Time, wants map[string]poller.Want) poller.Provisioned {
		record, err := storetest.Load(t.Context(), w.store, "orders")
		testworld.Must(t, err)
		if record.Version == "" {
			t.Error("the decision is not committed yet")
		}
		got = append(got, wants["orders"])
		return poller.Provisioned{}
	}
	w.write(5)
	w.tick()
	_, err := w.poller.Tick(t.Context(), poller.Mode{All: true, DryRun: true})
	testworld.Must(t, err)
	w.poller.Processors[0].Policy.Paused = true
	w.tick()
	if len(got) != 2 || *got[0].Replicas != 1 || got[0].Paused || !got[1].Paused {
		t.Errorf("got %+v, want one of each tick but the dry run", got)
	}
}

// TestAContainerAtItsLimitHoldsTheNextTick has a limit found while the lag grows, and then falls.
func TestAContainerAtItsLimitHoldsTheNextTick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("wide", 8)
	leases := w.LeasesOf("", "acct", "wide")
	for _, token := range []string{"0", "1", "2", "3", "4", "5", "6", "7"} {
		w.Put(testworld.Leases, leases.DotNetPKOld(token, testworld.At(0)))
	}
	w.poller.Processors[0].Container.ID = "wide"
	w.poller.Provision = func(context.Context, time.Time, map[string]poller.Want) poller.Provisioned {
		return poller.Provisioned{Limits: map[string]scaling.Limit{"orders": {Container: "shop/wide", RUPerSecond: 4000}}}
	}
	decided := func() (replicas int, held bool) {
		d := w.tick().Polled[0].Decision
		return d.Replicas, slices.ContainsFunc(d.Reasons, func(r scaling.Reason) bool { return r.Step == "throughput" })
	}
	w.Write("wide", 10)
	if replicas, held := decided(); replicas != 1 || held {
		t.Errorf("at first: %d, held %t", replicas, held)
	}
	w.Write("wide", 30)
	if replicas, held := decided(); replicas != 1 || !held {
		t.Errorf("the lag grows: %d, held %t", replicas, held)
	}
}
