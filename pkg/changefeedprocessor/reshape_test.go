package changefeedprocessor_test

import (
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// watcher measures the processor of a shop as feedscale does.
type watcher struct {
	s         *shop
	estimator *estimator.Estimator
	processor estimator.Processor
}

func watch(s *shop) *watcher {
	s.t.Helper()
	account := s.Client()
	return &watcher{s, estimator.New(16, time.Now), estimator.Processor{
		Name:    "projection",
		Account: account, Container: cosmos.Container{Database: testworld.Database, ID: "orders"},
		LeaseAccount: account, LeaseContainer: cosmos.Container{Database: testworld.Database, ID: testworld.Leases},
		ProcessorName: "projection", AccountHost: "127.0.0.1", StartFrom: changefeed.StartFrom{Beginning: true},
	}}
}

// measure measures once; all must be known, but for a partition while it is split, of which no more is known
// than that something is pending.
func (w *watcher) measure() (lag int64, status changefeed.Status) {
	w.s.t.Helper()
	measured := w.estimator.EstimateAll(w.s.t.Context(), []estimator.Processor{w.processor})[0]
	unknown := func(p changefeed.Partition) bool {
		return !p.Known() && (p.Status != changefeed.StatusSplitting || p.Lag == nil)
	}
	if measured.Error != "" || slices.ContainsFunc(measured.Partitions, unknown) {
		w.s.t.Fatalf("not all is known: %s", measured.Problem())
	}
	return *measured.Lag(), measured.Status()
}

// caughtUp reports whether nothing is pending.
func (w *watcher) caughtUp() bool {
	lag, status := w.measure()
	return lag == 0 && status == changefeed.StatusOK
}

// span is the keys of a partition key range.
func (w *watcher) span(id string) changefeed.Range {
	w.s.t.Helper()
	ranges, _, err := w.processor.Account.Ranges(w.s.t.Context(), w.processor.Container)
	if err != nil {
		w.s.t.Fatal(err)
	}
	found, ok := ranges.Find(id)
	if !ok {
		w.s.t.Fatalf("there is no partition key range %s in %v", id, ranges)
	}
	return found.Span()
}

// bounds are the tokens of EPK leases of ranges, in order.
func bounds(spans ...[2]string) (tokens []string) {
	for _, s := range spans {
		tokens = append(tokens, s[0]+"-"+s[1])
	}
	slices.Sort(tokens)
	return tokens
}

// span is what a PK-range lease says its range was.
func (s *shop) span(token string) [2]string {
	s.t.Helper()
	feedRange := s.leases()[token].FeedRange.Range
	return [2]string{feedRange.Min, feedRange.Max}
}

// stopAll stops hosts and waits for them.
func (s *shop) stopAll(hosts ...*running) {
	s.t.Helper()
	for _, h := range hosts {
		h.stop()
		s.end(h)
	}
}

func (s *shop) split(id string) []string {
	s.t.Helper()
	children, err := s.Account.Split(testworld.Database, "orders", id)
	if err != nil {
		s.t.Fatal(err)
	}
	return children
}

func (s *shop) merge(a, b string) string {
	s.t.Helper()
	child, err := s.Account.Merge(testworld.Database, "orders", a, b)
	if err != nil {
		s.t.Fatal(err)
	}
	return child
}

func TestAcrossASplitAndAMergeNothingIsLostOrRepeatedAndTheLagIsRight(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	w := watch(s)
	first := s.host("host-1", nil)
	s.write(60)
	testworld.Eventually(t, "all is processed before the split", w.caughtUp)
	s.stopAll(first)
	s.write(25)
	if lag, status := w.measure(); lag != 25 || status != changefeed.StatusLagging {
		t.Errorf("before the split: got lag %d, %s, want exactly the 25 changes that are pending", lag, status)
	}

	second := s.host("host-2", nil)
	testworld.Eventually(t, "all is processed again", w.caughtUp)
	finish, err := s.Account.StartSplit(testworld.Database, "orders", "0")
	if err != nil {
		t.Fatal(err)
	}
	s.write(40)
	if lag, status := w.measure(); lag < 1 || status != changefeed.StatusSplitting {
		t.Errorf("during the split: got lag %d, %s, want at least 1 and splitting", lag, status)
	}
	if got := s.tokens(); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("during the split: got leases %q, want those of before", got)
	}
	children := finish()
	s.write(40)
	testworld.Eventually(t, "all is processed after the split", w.caughtUp)
	if got, want := s.tokens(), []string{"1", "2", "3"}; !slices.Equal(got, want) {
		t.Errorf("after the split: got leases %q, want %q", got, want)
	}
	s.stopAll(second)
	s.write(30)
	if lag, status := w.measure(); lag != 30 || status != changefeed.StatusLagging {
		t.Errorf("after the split: got lag %d, %s, want exactly the 30 changes that are pending", lag, status)
	}

	merged := bounds(s.span(children[0]), s.span(children[1]))
	s.merge(children[0], children[1])
	s.write(30)
	if lag, status := w.measure(); lag < 60 || status != changefeed.StatusSplitting {
		t.Errorf("after the merge: got lag %d, %s, want no less than the 60 changes that are pending and splitting", lag, status)
	}
	third := s.host("host-3", nil)
	s.write(30)
	testworld.Eventually(t, "all is processed after the merge", w.caughtUp)
	if got, want := s.tokens(), append(merged, "1"); !sameTokens(got, want) {
		t.Errorf("after the merge: got leases %q, want %q", got, want)
	}
	s.write(30)
	testworld.Eventually(t, "what came in the merged range is processed", w.caughtUp)
	s.stopAll(third)
	s.checkOnce()
}

func sameTokens(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func TestWhatComesWhileAPartitionIsSplitAndMergedIsHandledOnceAndInOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3)
	w := watch(s)
	first := s.host("host-1", nil)
	testworld.Eventually(t, "the leases are there", func() bool { return s.owners()["host-1"] == 3 })
	whole := "1"
	for range 3 {
		s.write(40)
		finish, err := s.Account.StartSplit(testworld.Database, "orders", whole)
		if err != nil {
			t.Fatal(err)
		}
		s.write(40)
		children := finish()
		s.write(40)
		handled := s.count()
		testworld.Eventually(t, "something of the children is handled", func() bool { return s.count() > handled || s.handledAll() })
		whole = s.merge(children[0], children[1])
		s.write(40)
	}
	testworld.Eventually(t, "all is processed", w.caughtUp)
	s.stopAll(first)
	s.checkOnce()
}

func TestALeaseOfAMergedRangeIsReplacedByAnEPKLeaseOfItsOldKeys(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	s.write(20)
	first := s.host("host-1", nil)
	testworld.Eventually(t, "all is handled", s.handledAll)
	s.stopAll(first)
	before := s.leases()["0"]
	span := s.span("0")
	tokens := bounds(span, s.span("1"))
	s.merge("0", "1")

	second := s.host("host-2", func(o *changefeedprocessor.Options) { o.RenewInterval = 50 * time.Second })
	testworld.Eventually(t, "the leases are replaced and owned", func() bool { return sameTokens(s.tokens(), tokens) && s.owners()["host-2"] == 2 })
	got := s.documents()[strings.TrimSuffix(before.ID, "0")+"-"+span[1]]
	timestamp, _ := got["timestamp"].(string)
	if timestamp == "" {
		t.Error("the lease has no timestamp")
	}
	want := map[string]any{
		"id": strings.TrimSuffix(before.ID, "0") + "-" + span[1], "version": 1.0, "LeaseToken": "-" + span[1],
		"FeedRange": map[string]any{"Range": map[string]any{"min": "", "max": span[1]}}, "Owner": "host-2",
		"ContinuationToken": *before.Continuation, "properties": map[string]any{}, "timestamp": timestamp, "Mode": "Incremental Feed",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got lease %v, want %v", got, want)
	}
	s.stopAll(second)
}

func TestAnEPKLeaseIsReadInItsPartOfARange(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	first := s.host("host-1", nil)
	testworld.Eventually(t, "the leases are there", func() bool { return s.owners()["host-1"] == 2 })
	low, high := s.span("0"), s.span("1")
	var wrong atomic.Int64
	s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.ReadChangeFeed || r.RangeID != "2" {
			return nil
		}
		start, end := r.Header.Get("x-ms-start-epk"), r.Header.Get("x-ms-end-epk")
		if key := r.Header.Get("x-ms-read-key-type"); key != "EffectivePartitionKeyRange" || [2]string{start, end} != low && [2]string{start, end} != high {
			wrong.Add(1)
		}
		return nil
	})
	s.merge("0", "1")
	s.write(50)
	testworld.Eventually(t, "all is handled", s.handledAll)
	s.stopAll(first)
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d reads of the merged range were not of one lease's keys", n)
	}
	s.checkOnce()
}

func TestAnEPKLease(t *testing.T) {
	t.Parallel()
	t.Run("whose keys are one range again stays", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, 2)
		first := s.host("host-1", nil)
		testworld.Eventually(t, "the leases are there", func() bool { return s.owners()["host-1"] == 2 })
		tokens := bounds(s.span("0"), s.span("1"))
		whole := s.merge("0", "1")
		testworld.Eventually(t, "EPK leases came", func() bool { return sameTokens(s.tokens(), tokens) })
		s.split(whole)
		s.write(50)
		testworld.Eventually(t, "all is handled", s.handledAll)
		s.stopAll(first)
		if got := s.tokens(); !sameTokens(got, tokens) {
			t.Errorf("got leases %q, want still %q", got, tokens)
		}
		s.checkOnce()
	})
	t.Run("that a split cuts is replaced by a lease for each of its own parts, which continues where it was", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, 3)
		w := watch(s)
		host := s.host("host-1", nil)
		testworld.Eventually(t, "the leases are there", func() bool { return s.owners()["host-1"] == 3 })
		low, center, high := s.span("0"), s.span("1"), s.span("2")
		whole := s.merge(s.merge("0", "1"), "2")
		s.write(30)
		testworld.Eventually(t, "EPK leases came", func() bool { return sameTokens(s.tokens(), bounds(low, center, high)) && w.caughtUp() })
		s.stopAll(host)
		continuation := *s.leases()[center[0]+"-"+center[1]].Continuation

		middle := w.span(s.split(whole)[0]).Max
		parts := bounds([2]string{center[0], middle}, [2]string{middle, center[1]})
		host = s.host("host-2", func(o *changefeedprocessor.Options) { o.PollInterval = time.Minute })
		testworld.Eventually(t, "the lease is cut", func() bool {
			return sameTokens(s.tokens(), append(bounds(low, high), parts...)) && s.owners()["host-2"] == 4
		})
		for _, token := range parts {
			if got := s.leases()[token].Continuation; got == nil || *got != continuation {
				t.Errorf("lease %s: got continuation %v, want %s", token, got, continuation)
			}
		}
		s.stopAll(host)
		s.write(30)
		if lag, status := w.measure(); lag < 1 || status != changefeed.StatusLagging {
			t.Errorf("got lag %d, %s, want some of what is pending in the parts, and lagging", lag, status)
		}
		host = s.host("host-3", nil)
		testworld.Eventually(t, "all is processed", w.caughtUp)
		s.stopAll(host)
		s.checkOnce()
	})
}

// TestALeaseWhoseDeletionFailsIsLeftOver has the account refuse deletions for a while.
func TestALeaseWhoseDeletionFailsIsLeftOver(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(20)
		s.host("host-1", nil)
		pass(time.Second)
		end := s.LoseDeletes(testworld.Leases)
		s.split("0")
		s.write(20)
		pass(time.Minute)
		s.checkOnce()
		leases := s.leases()
		if got := s.tokens(); !slices.Equal(got, []string{"0", "1", "2"}) {
			t.Fatalf("got leases %q, want the parent beside its children", got)
		}
		if parent := leases["0"]; !parent.OwnedBy("") || *parent.Continuation != `"20"` {
			t.Errorf("got lease %+v, want it given back, at its last position", parent)
		}
		end()
		pass(13 * time.Second)
		if got := s.tokens(); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("got leases %q, want the parent gone with the next look for leases", got)
		}
	})
}

// TestTheChildrenOfASplitGoOnWhereTheParentWasRead holds it of a parent that has no continuation
// yet: the position in the memory of its host counts.
func TestTheChildrenOfASplitGoOnWhereTheParentWasRead(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(3)
		s.host("host-1", fromNow)
		pass(time.Second)
		s.split("0")
		s.write(40)
		pass(10 * time.Second)
		if n := s.count(); n != 40 {
			t.Errorf("%d changes were handled, want the 40 since the start", n)
		}
		for token, l := range s.leases() {
			if l.Continuation == nil || token == "0" {
				t.Errorf("got lease %+v, want one of a child, with a position", l)
			}
		}
	})
}

// TestALeaseOfBeforeLeasesSaidTheirRangeSaysItOnceItIsTaken has it split, for which the range is
// needed.
func TestALeaseOfBeforeLeasesSaidTheirRangeSaysItOnceItIsTaken(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.create()
		s.Put(testworld.Leases, s.LeasesOf("projection", "127.0.0.1", "orders").DotNetPKOld("0", leasefake.Fields{Continuation: leasefake.At(0)}))
		s.host("host-2", nil)
		pass(time.Second)
		if got := s.leases()["0"].FeedRange; got == nil || got.Range != (leasefake.Range{Max: "FF"}) {
			t.Errorf("got range %+v, want all keys", got)
		}
		s.split("0")
		s.write(10)
		pass(10 * time.Second)
		s.checkOnce()
		if got := s.tokens(); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("got leases %q, want those of the children", got)
		}
	})
}
