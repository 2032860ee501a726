package estimator_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

const database = testworld.Database

// world is a stand-in account with a lease container.
type world struct {
	*testworld.World
	t       *testing.T
	account *cosmos.Account
}

func newWorld(t *testing.T) *world { return newWorldOf(t, cosmosfake.Options{}) }

func newWorldOf(t *testing.T, o cosmosfake.Options) *world {
	t.Helper()
	w := testworld.New(t, testworld.Options{Account: o})
	return &world{World: w, t: t, account: w.Client()}
}

// processor is a processor of a container, without a name, as Functions has it.
func (w *world) processor(container string) estimator.Processor {
	return estimator.Processor{
		Name:    container,
		Account: w.account, Container: cosmos.Container{Database: database, ID: container},
		LeaseAccount: w.account, LeaseContainer: cosmos.Container{Database: database, ID: testworld.Leases},
		AccountHost: "acct.documents.azure.com",
	}
}

// leasesOf writes the leases of a processor in every format.
func (w *world) leasesOf(p estimator.Processor) leasefake.Processor {
	w.t.Helper()
	return w.LeasesOf(p.ProcessorName, p.AccountHost, p.Container.ID)
}

// leaseID is the id of a lease of the .NET SDK.
func (w *world) leaseID(p estimator.Processor, token string) string {
	w.t.Helper()
	return w.leasesOf(p).DotNetPrefix() + ".." + token
}

// put puts a document into the lease container.
func (w *world) put(document map[string]any) {
	w.t.Helper()
	w.Put(testworld.Leases, document)
}

// lease writes a lease of the .NET SDK; an empty LSN stands for no continuation. A range that no
// longer exists covered the whole container.
func (w *world) lease(p estimator.Processor, rangeID, lsn, owner string) {
	w.t.Helper()
	f := leasefake.Fields{Owner: owner, Updated: time.Now()}
	if lsn != "" {
		f.Continuation = new(fmt.Sprintf("%q", lsn))
	}
	span := leasefake.Range{Max: "FF"}
	for _, r := range w.ranges(p.Container.ID) {
		if r.ID == rangeID {
			span = leasefake.Range(r.Span())
		}
	}
	w.put(w.leasesOf(p).DotNetPK(rangeID, span, f))
}

func (w *world) estimate(processors ...estimator.Processor) []changefeed.ProcessorLag {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), testworld.Deadline)
	defer cancel()
	return estimator.New(16, time.Now).EstimateAll(ctx, processors)
}

// next polls a processor once more, which must know everything, and remembers that for the poll after.
func (w *world) next(e *estimator.Estimator, p *estimator.Processor) changefeed.ProcessorLag {
	w.t.Helper()
	l := e.EstimateAll(w.t.Context(), []estimator.Processor{*p})[0]
	if !l.Complete() {
		w.t.Fatal(l.Problem())
	}
	p.Last = func() changefeed.ProcessorLag { return l }
	return l
}

// remove deletes the lease of a range.
func (w *world) remove(p estimator.Processor, token string) {
	w.t.Helper()
	id := w.leaseID(p, token)
	testworld.Must(w.t, w.Account.Delete(database, testworld.Leases, id, id))
}

// describe renders the partitions as "lease=lag status".
func describe(l changefeed.ProcessorLag) string {
	if l.Error != "" {
		return "error"
	}
	if l.Bootstrap {
		return "bootstrap"
	}
	var parts []string
	for _, p := range l.Partitions {
		lag := "?"
		if p.Lag != nil {
			lag = fmt.Sprint(*p.Lag)
		}
		if p.Approximate {
			lag = "~" + lag
		}
		parts = append(parts, fmt.Sprintf("%s=%s %s", p.Lease, lag, p.Status))
	}
	return strings.Join(parts, ", ")
}

func check(t *testing.T, l changefeed.ProcessorLag, want string) {
	t.Helper()
	if got := describe(l); got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, l.Problem())
	}
}

// answers makes the stand-in give an answer to every feed read of a range.
func answers(rangeID string, a cosmosfake.Answer) func(*cosmosfake.Request) *cosmosfake.Answer {
	return func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.ReadChangeFeed || r.RangeID != rangeID {
			return nil
		}
		return &a
	}
}

func TestAPartitionLagsByTheTransactionsBehindItsContinuation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	p := w.processor("orders")
	w.Write("orders", 10)
	w.lease(p, "0", "4", "worker")
	l := w.estimate(p)[0]
	check(t, l, "0=6 lagging")
	if got := l.Partitions[0]; got.Owner != "worker" || got.Age == nil || got.SessionLSN == nil || *got.SessionLSN != 10 || *got.CheckpointLSN != 4 {
		t.Errorf("got %+v", got)
	}
	if l.Requests != 5 || l.Charge <= 0 {
		t.Errorf("%d requests, %g RU; want the container, the leases, one page, and a page of the ranges with its end, at a charge", l.Requests, l.Charge)
	}
	w.lease(p, "0", "10", "worker")
	check(t, w.estimate(p)[0], "0=0 ok")
}

func TestProcessorsThatShareALeaseContainerAreNeverMixed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Container("payments", 1)
	w.Write("orders", 5)
	w.Write("payments", 7)
	plain, named := w.processor("orders"), w.processor("orders")
	named.ProcessorName = "projection"
	other := w.processor("payments")
	elsewhere := w.processor("payments")
	elsewhere.AccountHost = "other.documents.azure.com"
	w.lease(plain, "0", "1", "")
	w.lease(named, "0", "2", "")
	w.lease(other, "0", "3", "")
	lags := w.estimate(plain, named, other, elsewhere)
	check(t, lags[0], "0=4 lagging")
	check(t, lags[1], "0=3 lagging")
	check(t, lags[2], "0=4 lagging")
	check(t, lags[3], "bootstrap")
}

func TestLeasesOfEverySDK(t *testing.T) {
	t.Parallel()
	whole := leasefake.Range{Max: "FF"}
	untaken := leasefake.Fields{Continuation: leasefake.At(2), Created: time.Now()}
	for _, c := range []struct {
		rule  string
		lease func(of leasefake.Processor) map[string]any
		want  string
	}{
		{"V2", func(of leasefake.Processor) map[string]any { return of.V2("0", testworld.At(2)) }, "0=3 lagging"},
		{"V2, later versions", func(of leasefake.Processor) map[string]any { return of.V2Gremlin("0", testworld.At(2)) }, "0=3 lagging"},
		{".NET", func(of leasefake.Processor) map[string]any { return of.DotNetPK("0", whole, testworld.At(2)) }, "0=3 lagging"},
		{".NET, of before the range and the mode", func(of leasefake.Processor) map[string]any { return of.DotNetPKOld("0", testworld.At(2)) }, "0=3 lagging"},
		{".NET, taken over from V2", func(of leasefake.Processor) map[string]any { return of.DotNetPKFromV2("0", testworld.At(2)) }, "0=3 lagging"},
		{".NET, of a split, which nobody has taken yet", func(of leasefake.Processor) map[string]any { return of.DotNetPK("0", whole, untaken) }, "0=3 lagging"},
		{".NET, EPK", func(of leasefake.Processor) map[string]any { return of.DotNetEPK(whole, testworld.At(2)) }, "-FF=3 lagging"},
		{"Java, by names", func(of leasefake.Processor) map[string]any { return of.JavaPK("0", testworld.At(2)) }, "0=3 lagging"},
		{"Java, by names, of a split, which nobody has taken yet", func(of leasefake.Processor) map[string]any { return of.JavaPK("0", untaken) }, "0=3 lagging"},
		{"Java, EPK", func(of leasefake.Processor) map[string]any {
			return of.JavaEPK(whole, leasefake.FromNow(), testworld.At(2))
		}, "-FF=3 lagging"},
		{"Java, EPK, made of a PK-range lease", func(of leasefake.Processor) map[string]any {
			return of.JavaEPKMigrated(whole, leasefake.FromNow(), untaken)
		}, "-FF=3 lagging"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			w.Write("orders", 5)
			p := w.processor("orders")
			w.put(c.lease(w.leasesOf(p)))
			check(t, w.estimate(p)[0], c.want)
		})
	}
}

func TestEveryPageOfTheLeaseQueryIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	p := w.processor("orders")
	w.lease(p, "0", "1", "")
	w.Account.Control(cosmosfake.Once(cosmosfake.QueryDocuments, cosmosfake.Answer{EmptyPage: true}))
	check(t, w.estimate(p)[0], "0=0 ok")
}

func TestALeaseWithoutAContinuation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		from changefeed.StartFrom
		want string
	}{
		{"from now: its owner alone knows where", changefeed.StartFrom{}, "0=~0 uncheckpointed"},
		{"from the beginning: all there is", changefeed.StartFrom{Beginning: true}, "0=5 lagging"},
		{"from a time in the past: what was written since", changefeed.StartFrom{Time: time.Now().Add(-time.Hour)}, "0=5 lagging"},
		{"from a time to come: nothing yet", changefeed.StartFrom{Time: time.Now().Add(time.Hour)}, "0=0 ok"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			w.Write("orders", 5)
			p := w.processor("orders")
			p.StartFrom = c.from
			w.lease(p, "0", "", "")
			check(t, w.estimate(p)[0], c.want)
		})
	}
}

func TestWithoutAnyLeaseTheProcessorHasToRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	for _, c := range []struct {
		rule      string
		container cosmos.Container
	}{
		{"no lease", cosmos.Container{Database: database, ID: testworld.Leases}},
		{"no lease container", cosmos.Container{Database: database, ID: "nowhere"}},
		{"no lease database", cosmos.Container{Database: "nowhere", ID: testworld.Leases}},
	} {
		p := w.processor("orders")
		p.LeaseContainer = c.container
		if got := describe(w.estimate(p)[0]); got != "bootstrap" {
			t.Errorf("%s: %s", c.rule, got)
		}
	}
}

func TestAMalformedLeaseIsNamedAndUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	p := w.processor("orders")
	w.lease(p, "0", "1", "")
	broken := w.leasesOf(p).DotNetPKOld("1", testworld.At(0))
	delete(broken, "LeaseToken")
	w.put(broken)
	l := w.estimate(p)[0]
	check(t, l, "0=0 ok, 1=? unknown")
	if id := w.leaseID(p, "1"); !strings.Contains(l.Problem(), id) {
		t.Errorf("%q does not name the lease %s", l.Problem(), id)
	}
}

func TestTransientAnswersAreRetriedWithinTheTick(t *testing.T) {
	t.Parallel()
	soon := http.Header{"X-Ms-Retry-After-Ms": {"1"}}
	for _, c := range []struct {
		rule   string
		answer cosmosfake.Answer
	}{
		{"429", cosmosfake.Answer{Status: 429, Substatus: 3200, Header: soon}},
		{"449", cosmosfake.Answer{Status: 449, Header: soon}},
		{"500", cosmosfake.Answer{Status: 500, Header: soon}},
		{"502", cosmosfake.Answer{Status: 502, Header: soon}},
		{"503", cosmosfake.Answer{Status: 503, Header: soon}},
		{"504", cosmosfake.Answer{Status: 504, Header: soon}},
		{"410 without the substatus of a split", cosmosfake.Answer{Status: 410, Substatus: 1008, Header: soon}},
		{"a broken connection", cosmosfake.Answer{Break: true}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			w.Write("orders", 3)
			p := w.processor("orders")
			w.lease(p, "0", "1", "")
			w.Account.Control(cosmosfake.Times(2, cosmosfake.ReadChangeFeed, c.answer))
			check(t, w.estimate(p)[0], "0=2 lagging")
		})
	}
}

func TestAPartitionThatStaysUnavailableIsUnknownAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 2)
	p := w.processor("orders")
	w.lease(p, "0", "0", "")
	w.lease(p, "1", "0", "")
	w.Account.Control(answers("1", cosmosfake.Answer{Status: 503, Header: http.Header{"X-Ms-Retry-After-Ms": {"1"}}}))
	l := w.estimate(p)[0]
	check(t, l, "0=0 ok, 1=? unknown")
	if l.Complete() || !strings.Contains(l.Problem(), "(503)") {
		t.Errorf("complete %v, problem %q", l.Complete(), l.Problem())
	}
}

func TestRefusalsAreUnknownAtOnce(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			p := w.processor("orders")
			w.lease(p, "0", "1", "")
			var reads atomic.Int64
			w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind != cosmosfake.ReadChangeFeed {
					return nil
				}
				reads.Add(1)
				return &cosmosfake.Answer{Status: status}
			})
			check(t, w.estimate(p)[0], "0=? unknown")
			if got := reads.Load(); got != 1 {
				t.Errorf("%d reads, want 1", got)
			}
		})
	}
}

func TestABodyThatIsNoPageIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	p := w.processor("orders")
	w.lease(p, "0", "1", "")
	w.Account.Control(answers("0", cosmosfake.Answer{Status: 200, Body: `{"Documents":[{`}))
	check(t, w.estimate(p)[0], "0=? unknown")
}

func TestASplit(t *testing.T) {
	t.Parallel()
	split := func(t *testing.T) (*world, estimator.Processor, []string) {
		w := newWorld(t)
		w.Container("orders", 1)
		w.Write("orders", 10)
		p := w.processor("orders")
		w.lease(p, "0", "10", "worker")
		children, err := w.Account.Split(database, "orders", "0")
		testworld.Must(w.t, err)
		return w, p, children
	}
	t.Run("a lease whose range was split counts what the greatest child has, from its own position", func(t *testing.T) {
		t.Parallel()
		w, p, _ := split(t)
		w.Write("orders", 6)
		l := w.estimate(p)[0]
		check(t, l, "0=~4 splitting")
		if got := l.PartitionCount(); got != 2 {
			t.Errorf("%d partitions, want the two children", got)
		}
	})
	t.Run("and at least one, which wakes the processor", func(t *testing.T) {
		t.Parallel()
		w, p, _ := split(t)
		check(t, w.estimate(p)[0], "0=~1 splitting")
	})
	t.Run("leases that were replaced between the two reads count as they are", func(t *testing.T) {
		t.Parallel()
		w, p, children := split(t)
		w.Write("orders", 4)
		var queries atomic.Int64
		replaced := make(chan struct{})
		w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.QueryDocuments && queries.Add(1) == 2 {
				id := w.leaseID(p, "0")
				testworld.Must(w.t, w.Account.Delete(database, testworld.Leases, id, id))
				for _, child := range children {
					w.lease(p, child, "10", "")
				}
				close(replaced)
			}
			return nil
		})
		l := w.estimate(p)[0]
		<-replaced
		if got := *l.Lag(); got != 4 || len(l.Partitions) != 2 || l.Status() != changefeed.StatusLagging {
			t.Errorf("lag %d in %s", got, describe(l))
		}
	})
	t.Run("a parent lease whose children have leases counts nothing", func(t *testing.T) {
		t.Parallel()
		w, p, children := split(t)
		w.Write("orders", 4)
		for _, child := range children {
			w.lease(p, child, "10", "")
		}
		l := w.estimate(p)[0]
		if got := *l.Lag(); got != 4 || len(l.Partitions) != 2 {
			t.Errorf("lag %d in %s", got, describe(l))
		}
	})
	t.Run("a range that is said to be gone and is not is read again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Container("orders", 1)
		w.Write("orders", 3)
		p := w.processor("orders")
		w.lease(p, "0", "1", "")
		w.Account.Control(cosmosfake.Once(cosmosfake.ReadChangeFeed, cosmosfake.Answer{Status: 410, Substatus: 1002}))
		check(t, w.estimate(p)[0], "0=2 lagging")
	})
	t.Run("one that stays gone is at least one, and incomplete", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Container("orders", 1)
		p := w.processor("orders")
		w.lease(p, "0", "1", "")
		w.Account.Control(answers("0", cosmosfake.Answer{Status: 410, Substatus: 1007}))
		l := w.estimate(p)[0]
		check(t, l, "0=~1 splitting")
		if l.Complete() {
			t.Error("complete, though nothing of the range was read")
		}
	})
	t.Run("a child that is unavailable leaves the lease a lower bound, and incomplete", func(t *testing.T) {
		t.Parallel()
		w, p, children := split(t)
		w.Account.Control(answers(children[0], cosmosfake.Answer{Status: 403}))
		l := w.estimate(p)[0]
		check(t, l, "0=~1 splitting")
		if l.Complete() {
			t.Error("complete, though a child is unknown")
		}
	})
}

func TestWhatSeveralProcessorsNeedIsRequestedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 4)
	w.Write("orders", 40)
	var processors []estimator.Processor
	for i := range 5 {
		p := w.processor("orders")
		p.ProcessorName = fmt.Sprintf("projection-%d", i)
		for token := range 4 {
			w.lease(p, fmt.Sprint(token), "1", "")
		}
		processors = append(processors, p)
	}
	counts := make(map[cosmosfake.Kind]*atomic.Int64)
	for _, kind := range []cosmosfake.Kind{cosmosfake.ReadChangeFeed, cosmosfake.QueryDocuments, cosmosfake.ReadContainer} {
		counts[kind] = new(atomic.Int64)
	}
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if n := counts[r.Kind]; n != nil {
			n.Add(1)
		}
		return nil
	})
	e := estimator.New(16, time.Now)
	for range 2 {
		lags := e.EstimateAll(t.Context(), processors)
		for _, l := range lags[1:] {
			if *l.Lag() != *lags[0].Lag() || l.Requests != 0 || l.Charge != 0 {
				t.Errorf("lag %d at %d requests and %g RU; want that of the first, %d, for nothing", *l.Lag(), l.Requests, l.Charge, *lags[0].Lag())
			}
		}
	}
	for kind, want := range map[cosmosfake.Kind]int64{cosmosfake.ReadChangeFeed: 8, cosmosfake.QueryDocuments: 2, cosmosfake.ReadContainer: 1} {
		if got := counts[kind].Load(); got != want {
			t.Errorf("%d times %s in two ticks, want %d", got, kind, want)
		}
	}
}

func TestAFailureStaysWithItsProcessorAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	good := w.processor("orders")
	w.lease(good, "0", "0", "")

	badKey := w.processor("orders")
	badKey.Account = testworld.Client(t, w.Account.Endpoint(), "c2VjcmV0LXNlY3JldC1zZWNyZXQ=")
	unreachable := w.processor("orders")
	unreachable.LeaseAccount = testworld.Client(t, "http://127.0.0.1:1/", cosmosfake.WellKnownKey)
	unknownHost := w.processor("orders")
	unknownHost.Account = testworld.Client(t, "https://nowhere.invalid/", cosmosfake.WellKnownKey)
	missing := w.processor("missing")

	for i, c := range []struct {
		rule      string
		processor estimator.Processor
		says      []string
	}{
		{"a bad key", badKey, []string{"the key in setting COSMOS is refused (401)", "put a valid key into setting COSMOS"}},
		{"an unreachable account", unreachable, []string{"127.0.0.1 cannot be reached", "setting COSMOS"}},
		{"an unknown host", unknownHost, []string{"the host of account nowhere.invalid cannot be found", "setting COSMOS"}},
		{"a missing container", missing, []string{"there is no container missing in database shop", "databaseId and containerId"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			lags := w.estimate(good, c.processor)
			check(t, lags[0], "0=0 ok")
			for _, text := range c.says {
				if !strings.Contains(lags[1].Error, text) {
					t.Errorf("%q does not say %q", lags[1].Error, text)
				}
			}
			if strings.Contains(lags[1].Error, "c2VjcmV0") || strings.Contains(lags[1].Error, "\n") {
				t.Errorf("case %d: a key, or more than one line: %q", i, lags[1].Error)
			}
		})
	}
}

func TestTheDeadlineEndsTheTickWithWhatIsKnown(t *testing.T) {
	t.Parallel()
	inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
		w.Container("orders", 2)
		p := w.processor("orders")
		w.lease(p, "0", "0", "")
		w.lease(p, "1", "0", "")
		w.Account.Control(answers("1", cosmosfake.Answer{Delay: time.Hour}))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		l := estimator.New(16, time.Now).EstimateAll(ctx, []estimator.Processor{p})[0]
		check(t, l, "0=0 ok, 1=? unknown")
		if !strings.Contains(l.Problem(), "in time") {
			t.Errorf("%q does not say that it took too long", l.Problem())
		}
	})
}
