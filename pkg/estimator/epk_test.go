package estimator_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	emulator "github.com/feedscale/feedscale/pkg/emulator/cosmos"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// epk is an EPK lease of the .NET SDK; further fields replace its own.
func (w *world) epk(p estimator.Processor, span changefeed.Range, continuation string, fields map[string]any) {
	w.t.Helper()
	token := span.Min + "-" + span.Max
	lease := map[string]any{
		"id": w.leaseID(p, token), "version": 1, "LeaseToken": token,
		"FeedRange": map[string]any{"Range": map[string]any{"min": span.Min, "max": span.Max}},
		"Owner":     "worker", "ContinuationToken": fmt.Sprintf("%q", continuation), "properties": map[string]any{},
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano), "Mode": "Incremental Feed",
	}
	for name, value := range fields {
		lease[name] = value
	}
	w.must(w.server.Upsert(database, "leases", lease))
}

func (w *world) leaseID(p estimator.Processor, token string) string {
	w.t.Helper()
	rid := w.rid(p.Container.ID)
	databaseRID, err := changefeed.DatabaseRID(rid)
	w.must(err)
	return fmt.Sprintf("%s%s_%s_%s..%s", p.ProcessorName, strings.ToLower(p.AccountHost), databaseRID, rid, token)
}

func (w *world) ranges(container string) changefeed.Ranges {
	w.t.Helper()
	ranges, _, err := w.account.Ranges(w.t.Context(), cosmos.Container{Database: database, ID: container})
	w.must(err)
	return ranges
}

// java wraps a state as the Java SDK does.
func java(state string) map[string]any {
	return map[string]any{"ContinuationToken": base64.URLEncoding.EncodeToString([]byte(state))}
}

func TestAnEPKLeaseOnOneWholeRangeIsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.container("orders", 1)
	w.write("orders", 10)
	p := w.processor("orders")
	whole := w.ranges("orders")[0].Span()
	for _, c := range []struct {
		rule, want string
		fields     map[string]any
	}{
		{".NET", "-FF=6 lagging", nil},
		{"Java", "-FF=4 lagging", java(`{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"},"Continuation":{"V":1,"Continuation":[{"token":"\"6\"","range":{"min":"","max":"FF"}}],"Range":{"min":"","max":"FF"}}}`)},
		{"Java from the beginning, which wins over the configuration", "-FF=10 lagging", java(`{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"BEGINNING"},"Range":{"min":"","max":"FF"}}`)},
		{"Java from now", "-FF=1 uncheckpointed", java(`{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"},"Range":{"min":"","max":"FF"}}`)},
		{"Java from a time in the past", "-FF=10 lagging", java(fmt.Sprintf(`{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"POINT_IN_TIME","PointInTimeMs":%d},"Range":{"min":"","max":"FF"}}`, time.Now().Add(-time.Hour).UnixMilli()))},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w.epk(p, whole, "4", c.fields)
			l := w.estimate(p)[0]
			check(t, l, c.want)
			if r := l.Partitions[0].Range; r == nil || !r.Equal(whole) {
				t.Errorf("range %v", r)
			}
		})
	}
}

func TestAnEPKLeaseWiderThanARangeIsTheSumOfTheRangesAndWakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.container("orders", 1)
	w.write("orders", 4)
	p := w.processor("orders")
	w.epk(p, w.ranges("orders")[0].Span(), "4", nil)
	e := estimator.New(16, time.Now) // remembers the ranges of before
	check(t, e.Estimate(t.Context(), []estimator.Processor{p})[0], "-FF=0 ok")
	_, err := w.server.Split(database, "orders", "0")
	w.must(err)
	check(t, e.Estimate(t.Context(), []estimator.Processor{p})[0], "-FF=1 splitting")
	w.write("orders", 6)
	l := e.Estimate(t.Context(), []estimator.Processor{p})[0]
	check(t, l, "-FF=6 splitting")
	if l.PartitionCount() != 2 {
		t.Errorf("%d partitions, want 2", l.PartitionCount())
	}
}

func TestAfterAMerge(t *testing.T) {
	t.Parallel()
	merged := func(t *testing.T) (w *world, p estimator.Processor, before changefeed.Ranges) {
		w = newWorld(t)
		w.container("orders", 2)
		w.write("orders", 20)
		p = w.processor("orders")
		before = w.ranges("orders")
		return w, p, before
	}
	merge := func(w *world) string {
		child, err := w.server.Merge(database, "orders", "0", "1")
		w.must(err)
		return child
	}
	lsn := func(w *world, child string) string {
		answer, _, err := w.account.FeedPage(w.t.Context(), cosmos.Container{Database: database, ID: "orders"}, cosmos.Position{Range: child})
		w.must(err)
		n, _ := changefeed.SessionLSN(answer.SessionToken)
		return fmt.Sprint(n)
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
		at := lsn(w, child)
		for _, r := range before {
			w.epk(p, r.Span(), at, nil)
		}
		check(t, w.estimate(p)[0], fmt.Sprintf("-%s=0 ok, %s-FF=0 ok", before[0].Max, before[0].Max))
		w.write("orders", 10)
		l := w.estimate(p)[0]
		if got := *l.Lag(); got < 2 || got > 10 || !l.Partitions[0].Approximate || !l.Partitions[1].Approximate {
			t.Errorf("%s, want at most the 10 transactions of the range in all", describe(l))
		}
		after := lsn(w, child)
		for _, r := range before {
			w.epk(p, r.Span(), after, nil)
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
		at := lsn(w, merge(w))
		for _, r := range before {
			w.epk(p, r.Span(), at, nil)
		}
		check(t, w.estimate(p)[0], fmt.Sprintf("-%s=0 ok, %s-FF=0 ok", before[0].Max, before[0].Max))
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
			w.container("orders", 1)
			w.write("orders", 10)
			p := w.processor("orders")
			w.lease(p, "0", "4", "worker")
			w.epk(p, w.ranges("orders")[0].Span(), "8", map[string]any{"timestamp": time.Now().Add(-c.age).UTC().Format(time.RFC3339Nano)})
			check(t, w.estimate(p)[0], c.want)
		})
	}
}

func TestAllVersionsAndDeletesAreReadInTheirMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.server.CreateContainer(database, emulator.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}, VersionRetention: time.Hour}))
	w.write("orders", 5)
	p := w.processor("orders")
	fields := map[string]any{"Mode": "Full-Fidelity Feed"}
	w.epk(p, changefeed.Range{Min: "", Max: "FF"}, "5", fields)
	check(t, w.estimate(p)[0], "-FF=0 ok")
	w.must(w.server.Delete(database, "orders", "doc-1", "doc-1"))
	w.must(w.server.Delete(database, "orders", "doc-2", "doc-2"))
	l := w.estimate(p)[0]
	check(t, l, "-FF=2 lagging")
	if l.Partitions[0].Age == nil {
		t.Error("the age of a delete is unknown")
	}
	fields["ContinuationToken"] = nil
	w.epk(p, changefeed.Range{Min: "", Max: "FF"}, "", fields)
	p.StartFrom = changefeed.StartFrom{Beginning: true}
	check(t, w.estimate(p)[0], "-FF=1 uncheckpointed")
}

func TestAnEPKLeaseThatNamesNoRangeIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.container("orders", 1)
	p := w.processor("orders")
	w.lease(p, "0", "0", "")
	w.must(w.server.Upsert(database, "leases", map[string]any{"id": w.leaseID(p, "broken"), "version": 1, "LeaseToken": "broken", "ContinuationToken": `"1"`}))
	l := w.estimate(p)[0]
	check(t, l, "0=0 ok, broken=? unknown")
	if !strings.Contains(l.Problem(), "..broken") {
		t.Errorf("%q does not name the lease", l.Problem())
	}
}

func TestRangesAreReadOnlyWhereTheyAreNeededAndThenRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.container("orders", 1)
	w.container("payments", 1)
	orders, payments := w.processor("orders"), w.processor("payments")
	w.lease(orders, "0", "0", "")
	w.epk(payments, changefeed.Range{Min: "", Max: "FF"}, "0", nil)
	before := w.server.Requests().Requests[emulator.ReadRanges]
	e := estimator.New(16, time.Now)
	for range 3 {
		lags := e.Estimate(t.Context(), []estimator.Processor{orders, payments})
		check(t, lags[0], "0=0 ok")
		check(t, lags[1], "-FF=0 ok")
	}
	if got := w.server.Requests().Requests[emulator.ReadRanges] - before; got != 2 {
		t.Errorf("%d range reads in three ticks, want 2: a page and its end, once", got)
	}
}
