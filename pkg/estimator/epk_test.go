package estimator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// epk writes an EPK lease of the .NET SDK.
func (w *world) epk(p estimator.Processor, span changefeed.Range, f leasefake.Fields) {
	w.t.Helper()
	w.put(w.leasesOf(p).DotNetEPK(leasefake.Range(span), f))
}

func (w *world) ranges(container string) changefeed.Ranges {
	w.t.Helper()
	ranges, _, err := w.account.Ranges(w.t.Context(), cosmos.Container{Database: database, ID: container})
	testworld.Must(w.t, err)
	return ranges
}

func TestAnEPKLeaseOnOneWholeRangeIsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", 10)
	p := w.processor("orders")
	whole := w.ranges("orders")[0].Span()
	of, keys := w.leasesOf(p), leasefake.Range(whole)
	var none leasefake.Fields
	for _, c := range []struct {
		rule, want string
		lease      map[string]any
	}{
		{".NET", "-FF=6 lagging", of.DotNetEPK(keys, testworld.At(4))},
		{"Java", "-FF=4 lagging", of.JavaEPK(keys, leasefake.FromNow(), testworld.At(6))},
		{"Java, which has not said yet where it starts", "-FF=~0 uncheckpointed", of.JavaEPK(keys, leasefake.FromBeginning(), none)},
		{"Java from the beginning, which wins over the configuration", "-FF=10 lagging", of.JavaEPKUnread(keys, leasefake.FromBeginning(), none)},
		{"Java from now", "-FF=~0 uncheckpointed", of.JavaEPKUnread(keys, leasefake.FromNow(), none)},
		{"Java from a time in the past", "-FF=10 lagging", of.JavaEPKUnread(keys, leasefake.FromTime(time.Now().Add(-time.Hour)), none)},
		{"Java from another lease", "-FF=7 lagging", of.JavaEPKUnread(keys, leasefake.FromLease(`"3"`, keys), none)},
		{"Java from the beginning, at a position without a token", "-FF=10 lagging", of.JavaEPKMigrated(keys, leasefake.FromBeginning(), none)},
		{"Java from now, at a position without a token", "-FF=~0 uncheckpointed", of.JavaEPKMigrated(keys, leasefake.FromNow(), none)},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w.put(c.lease)
			l := w.estimate(p)[0]
			check(t, l, c.want)
			if r := l.Partitions[0].Range; r == nil || !r.Equal(whole) {
				t.Errorf("range %v", r)
			}
		})
	}
}

func TestAnEPKLeaseWiderThanARangeHasTheLagOfTheGreatestAndWakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", 4)
	p := w.processor("orders")
	w.epk(p, w.ranges("orders")[0].Span(), testworld.At(4))
	e := estimator.New(16, time.Now) // remembers the ranges of before
	check(t, e.EstimateAll(t.Context(), []estimator.Processor{p})[0], "-FF=0 ok")
	_, err := w.Account.Split(database, "orders", "0")
	testworld.Must(w.t, err)
	check(t, e.EstimateAll(t.Context(), []estimator.Processor{p})[0], "-FF=~1 splitting")
	w.Write("orders", 6)
	l := e.EstimateAll(t.Context(), []estimator.Processor{p})[0]
	check(t, l, "-FF=~4 splitting")
	if l.PartitionCount() != 2 {
		t.Errorf("%d partitions, want 2", l.PartitionCount())
	}
}

// TestThePartOfARangeThatHasNotMovedCountsByTheOtherParts has changes that are dear to read, so that positions
// which stand still are not read again.
func TestThePartOfARangeThatHasNotMovedCountsByTheOtherParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 2)
	w.Write("orders", 1)
	before := w.ranges("orders")
	child, err := w.Account.Merge(database, "orders", "0", "1")
	testworld.Must(t, err)
	p := w.processor("orders")
	for _, r := range before {
		w.epk(p, r.Span(), testworld.At(1))
	}
	for i := range 40 {
		w.Put("orders", map[string]any{"id": fmt.Sprint(i), "text": strings.Repeat("x", 10<<10)})
	}
	e := estimator.New(16, time.Now)
	for range 3 {
		l := e.EstimateAll(t.Context(), []estimator.Processor{p})[0]
		p.Last = func() changefeed.ProcessorLag { return l }
	}
	answer, _, err := w.account.FeedPage(t.Context(), p.Container, changefeed.Position{Range: child})
	testworld.Must(t, err)
	newest, _ := changefeed.SessionLSN(answer.SessionToken)
	w.epk(p, before[0].Span(), testworld.At(newest))
	got, want := e.EstimateAll(t.Context(), []estimator.Processor{p})[0], w.estimate(w.processor("orders"))[0]
	if describe(got) != describe(want) || *got.Lag() < 20 {
		t.Errorf("%s, want %s as by a poll that remembers nothing", describe(got), describe(want))
	}
}

func TestAfterAMerge(t *testing.T) {
	t.Parallel()
	merged := func(t *testing.T) (w *world, p estimator.Processor, before changefeed.Ranges) {
		w = newWorld(t)
		w.Container("orders", 2)
		w.Write("orders", 20)
		p = w.processor("orders")
		before = w.ranges("orders")
		return w, p, before
	}
	merge := func(w *world) string {
		child, err := w.Account.Merge(database, "orders", "0", "1")
		testworld.Must(w.t, err)
		return child
	}
	session := func(w *world, child string) int64 {
		answer, _, err := w.account.FeedPage(w.t.Context(), cosmos.Container{Database: database, ID: "orders"}, changefeed.Position{Range: child})
		testworld.Must(w.t, err)
		n, _ := changefeed.SessionLSN(answer.SessionToken)
		return n
	}
	t.Run("PK-range leases of the parents wake, and never count more than the range has", func(t *testing.T) {
		t.Parallel()
		w, p, before := merged(t)
		for _, r := range before {
			w.lease(p, r.ID, "0", "worker")
		}
		merge(w)
		l := w.estimate(p)[0]
		if l.Status() != changefeed.StatusSplitting || len(l.Partitions) != 2 || *l.Lag() < 20 {
			t.Errorf("%s", describe(l))
		}
	})
	t.Run("EPK leases of the old ranges are read in their parts, approximately, and bounded by the range", func(t *testing.T) {
		t.Parallel()
		w, p, before := merged(t)
		child := merge(w)
		f := testworld.At(session(w, child))
		for _, r := range before {
			w.epk(p, r.Span(), f)
		}
		check(t, w.estimate(p)[0], fmt.Sprintf("-%s=0 ok, %s-FF=0 ok", before[0].Max, before[0].Max))
		w.Write("orders", 10)
		l := w.estimate(p)[0]
		if got := *l.Lag(); got < 2 || got > 10 || !l.Partitions[0].Approximate || !l.Partitions[1].Approximate {
			t.Errorf("%s, want at most the 10 transactions of the range in all", describe(l))
		}
		f = testworld.At(session(w, child))
		for _, r := range before {
			w.epk(p, r.Span(), f)
		}
		l = w.estimate(p)[0]
		if *l.Lag() != 0 || l.Status() != changefeed.StatusOK {
			t.Errorf("caught up: %s, want zero", describe(l))
		}
	})
	t.Run("PK-range leases that stand beside the EPK leases that replaced them count nothing", func(t *testing.T) {
		t.Parallel()
		w, p, before := merged(t)
		for _, r := range before {
			w.lease(p, r.ID, "0", "worker")
		}
		f := testworld.At(session(w, merge(w)))
		for _, r := range before {
			w.epk(p, r.Span(), f)
		}
		check(t, w.estimate(p)[0], fmt.Sprintf("-%s=0 ok, %s-FF=0 ok", before[0].Max, before[0].Max))
	})
	t.Run("so do newer ones that do not say which part of an EPK lease's keys they had", func(t *testing.T) {
		t.Parallel()
		w, p, before := merged(t)
		for _, r := range before {
			w.put(w.leasesOf(p).DotNetPKOld(r.ID, testworld.At(0)))
		}
		f := testworld.At(session(w, merge(w)))
		f.Updated = f.Updated.Add(-time.Hour)
		w.epk(p, changefeed.Range{Max: "FF"}, f)
		check(t, w.estimate(p)[0], "-FF=0 ok")
	})
}

func TestOfAPKRangeAndAnEPKLeaseOfTheSameRangeTheNewerCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		age  time.Duration // of the EPK lease
		want string
	}{
		{"the EPK lease is newer", -time.Minute, "-FF=2 lagging"},
		{"the PK-range lease is newer", time.Hour, "0=6 lagging"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			w.Write("orders", 10)
			p := w.processor("orders")
			w.lease(p, "0", "4", "worker")
			f := testworld.At(8)
			f.Updated = f.Updated.Add(-c.age)
			w.epk(p, w.ranges("orders")[0].Span(), f)
			check(t, w.estimate(p)[0], c.want)
		})
	}
}

func TestAllVersionsAndDeletesAreReadInTheirMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}, VersionRetention: time.Hour})
	w.Write("orders", 5)
	p := w.processor("orders")
	f := testworld.At(5)
	f.Mode = leasefake.FullFidelity
	w.epk(p, changefeed.Range{Min: "", Max: "FF"}, f)
	check(t, w.estimate(p)[0], "-FF=0 ok")
	testworld.Must(w.t, w.Account.Delete(database, "orders", "doc-1", "doc-1"))
	testworld.Must(w.t, w.Account.Delete(database, "orders", "doc-2", "doc-2"))
	l := w.estimate(p)[0]
	check(t, l, "-FF=2 lagging")
	if l.Partitions[0].Age == nil {
		t.Error("the age of a delete is unknown")
	}
	f.Continuation = nil
	w.epk(p, changefeed.Range{Min: "", Max: "FF"}, f)
	p.StartFrom = changefeed.StartFrom{Beginning: true}
	check(t, w.estimate(p)[0], "-FF=~0 uncheckpointed")
}

func TestAnEPKLeaseThatNamesNoRangeIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	p := w.processor("orders")
	w.lease(p, "0", "0", "")
	broken := w.leasesOf(p).DotNetEPK(leasefake.Range{Max: "FF"}, testworld.At(1))
	broken["id"], broken["LeaseToken"] = w.leaseID(p, "broken"), "broken"
	delete(broken, "FeedRange")
	w.put(broken)
	l := w.estimate(p)[0]
	check(t, l, "0=0 ok, broken=? unknown")
	if !strings.Contains(l.Problem(), "..broken") {
		t.Errorf("%q does not name the lease", l.Problem())
	}
}

func TestRangesAreReadOnceForAllProcessorsAndThenRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Container("payments", 1)
	orders, payments := w.processor("orders"), w.processor("payments")
	w.lease(orders, "0", "0", "")
	w.epk(payments, changefeed.Range{Min: "", Max: "FF"}, testworld.At(0))
	before := w.Account.Requests().Requests[cosmosfake.ReadRanges]
	e := estimator.New(16, time.Now)
	again := payments
	again.ProcessorName = "again-"
	w.epk(again, changefeed.Range{Min: "", Max: "FF"}, testworld.At(0))
	for range 3 {
		lags := e.EstimateAll(t.Context(), []estimator.Processor{orders, payments, again})
		check(t, lags[0], "0=0 ok")
		check(t, lags[1], "-FF=0 ok")
	}
	if got := w.Account.Requests().Requests[cosmosfake.ReadRanges] - before; got != 4 {
		t.Errorf("%d range reads in three ticks, want 4: a page and its end, once for each container", got)
	}
}
