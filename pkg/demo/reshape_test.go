package demo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// orders measures the processor orders as feedscale does.
type orders struct {
	t         *testing.T
	world     *demo.World
	estimator *estimator.Estimator
	processor estimator.Processor
}

func newOrders(t *testing.T, w *demo.World) *orders {
	t.Helper()
	endpoint, key, _ := strings.Cut(strings.TrimPrefix(setting(w, "COSMOS"), "AccountEndpoint="), ";AccountKey=")
	account := testworld.Client(t, endpoint, strings.TrimSuffix(key, ";"))
	return &orders{t, w, estimator.New(8, time.Now), estimator.Processor{
		Name:    "orders",
		Account: account, Container: cosmos.Container{Database: "shop", ID: "orders"},
		LeaseAccount: account, LeaseContainer: cosmos.Container{Database: "shop", ID: "leases"},
		ProcessorName: "order-projection", AccountHost: "127.0.0.1", StartFrom: changefeed.StartFrom{Beginning: true},
	}}
}

// measure measures once. Every partition must be known, except while one is split: then only that
// something is pending is known.
func (o *orders) measure() changefeed.ProcessorLag {
	o.t.Helper()
	measured := o.estimator.EstimateAll(o.t.Context(), []estimator.Processor{o.processor})[0]
	unknown := func(p changefeed.Partition) bool {
		return !p.Known() && (p.Status != changefeed.StatusSplitting || p.Lag == nil)
	}
	if measured.Error != "" || slices.ContainsFunc(measured.Partitions, unknown) {
		o.t.Fatalf("not all is known: %s", measured.Problem())
	}
	return measured
}

// caughtUp waits until there are n leases, all of which are current, and everything written is
// processed. It pauses the load, since with it the workers need more CPU time to catch up.
func (o *orders) caughtUp(leases int) {
	o.t.Helper()
	o.world.PauseLoad("orders", true)
	defer o.world.PauseLoad("orders", false)
	testworld.Eventually(o.t, fmt.Sprintf("the workers catch up with %d leases", leases), func() bool {
		measured, now := o.measure(), service(o.world, "orders")
		return len(measured.Partitions) == leases && measured.Status() == changefeed.StatusOK && *measured.Lag() == 0 && now.Processed == now.Written
	})
}

// happened reports whether exactly these things happened so far.
func happened(w *demo.World, texts ...string) bool {
	return slices.EqualFunc(w.Happenings(), texts, func(h demo.Happening, text string) bool { return h.Text == text })
}

func TestOrdersAreSplitAndMergedAndTheWorkersKeepUp_Long(t *testing.T) {
	t.Parallel()
	// Only this test splits and merges, and a split takes longer than a few measurements.
	w := start(t, demo.Options{Reshaping: demo.Reshaping{SplitAfter: time.Hour, SplitTakes: 10 * time.Second, MergeAfter: time.Hour}})
	o := newOrders(t, w)
	p := newPublisher(t, w)
	p.scale("orders", 1, 5)
	testworld.Eventually(t, "leases", func() bool { return !o.measure().Bootstrap })
	testworld.Must(t, w.Switch("split", true))
	const (
		asked  = "you: split a partition of orders"
		begun  = "partition 2 of orders is being split"
		split  = "partition 2 of orders was split into 6 and 7"
		undone = "you: merge the partition of orders again"
		merged = "partitions 6 and 7 of orders were merged into 8"
	)
	testworld.Eventually(t, "the split is seen while it goes on", func() bool {
		measured := o.measure()
		over := happened(w, asked, begun, split) // the workers have not replaced the lease yet
		if over || happened(w, asked, begun) {
			i := slices.IndexFunc(measured.Partitions, func(p changefeed.Partition) bool { return p.Lease == "2" })
			return i >= 0 && measured.Partitions[i].Status == changefeed.StatusSplitting && (over || !measured.Complete()) && *measured.Partitions[i].Lag >= 1
		}
		return false
	})
	testworld.Eventually(t, "the partition is split", func() bool { return happened(w, asked, begun, split) })
	o.caughtUp(7)
	testworld.Must(t, w.Switch("split", false))
	testworld.Eventually(t, "the children are merged", func() bool { return happened(w, asked, begun, split, undone, merged) })
	// Changes of both children have the same LSNs. Until those are processed, the lag is less than
	// the number of changes.
	before := service(w, "orders").Written
	testworld.Eventually(t, "orders of the merged partition are processed", func() bool {
		return service(w, "orders").Processed > before+200 && slices.ContainsFunc(o.measure().Partitions, func(p changefeed.Partition) bool { return p.Range != nil })
	})
	o.caughtUp(7)

	p.scale("orders", 2, 0)
	testworld.Eventually(t, "no replica runs", func() bool { return service(w, "orders").Replicas == 0 })
	testworld.Eventually(t, "a measurement while no split goes on", func() bool {
		before := service(w, "orders")
		measured := o.measure()
		if measured.Status() == changefeed.StatusSplitting {
			return false
		}
		// The bound of each part of the merged partition is rounded down.
		if pending := before.Written - before.Processed; pending < 0 || *measured.Lag()+1 < pending {
			t.Errorf("got lag %d, want at least the %d changes that were written and not processed", *measured.Lag(), pending)
		}
		return true
	})
}

func TestOnlyTheLastHappeningsAreKept(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{Reshaping: demo.Reshaping{SplitAfter: time.Millisecond, SplitTakes: time.Millisecond, MergeAfter: time.Millisecond}})
	var all []demo.Happening
	testworld.Eventually(t, "the first is forgotten", func() bool {
		all = w.Happenings()
		return len(all) > 0 && all[0].Text != "partition 2 of orders is being split"
	})
	if len(all) != 5 {
		t.Errorf("got %d happenings, want 5", len(all))
	}
	if !slices.IsSortedFunc(all, func(a, b demo.Happening) int { return a.Time.Compare(b.Time) }) {
		t.Errorf("got %v, want the oldest first", all)
	}
}
