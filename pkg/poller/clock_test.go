package poller_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// TestOneTickByAClockAheadLeavesNothingBehind has one tick by a clock that is ahead between ticks by the
// right one. What it stored in the future counts as now.
func TestOneTickByAClockAheadLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	stored := func(w *world, name string) state.State {
		w.t.Helper()
		record, err := storetest.Load(w.t.Context(), w.store, name)
		testworld.Must(w.t, err)
		return record.State
	}
	// ahead is one tick by a clock that is so far ahead.
	ahead := func(w *world, by time.Duration) {
		w.clock.Advance(by)
		w.tick()
		w.clock.Set(w.clock.Now().Add(-by))
	}
	unreadable := func(w *world) {
		w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.QueryDocuments {
				return &cosmosfake.Answer{Status: 403}
			}
			return nil
		})
	}
	t.Run("the time of the last measurement, also of a group", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.poller.Processors[0].Group = "workers"
		w.poller.Groups = []poller.Group{{Name: "workers", Policy: scaling.GroupPolicy{}}}
		w.tick()
		ahead(w, time.Hour)
		unreadable(w)
		w.tick()
		for _, name := range []string{"orders", "workers"} {
			if s := stored(w, name); s.PolledAt.After(s.AttemptedAt) {
				t.Errorf("%s: measured at %s, after the poll at %s", name, s.PolledAt, s.AttemptedAt)
			}
		}
	})
	t.Run("the age of a change that need not be read again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		second := w.poller.Processors[0]
		second.Name, second.ProcessorName = "billing", "billing"
		w.poller.Processors = append(w.poller.Processors, second)
		w.Put(testworld.Leases, w.LeasesOf("billing", "acct", "orders").DotNetPKOld("0", leasefake.Fields{Continuation: leasefake.At(1)}))
		w.write(5)
		w.tick()
		ahead(w, time.Hour)
		w.tick()
		for _, name := range []string{"orders", "billing"} {
			if age := stored(w, name).Lag.Partitions[0].Age; age == nil || *age > 600 {
				t.Errorf("%s: the change written just now is %d s old", name, *age)
			}
		}
	})
	t.Run("the time of a reading that the budget carries over", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.write(5)
		w.tick()
		ahead(w, time.Hour)
		poor, err := cosmos.NewAccount(cosmos.Options{
			Endpoint: w.Account.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 1,
			Budget: 0.001, Transport: &http.Client{Transport: w.Transport},
		})
		testworld.Must(t, err)
		_, _, _ = poor.Describe(t.Context(), w.poller.Processors[0].Container) // spends the budget of an hour
		w.poller.Processors[0].Account, w.poller.Processors[0].LeaseAccount = poor, poor
		w.poller.Timeout = time.Second
		w.tick()
		if p := stored(w, "orders").Lag.Partitions[0]; !p.Carried() || p.Measured.After(w.clock.Now()) {
			t.Errorf("carried: %v, read at %s, and it is %s", p.Carried(), p.Measured, w.clock.Now())
		}
	})
	t.Run("the history", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.poller.Retention = 2 * time.Hour
		begin := w.clock.Now()
		w.tick()
		w.tick()
		ahead(w, 24*time.Hour)
		w.tick()
		samples, err := w.store.History(t.Context(), "orders", begin, begin.Add(time.Hour))
		testworld.Must(t, err)
		if len(samples) < 2 {
			t.Errorf("%d samples are left", len(samples))
		}
	})
	t.Run("the heartbeat", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.tick()
		w.broker.take(t)
		ahead(w, 100*time.Hour)
		w.wantEvents("orders/2 0->0 false")
		w.tick()
		w.wantEvents("orders/3 0->0 false")
	})
}
