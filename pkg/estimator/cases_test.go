package estimator_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// The cases of this file are accounts and lease containers as they are found in production; each is
// named after its rule.

func TestOfLeasesWithOneIDUnderSeveralPartitionKeysTheNewestCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", 10)
	w.Create(cosmosfake.ContainerSpec{ID: "gremlin", PartitionKey: []string{"/partitionKey"}, Partitions: 2})
	p := w.processor("orders")
	p.LeaseContainer.ID = "gremlin"
	for i, age := range []time.Duration{time.Hour, time.Second, time.Minute} {
		testworld.Must(w.t, w.Account.Upsert(database, "gremlin", w.leasesOf(p).DotNetPKOld("0", leasefake.Fields{
			Continuation: leasefake.At(int64(i)), Updated: time.Now().Add(-age), PartitionKey: fmt.Sprintf("5d0c5f0e-%d", i),
		})))
	}
	check(t, w.estimate(p)[0], "0=9 lagging")
}

func TestTheMarkerAndTheLockAreNoLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	p := w.processor("orders")
	of := w.leasesOf(p)
	for _, prefix := range []string{of.DotNetPrefix(), of.JavaPKPrefix()} {
		w.put(leasefake.Info(prefix))
		w.put(leasefake.Lock(prefix, 30*time.Second))
	}
	check(t, w.estimate(p)[0], "bootstrap")
	w.lease(p, "0", "1", "")
	check(t, w.estimate(p)[0], "0=0 ok")
}

func TestTheHostInTheIDsIsTheApplicationsOwn(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"localhost", "acct-westeurope.documents.azure.com", "acct.documents.azure.cn", "Acct.Documents.Azure.com"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			w.Write("orders", 3)
			p := w.processor("orders")
			w.lease(p, "0", "3", "") // of an application with another host
			p.AccountHost = host
			p.ProcessorName = "proc"
			check(t, w.estimate(p)[0], "bootstrap")
			w.lease(p, "0", "1", "")
			check(t, w.estimate(p)[0], "0=2 lagging")
		})
	}
}

func TestTheLeaseContainerMayBeInAnotherAccount(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", 3)
	p := w.processor("orders")
	w.lease(p, "0", "3", "") // in an account where nobody looks
	p.LeaseAccount = other.account
	check(t, w.estimate(p)[0], "bootstrap")
	other.put(w.leasesOf(p).DotNetPKOld("0", testworld.At(1)))
	check(t, w.estimate(p)[0], "0=2 lagging")
}

// TestHierarchicalKeys has bounds that differ from the range's in trailing zeros and mean the same:
// the lease has all of the range, and is exact.
func TestHierarchicalKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/tenant", "/user"}, Partitions: 2})
	p := w.processor("orders")
	for i, r := range w.ranges("orders") {
		span := r.Span()
		if i == 0 {
			span.Max += "00000000"
		} else {
			span.Min += "00000000"
		}
		w.epk(p, span, testworld.At(0))
	}
	for i := range 30 {
		testworld.Must(w.t, w.Account.Upsert(database, "orders", map[string]any{"id": fmt.Sprint(i), "tenant": fmt.Sprint(i % 7), "user": fmt.Sprint(i)}))
	}
	l := w.estimate(p)[0]
	if *l.Lag() != 30 || l.Partitions[0].Approximate || l.Partitions[1].Approximate || l.Status() != changefeed.StatusLagging {
		t.Errorf("%s, want 30 in all, exactly", describe(l))
	}
}

// TestExpiredDocuments are changes in the feed of all versions and deletes, and none in the
// incremental feed.
func TestExpiredDocuments(t *testing.T) {
	t.Parallel()
	clock := testworld.NewClock(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	w := newWorldOf(t, cosmosfake.Options{Now: clock.Now, VersionRetention: time.Hour})
	w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}, DefaultTTL: 60})
	w.Write("orders", 4)
	incremental, versions := w.processor("orders"), w.processor("orders")
	versions.ProcessorName = "versions"
	w.lease(incremental, "0", "4", "")
	w.epk(versions, changefeed.Range{Min: "", Max: "FF"}, leasefake.Fields{Continuation: leasefake.At(4), Mode: leasefake.FullFidelity})
	lags := w.estimate(incremental, versions)
	check(t, lags[0], "0=0 ok")
	check(t, lags[1], "-FF=0 ok")

	clock.Advance(2 * time.Minute)
	lags = w.estimate(incremental, versions)
	check(t, lags[0], "0=0 ok")
	check(t, lags[1], "-FF=4 lagging")
}

// TestALeaseNarrowerThanItsRangeIsReadByItsKeys has the headers of that read.
func TestALeaseNarrowerThanItsRangeIsReadByItsKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	p := w.processor("orders")
	w.epk(p, changefeed.Range{Min: "", Max: "1FFF"}, testworld.At(0))
	w.epk(p, changefeed.Range{Min: "1FFF", Max: "FF"}, testworld.At(0))
	var mu sync.Mutex
	seen := make(map[string]bool)
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReadChangeFeed {
			mu.Lock()
			defer mu.Unlock()
			_, begins := r.Header["X-Ms-Start-Epk"]
			seen[fmt.Sprint(r.RangeID, " ", r.Header.Get("x-ms-read-key-type"), " ", begins, r.Header.Get("x-ms-start-epk"), "-", r.Header.Get("x-ms-end-epk"))] = true
		}
		return nil
	})
	check(t, w.estimate(p)[0], "-1FFF=0 ok, 1FFF-FF=0 ok")
	for _, want := range []string{"0 EffectivePartitionKeyRange true-1FFF", "0 EffectivePartitionKeyRange true1FFF-FF"} {
		if !seen[want] {
			t.Errorf("no read of %q in %v", want, seen)
		}
	}
}

// TestOfAParentAndWhatReplacesItNothingCountsTwice has what a processor leaves behind that ended in
// the midst of replacing leases.
func TestOfAParentAndWhatReplacesItNothingCountsTwice(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, partitions int) (*world, estimator.Processor) {
		w := newWorld(t)
		w.Container("orders", partitions)
		return w, w.processor("orders")
	}
	split := func(w *world, id string) []string {
		children, err := w.Account.Split(database, "orders", id)
		testworld.Must(w.t, err)
		return children
	}
	want := func(t *testing.T, w *world, p estimator.Processor, lag int64, tokens ...string) {
		t.Helper()
		l := w.estimate(p)[0]
		var counted []string
		for _, partition := range l.Partitions {
			counted = append(counted, partition.Lease)
		}
		if *l.Lag() != lag || strings.Join(counted, " ") != strings.Join(tokens, " ") {
			t.Errorf("%s; want %d in %q", describe(l), lag, tokens)
		}
	}
	t.Run("an EPK lease beside those of all children", func(t *testing.T) {
		t.Parallel()
		w, p := start(t, 1)
		split(w, "0")
		w.Write("orders", 12)
		w.epk(p, changefeed.Range{Min: "", Max: "FF"}, testworld.At(0))
		var children []string
		for _, r := range w.ranges("orders") {
			w.epk(p, r.Span(), testworld.At(0))
			children = append(children, r.Min+"-"+r.Max)
		}
		want(t, w, p, 12, children...)
	})
	t.Run("a PK-range lease beside those of a child and of grandchildren", func(t *testing.T) {
		t.Parallel()
		w, p := start(t, 1)
		children := split(w, "0")
		grandchildren := split(w, children[0])
		w.Write("orders", 12)
		for _, id := range append([]string{"0", children[1]}, grandchildren...) {
			w.lease(p, id, "0", "")
		}
		want(t, w, p, 12, children[1], grandchildren[0], grandchildren[1])
	})
	t.Run("a PK-range lease beside that of a child that was split in turn", func(t *testing.T) {
		t.Parallel()
		w, p := start(t, 1)
		children := split(w, "0")
		split(w, children[0])
		w.Write("orders", 12)
		for _, id := range append([]string{"0"}, children...) {
			w.put(w.leasesOf(p).DotNetPKOld(id, testworld.At(0)))
		}
		want(t, w, p, 10, children...) // of the first child, the greater part
	})
	t.Run("PK-range leases of ranges that were merged and split again have their own keys alone", func(t *testing.T) {
		t.Parallel()
		w, p := start(t, 2)
		for _, r := range w.ranges("orders") {
			w.lease(p, r.ID, "99", "")
		}
		merged, err := w.Account.Merge(database, "orders", "0", "1")
		testworld.Must(w.t, err)
		split(w, merged)
		l := w.estimate(p)[0]
		if l.PartitionCount() != 2 {
			t.Errorf("%d partitions, want 2: %s", l.PartitionCount(), describe(l))
		}
	})
}

// TestAnEPKLeaseWhoseRangeIsSaidToBeGoneAndIsNotIsReadAgain is the rule that PK-range leases have.
func TestAnEPKLeaseWhoseRangeIsSaidToBeGoneAndIsNotIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", 3)
	p := w.processor("orders")
	w.epk(p, changefeed.Range{Min: "", Max: "FF"}, testworld.At(1))
	w.Account.Control(cosmosfake.Once(cosmosfake.ReadChangeFeed, cosmosfake.Answer{Status: 410, Substatus: 1002}))
	check(t, w.estimate(p)[0], "-FF=2 lagging")
}
