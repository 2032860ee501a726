package estimator_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// fourLeases is a processor with a lease for each of four ranges, nothing pending, and a clock.
func fourLeases(t *testing.T) (*world, *estimator.Estimator, *estimator.Processor, *testworld.Clock) {
	t.Helper()
	w := newWorld(t)
	w.Container("orders", 4)
	p := w.processor("orders")
	for i := range 4 {
		w.lease(p, fmt.Sprint(i), "0", "worker")
	}
	w.put(leasefake.Info(w.leasesOf(p).DotNetPrefix()))
	clock := testworld.NewClock(time.Now())
	return w, estimator.New(16, clock.Now), &p, clock
}

// wantHoles holds which ranges no lease covers; -1 = it is unknown.
func wantHoles(t *testing.T, l changefeed.ProcessorLag, n int) {
	t.Helper()
	if got := l.Coverage.Holes; (got == nil) != (n < 0) || len(got) != max(0, n) {
		t.Errorf("uncovered: %v, want %d", got, n)
	}
}

func TestALeaseThatIsLostLeavesItsKeysUncovered(t *testing.T) {
	t.Parallel()
	w, e, p, _ := fourLeases(t)
	l := w.next(e, p)
	wantHoles(t, l, 0)
	if got := *l.Lag(); got != 0 || l.Status() != changefeed.StatusOK {
		t.Errorf("lag %d, %s", got, l.Status())
	}
	w.remove(*p, "2")
	wantHoles(t, w.next(e, p), 0) // a query may have missed it
	l = w.next(e, p)
	if want := []changefeed.Range{w.ranges("orders")[2].Span()}; !slices.Equal(l.Coverage.Holes, want) {
		t.Errorf("uncovered: %v, want %v", l.Coverage.Holes, want)
	}
	if got := *l.Lag(); got != 1 || l.Status() != changefeed.StatusUncovered || len(l.Partitions) != 3 {
		t.Errorf("lag %d, %s, %d partitions; want 1 for all uncovered keys", got, l.Status(), len(l.Partitions))
	}
	w.remove(*p, "0")
	w.next(e, p)
	l = w.next(e, p)
	wantHoles(t, l, 2)
	if got := *l.Lag(); got != 1 {
		t.Errorf("lag %d, want 1 however many holes there are", got)
	}
	w.lease(*p, "0", "0", "worker")
	w.lease(*p, "2", "0", "worker")
	wantHoles(t, w.next(e, p), 0)
}

func TestAProcessorThatCreatesItsLeasesIsNoAlarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 4)
	p := w.processor("orders")
	e := estimator.New(16, time.Now)
	for i := range 4 {
		w.lease(p, fmt.Sprint(i), "0", "worker")
		for range 2 {
			if l := w.next(e, &p); len(l.Coverage.Holes) > 0 {
				t.Errorf("%d leases: uncovered: %v", i+1, l.Coverage.Holes)
			}
		}
	}
	w.remove(p, "3")
	w.put(map[string]any{"id": w.leasesOf(p).DotNetPrefix() + ".lock", "ttl": 30})
	wantHoles(t, w.next(e, &p), 0)
	wantHoles(t, w.next(e, &p), 0)
	wantHoles(t, w.next(e, &p), 1) // the third poll, without a marker
}

// TestTheRangesAreReadOnceInFiveMinutesAndWhenLeasesChange counts pages of pkranges: a read has two.
func TestTheRangesAreReadOnceInFiveMinutesAndWhenLeasesChange(t *testing.T) {
	t.Parallel()
	w, e, p, clock := fourLeases(t)
	read := func(after time.Duration, want int64) {
		t.Helper()
		clock.Advance(after)
		before := w.Account.Requests().Requests[cosmosfake.ReadRanges]
		w.next(e, p)
		if got := w.Account.Requests().Requests[cosmosfake.ReadRanges] - before; int64(got) != want {
			t.Errorf("%d requests, want %d", got, want)
		}
	}
	read(0, 2)
	read(time.Minute, 0)
	read(4*time.Minute, 2)
	read(time.Second, 0)
	w.remove(*p, "1")
	read(time.Second, 2)
	read(time.Second, 0)
}

func TestARangeReadThatFailsKeepsTheLastResult(t *testing.T) {
	t.Parallel()
	w, e, p, clock := fourLeases(t)
	var refuses atomic.Bool
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.ReadRanges || !refuses.Load() {
			return nil
		}
		return &cosmosfake.Answer{Status: 403}
	})
	refuses.Store(true)
	l := w.next(e, p)
	wantHoles(t, l, -1)
	if l.Status() != changefeed.StatusOK || *l.Lag() != 0 || l.Coverage.Failing.IsZero() {
		t.Errorf("%s, lag %d, failing since %s", l.Status(), *l.Lag(), l.Coverage.Failing)
	}
	refuses.Store(false)
	w.remove(*p, "3")
	clock.Advance(5 * time.Minute)
	w.next(e, p)
	wantHoles(t, w.next(e, p), 1)
	refuses.Store(true)
	began := clock.Now().Add(5 * time.Minute)
	for range 4 {
		clock.Advance(5 * time.Minute)
		l = w.next(e, p)
		wantHoles(t, l, 1)
		if !l.Complete() || !l.Coverage.Failing.Equal(began) {
			t.Errorf("complete: %t, failing since %s, want %s", l.Complete(), l.Coverage.Failing, began)
		}
	}
	refuses.Store(false)
	clock.Advance(5 * time.Minute)
	if l = w.next(e, p); !l.Coverage.Failing.IsZero() {
		t.Errorf("failing since %s after a read", l.Coverage.Failing)
	}
}

func TestALeaseQueryThatFailsKeepsWhatIsUncovered(t *testing.T) {
	t.Parallel()
	w, e, p, _ := fourLeases(t)
	w.remove(*p, "3")
	wantHoles(t, w.next(e, p), 1)
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.QueryDocuments {
			return nil
		}
		return &cosmosfake.Answer{Status: 403}
	})
	l := e.EstimateAll(t.Context(), []estimator.Processor{*p})[0]
	wantHoles(t, l, 1)
	if l.Lag() != nil || l.Status() != changefeed.StatusUnknown {
		t.Errorf("%s, lag %v: keys without a lease say nothing of the others", l.Status(), l.Lag())
	}
}
