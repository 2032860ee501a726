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

// TestWhereNoLeaseIsTheProcessorsTheNearestIsNamed has the mistakes that look like a processor that
// never ran.
func TestWhereNoLeaseIsTheProcessorsTheNearestIsNamed(t *testing.T) {
	t.Parallel()
	const right = "order-projection"
	for _, c := range []struct {
		rule    string
		mistake func(p *estimator.Processor)
		says    string // "" = nothing
	}{
		{"a processorName that is misspelt", func(p *estimator.Processor) { p.ProcessorName = "orders-projection" }, "did you mean processorName order-projection?"},
		{"no processorName", func(p *estimator.Processor) { p.ProcessorName = "" }, "did you mean processorName order-projection?"},
		{"misspelt, and another entry has the right one", func(p *estimator.Processor) { p.ProcessorName, p.NamesInUse = "orders-projection", []string{right} }, ""},
		{"another container of the database", func(p *estimator.Processor) { p.Container.ID = "payments" }, `it holds leases whose ids begin with "order-projectionacct.documents.azure.com_`},
		{"another host", func(p *estimator.Processor) { p.AccountHost = "other.documents.azure.com" }, `, and this processor's begin with "order-projectionother.documents.azure.com_`},
		{"a lease container of other processors alone", func(p *estimator.Processor) { p.LeaseContainer.ID = "others" }, `it holds leases whose ids begin with "maileracct.documents.azure.com_`},
		{"a lease container that is empty", func(p *estimator.Processor) { p.LeaseContainer.ID = "empty" }, ""},
		{"a lease container that does not exist", func(p *estimator.Processor) { p.LeaseContainer.ID = "nowhere" }, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, id := range []string{"orders", "payments", "others", "empty"} {
				w.Container(id, 1)
			}
			p := w.processor("orders")
			p.ProcessorName = right
			w.lease(p, "0", "0", "worker")
			mailer := w.processor("payments")
			mailer.ProcessorName = "mailer"
			testworld.Must(t, w.Account.Upsert(database, "others", w.leasesOf(mailer).DotNetPKOld("0", testworld.At(0))))
			check(t, w.estimate(p)[0], "0=0 ok")
			c.mistake(&p)
			l := w.estimate(p)[0]
			check(t, l, "bootstrap")
			if !strings.Contains(l.Nearest, c.says) || (l.Nearest == "") != (c.says == "") {
				t.Errorf("nearest %q, want %q", l.Nearest, c.says)
			}
			if c.says != "" && !strings.Contains(l.Nearest, "lease container "+p.LeaseContainer.String()) {
				t.Errorf("nearest %q does not say where", l.Nearest)
			}
		})
	}
	t.Run("one, and the leases have none", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Container("orders", 1)
		p := w.processor("orders")
		p.ProcessorName = ""
		w.lease(p, "0", "0", "worker")
		p.ProcessorName = right
		if l := w.estimate(p)[0]; !l.Bootstrap || !strings.HasSuffix(l.Nearest, "holds no lease of this processor: leave processorName out, since its leases have none") {
			t.Errorf("%s, nearest %q", describe(l), l.Nearest)
		}
	})
	t.Run("misspelt, and written by Java, whose ids have names", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Container("orders", 1)
		p := w.processor("orders")
		p.ProcessorName = right
		w.put(w.leasesOf(p).JavaPK("0", testworld.At(0)))
		p.ProcessorName = "projection"
		if l := w.estimate(p)[0]; !l.Bootstrap || !strings.Contains(l.Nearest, "did you mean processorName order-projection?") {
			t.Errorf("%s, nearest %q", describe(l), l.Nearest)
		}
	})
	t.Run("what cannot be read is not named, and no failure of the poll", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Container("orders", 1)
		p := w.processor("orders")
		queries := 0
		w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.QueryDocuments {
				if queries++; queries > 1 {
					return &cosmosfake.Answer{Status: 403}
				}
			}
			return nil
		})
		if l := w.estimate(p)[0]; !l.Bootstrap || l.Nearest != "" || l.Error != "" {
			t.Errorf("%s, nearest %q, error %q", describe(l), l.Nearest, l.Error)
		}
	})
	t.Run("it is looked up once in a while, and not with each poll", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Container("orders", 1)
		p := w.processor("orders")
		clock := testworld.NewClock(time.Now())
		e := estimator.New(16, clock.Now)
		poll := func() int {
			before := w.Account.Requests().Requests[cosmosfake.QueryDocuments]
			e.EstimateAll(t.Context(), []estimator.Processor{p})
			return w.Account.Requests().Requests[cosmosfake.QueryDocuments] - before
		}
		if a, b := poll(), poll(); a != 2 || b != 1 {
			t.Errorf("%d and %d queries, want 2 and then 1", a, b)
		}
		clock.Advance(time.Hour)
		if n := poll(); n != 2 {
			t.Errorf("%d queries after an hour, want 2", n)
		}
	})
}

// TestLeasesOfTwoFamiliesUnderOnePrefix has a Functions trigger without a name and a Java processor
// without a prefix on one container: which leases belong to the processor must not change from poll to
// poll.
func TestLeasesOfTwoFamiliesUnderOnePrefix(t *testing.T) {
	t.Parallel()
	const live, dead = time.Second, time.Hour
	for _, c := range []struct {
		rule         string
		dotnet, java time.Duration // since when its owner has not renewed the lease; 0 = it has none
		format       changefeed.Family
		want         string // .NET is 100 behind, Java 0
	}{
		{"both live: unknown, since nothing tells which", live, live, changefeed.FamilyAny, "error"},
		{"both live, and leaseFormat is dotnet", live, live, changefeed.FamilyDotNet, "0=100 lagging"},
		{"both live, and leaseFormat is java", live, live, changefeed.FamilyJava, "0=0 ok"},
		{"the .NET one is dead", dead, live, changefeed.FamilyAny, "0=0 ok"},
		{"the Java one is dead", live, dead, changefeed.FamilyAny, "0=100 lagging"},
		{"the .NET one is dead, and leaseFormat is dotnet", dead, live, changefeed.FamilyDotNet, "0=100 lagging"},
		{"only .NET, and leaseFormat is java", live, 0, changefeed.FamilyJava, "bootstrap"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			w.Write("orders", 100)
			p := w.processor("orders")
			p.LeaseFormat = c.format
			of := w.leasesOf(p)
			e := estimator.New(16, time.Now)
			for poll := range 6 {
				// They renew their leases in turn.
				renewed := func(age time.Duration, turn int) time.Time {
					if age == live && poll%2 == turn {
						age += 17 * time.Second
					}
					return time.Now().Add(-age)
				}
				if c.dotnet > 0 {
					w.put(of.DotNetPKOld("0", leasefake.Fields{Owner: "trigger", Continuation: leasefake.At(0), Updated: renewed(c.dotnet, 0)}))
				}
				if c.java > 0 {
					w.put(of.JavaPK("0", leasefake.Fields{Owner: "java", Continuation: leasefake.At(100), Updated: renewed(c.java, 1)}))
				}
				l := e.EstimateAll(t.Context(), []estimator.Processor{p})[0]
				check(t, l, c.want)
				if c.want == "error" && !strings.Contains(l.Error, "leaseFormat") {
					t.Errorf("%q does not say what to set", l.Error)
				}
			}
		})
	}
}

// TestTheLeasesOfAContainerWhoseNameGoesOnAreAnothers has containers orders and orders..eu, whose leases
// Java names after them.
func TestTheLeasesOfAContainerWhoseNameGoesOnAreAnothers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Container("orders..eu", 1)
	w.Write("orders", 5)
	w.Write("orders..eu", 9)
	orders, eu := w.processor("orders"), w.processor("orders..eu")
	w.put(w.leasesOf(eu).JavaPK("0", testworld.At(0)))
	lags := w.estimate(orders, eu)
	check(t, lags[0], "bootstrap")
	check(t, lags[1], "0=9 lagging")
	w.put(w.leasesOf(orders).JavaPK("0", testworld.At(2)))
	lags = w.estimate(orders, eu)
	check(t, lags[0], "0=3 lagging")
	check(t, lags[1], "0=9 lagging")
}

// TestARecreatedContainerIsFoundByItsRangesAlone has 410s that do not name the container, as those of
// the service's gateway may not: the ranges that the leases name are none of the container's.
func TestARecreatedContainerIsFoundByItsRangesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", 10)
	children, err := w.Account.Split(database, "orders", "0")
	testworld.Must(t, err)
	p := w.processor("orders")
	for _, id := range children {
		w.lease(p, id, "10", "worker")
	}
	e := estimator.New(16, time.Now)
	estimate := func() changefeed.ProcessorLag {
		l := e.EstimateAll(t.Context(), []estimator.Processor{p})[0]
		p.Last = func() changefeed.ProcessorLag { return l }
		return l
	}
	if l := estimate(); !l.Complete() || *l.Lag() != 0 {
		t.Fatal(describe(l))
	}
	w.deleteContainer("orders")
	w.Container("orders", 1)
	w.Write("orders", 5)
	gone := cosmosfake.RangeGone()
	for _, id := range children {
		w.Account.Control(answers(id, gone))
	}
	for range 3 {
		check(t, estimate(), "bootstrap")
	}
	w.lease(p, "0", "2", "worker")
	for range 3 {
		check(t, estimate(), "0=3 lagging")
	}
}

// TestASplitIsNotTakenForAContainerThatWasRecreated has ranges that are gone and have children.
func TestASplitIsNotTakenForAContainerThatWasRecreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", 10)
	p := w.processor("orders")
	w.lease(p, "0", "4", "worker")
	_, err := w.Account.Split(database, "orders", "0")
	testworld.Must(t, err)
	w.Account.Control(answers("0", cosmosfake.RangeGone()))
	e := estimator.New(16, time.Now)
	before := w.Account.Requests().Requests[cosmosfake.ReadContainer]
	for range 3 {
		if l := e.EstimateAll(t.Context(), []estimator.Processor{p})[0]; l.Status() != changefeed.StatusSplitting {
			t.Errorf("%s", describe(l))
		}
	}
	if got := w.Account.Requests().Requests[cosmosfake.ReadContainer] - before; got != 1 {
		t.Errorf("the container was read %d times, want once", got)
	}
}

// TestASessionLSNBehindTheItemIsApproximate is an answer of a replica that lags behind the one that
// delivered the page.
func TestASessionLSNBehindTheItemIsApproximate(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{
		"0:-1#5":  "0=~1 lagging",
		"0:-1#9":  "0=~1 lagging",
		"0:-1#10": "0=1 lagging",
		"0:-1#12": "0=3 lagging",
	} {
		w, p := one(t)
		w.Account.Control(answers("0", cosmosfake.Answer{
			Status: 200, Body: `{"Documents":[{"id":"a","_lsn":10}],"_count":1}`, Header: map[string][]string{"X-Ms-Session-Token": {token}},
		}))
		check(t, w.estimate(p)[0], want)
	}
}

// TestWhileALeaseIsNotReplacedTheGreatestChildCounts has a lease behind, whose range is split: each child begins
// with the LSNs of the parent.
func TestWhileALeaseIsNotReplacedTheGreatestChildCounts(t *testing.T) {
	t.Parallel()
	const written, checkpoint = 500, 17
	w := newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", written)
	p := w.processor("orders")
	w.lease(p, "0", "17", "worker")
	e := estimator.New(16, time.Now)
	estimate := func() int64 {
		t.Helper()
		l := e.EstimateAll(t.Context(), []estimator.Processor{p})[0]
		if !l.Complete() {
			t.Fatal(l.Problem())
		}
		p.Last = func() changefeed.ProcessorLag { return l }
		return *l.Lag()
	}
	if got := estimate(); got != written-checkpoint {
		t.Fatalf("lag %d before the split", got)
	}
	children, err := w.Account.Split(database, "orders", "0")
	testworld.Must(t, err)
	for range 3 {
		if got := estimate(); got != written-checkpoint {
			t.Errorf("lag %d, want what was pending before, once: %d", got, written-checkpoint)
		}
	}
	w.Write("orders", 60)
	for range 3 {
		if got := estimate(); got < written-checkpoint+30 || got > written-checkpoint+60 {
			t.Errorf("lag %d, want that of the child that has the most", got)
		}
	}
	_, err = w.Account.Split(database, "orders", children[0])
	testworld.Must(t, err)
	w.Write("orders", 60)
	if got := estimate(); got < written-checkpoint+40 || got > written-checkpoint+120 {
		t.Errorf("lag %d where a child was split in turn, want that of the range that has the most", got)
	}
}

// TestARangeThatWasSplitIsReadThoughNothingHasMoved has changes that are dear to read, so that positions
// which stand still are not read again: after a split, a child has the newest LSN of its parent.
func TestARangeThatWasSplitIsReadThoughNothingHasMoved(t *testing.T) {
	t.Parallel()
	const written, checkpoint = 100, 17
	for _, c := range []struct {
		rule     string
		replaced bool // by another processor, whose leases have stood at the same position for three polls
	}{
		{"by the processor whose lease was not replaced", false},
		{"by another one, whose leases were", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			for i := range written {
				w.Put("orders", map[string]any{"id": fmt.Sprint(i), "text": strings.Repeat("x", 10<<10)})
			}
			p, other := w.processor("orders"), w.processor("orders")
			other.ProcessorName = "other-"
			w.lease(p, "0", "17", "worker")
			w.lease(other, "0", "17", "worker")
			e := estimator.New(16, time.Now)
			processors := []estimator.Processor{p, other}
			poll := func(first int) {
				t.Helper()
				for i, l := range e.EstimateAll(t.Context(), processors[first:]) {
					if got := *l.Lag(); !l.Complete() || got < written-checkpoint {
						t.Errorf("processor %d: %d, complete %t, want at least what is pending: %d", first+i, got, l.Complete(), written-checkpoint)
					}
					processors[first+i].Last = func() changefeed.ProcessorLag { return l }
				}
			}
			for range 3 {
				poll(0)
			}
			children, err := w.Account.Split(database, "orders", "0")
			testworld.Must(t, err)
			if c.replaced {
				id := w.leaseID(other, "0")
				testworld.Must(t, w.Account.Delete(database, testworld.Leases, id, id))
				for _, child := range children {
					w.lease(other, child, "17", "worker")
				}
				for range 3 {
					poll(1)
				}
				processors[0].Last = nil // its state was lost
			}
			for range 3 {
				poll(0)
			}
		})
	}
}

// TestALeaseThatReplacedAnotherIsApproximateUntilItsFirstCheckpoint goes on where a processor has replaced
// the lease: each child's lease begins at the position of the parent's, and counts as read.
func TestALeaseThatReplacedAnotherIsApproximateUntilItsFirstCheckpoint(t *testing.T) {
	t.Parallel()
	const written, checkpoint = 500, 17
	for _, seenSplitting := range []bool{true, false} {
		t.Run(fmt.Sprint("a poll has seen the split: ", seenSplitting), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			w.Write("orders", written)
			p := w.processor("orders")
			w.lease(p, "0", "17", "worker")
			e := estimator.New(16, time.Now)
			estimate := func() changefeed.ProcessorLag { return w.next(e, &p) }
			estimate()
			children, err := w.Account.Split(database, "orders", "0")
			testworld.Must(t, err)
			if seenSplitting {
				estimate()
			}
			w.remove(p, "0")
			for _, child := range children {
				w.lease(p, child, "17", "worker")
			}
			for range 3 { // the later ones find nothing moved
				for _, part := range estimate().Partitions {
					if got := *part.Lag; !part.Approximate || !part.Inherited || part.Status != changefeed.StatusLagging || got < written-checkpoint-10 || got > written-checkpoint {
						t.Errorf("%d of %+v, want about %d, marked", got, part, written-checkpoint)
					}
				}
			}
			w.lease(p, children[0], "400", "worker")
			l := estimate()
			if moved := l.Partitions[0]; moved.Approximate || moved.Inherited {
				t.Errorf("%+v is marked after its first checkpoint", moved)
			}
			if other := l.Partitions[1]; !other.Approximate || !other.Inherited {
				t.Errorf("%+v is not marked", other)
			}
		})
	}
}

// TestLeasesOnHalvesOfARangeThatIsSplitBetweenThemAreApproximate has leases as .NET leaves them after a
// merge: once the range is split at their border, each covers a whole range, and begins with its LSNs.
func TestLeasesOnHalvesOfARangeThatIsSplitBetweenThemAreApproximate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 2)
	ranges := w.ranges("orders")
	merged, err := w.Account.Merge(database, "orders", ranges[0].ID, ranges[1].ID)
	testworld.Must(t, err)
	w.Write("orders", 400)
	p := w.processor("orders")
	for _, r := range ranges {
		w.put(w.leasesOf(p).DotNetEPK(leasefake.Range(r.Span()), leasefake.Fields{Owner: "worker", Continuation: new(`"7"`), Updated: time.Now()}))
	}
	e := estimator.New(16, time.Now)
	for _, part := range w.next(e, &p).Partitions {
		if !part.Part || part.Inherited {
			t.Errorf("%+v is no part of a range", part)
		}
	}
	_, err = w.Account.Split(database, "orders", merged)
	testworld.Must(t, err)
	if got := w.ranges("orders"); got[0].Max != ranges[0].Max {
		t.Fatalf("the range was split at %s, not between the leases at %s", got[0].Max, ranges[0].Max)
	}
	for _, part := range w.next(e, &p).Partitions {
		if !part.Approximate || !part.Inherited || part.Part {
			t.Errorf("%+v is not marked", part)
		}
	}
}

// TestTheSettingsOfAnAccountAreInEveryRead has what spares the application: eventual consistency, since
// a stronger one may cost twice as much, a low priority, and a throughput bucket.
func TestTheSettingsOfAnAccountAreInEveryRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, consistency string
		options           cosmos.Options
		want              map[string]string
	}{
		{"eventual consistency alone where nothing is set", "Session", cosmos.Options{}, map[string]string{"x-ms-consistency-level": "Eventual", "x-ms-cosmos-priority-level": "", "x-ms-cosmos-throughput-bucket": ""}},
		{"eventual consistency where the account is strong", "Strong", cosmos.Options{}, map[string]string{"x-ms-consistency-level": "Eventual"}},
		{"eventual consistency where staleness is bounded", "BoundedStaleness", cosmos.Options{}, map[string]string{"x-ms-consistency-level": "Eventual"}},
		{"a low priority", "Session", cosmos.Options{Priority: "Low"}, map[string]string{"x-ms-cosmos-priority-level": "Low"}},
		{"a throughput bucket", "Session", cosmos.Options{Bucket: 3}, map[string]string{"x-ms-cosmos-throughput-bucket": "3"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, cosmosfake.Options{Consistency: c.consistency}, func(t *testing.T, w *world) {
				w.Container("orders", 1)
				w.Write("orders", 3)
				p := w.processor("orders")
				w.lease(p, "0", "1", "worker")
				p.Account = w.accountWith(c.options)
				p.LeaseAccount = p.Account
				w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					for name, want := range c.want {
						if got := r.Header.Get(name); got != want && r.Kind != cosmosfake.ReadAccount {
							t.Errorf("%s: %s is %q, want %q", r.Kind, name, got, want)
						}
					}
					return nil
				})
				check(t, w.poll(estimator.New(16, time.Now), p)[0], "0=2 lagging")
			})
		})
	}
}
