package estimator_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// The cases of this file are what an account answers and what other scalers are known to get wrong
// (docs/lag.md), as far as no other test has it.

// one is a processor of one partition in a world of its own.
func one(t *testing.T) (*world, estimator.Processor) {
	t.Helper()
	w := newWorld(t)
	return w, w.one()
}

// one is a processor of one partition, two of whose three transactions are pending.
func (w *world) one() estimator.Processor {
	w.t.Helper()
	w.Container("orders", 1)
	w.Write("orders", 3)
	p := w.processor("orders")
	w.lease(p, "0", "1", "worker")
	return p
}

// TestWhatComesBeforeTheFeedsIsRetriedToo holds that one transient answer does not cost the poll.
func TestWhatComesBeforeTheFeedsIsRetriedToo(t *testing.T) {
	t.Parallel()
	for _, kind := range []cosmosfake.Kind{cosmosfake.ReadContainer, cosmosfake.ReadAccount, cosmosfake.QueryDocuments} {
		for _, c := range []struct {
			row    string
			answer cosmosfake.Answer
		}{
			{"429", cosmosfake.Answer{Status: 429, Substatus: 3200}},
			{"449", cosmosfake.Answer{Status: 449}},
			{"500", cosmosfake.Answer{Status: 500}},
			{"502", cosmosfake.Answer{Status: 502}},
			{"503", cosmosfake.Answer{Status: 503}},
			{"504", cosmosfake.Answer{Status: 504}},
			{"410 with 1008", cosmosfake.Answer{Status: 410, Substatus: 1008}},
			{"404 with 1002, a session that is not there yet", cosmosfake.Answer{Status: 404, Substatus: 1002}},
			{"a broken connection", cosmosfake.Answer{Break: true}},
		} {
			t.Run(fmt.Sprint(kind, ": ", c.row), func(t *testing.T) {
				t.Parallel()
				w, p := one(t)
				c.answer.Header = http.Header{"X-Ms-Retry-After-Ms": {"1"}}
				p.Account = testworld.Client(t, w.Account.Endpoint(), cosmosfake.WellKnownKey)
				p.LeaseAccount = p.Account
				w.Account.Control(cosmosfake.Times(3, kind, c.answer))
				check(t, w.estimate(p)[0], "0=2 lagging")
			})
		}
	}
}

// TestWhatIsNotFoundIsNotAlwaysTheLeaseContainer tells a 404 by its substatus: 1002 is
// ReadSessionNotAvailable.
func TestWhatIsNotFoundIsNotAlwaysTheLeaseContainer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row  string
		kind cosmosfake.Kind
		sub  int
		want string
	}{
		{"the lease container", cosmosfake.QueryDocuments, 0, "bootstrap"},
		{"its database", cosmosfake.QueryDocuments, 1003, "bootstrap"},
		{"404 with 1002 is a session that is not there yet", cosmosfake.QueryDocuments, 1002, "error"},
		{"the account's description is not needed", cosmosfake.ReadAccount, 0, "0=2 lagging"},
	} {
		t.Run(c.row, func(t *testing.T) {
			t.Parallel()
			w, p := one(t)
			p.LeaseAccount = testworld.Client(t, w.Account.Endpoint(), cosmosfake.WellKnownKey)
			w.Account.Control(cosmosfake.Times(1000, c.kind, cosmosfake.Answer{Status: 404, Substatus: c.sub, Header: http.Header{"X-Ms-Retry-After-Ms": {"1"}}}))
			l := w.estimate(p)[0]
			check(t, l, c.want)
			if c.sub == 1002 && strings.Contains(l.Problem(), "does not exist") {
				t.Errorf("%q, but the container exists", l.Problem())
			}
		})
	}
	t.Run("of a monitored container that does exist nobody says it does not", func(t *testing.T) {
		t.Parallel()
		w, p := one(t)
		w.Account.Control(answers("0", cosmosfake.Answer{Status: 404, Substatus: 1002, Header: http.Header{"X-Ms-Retry-After-Ms": {"1"}}}))
		l := w.estimate(p)[0]
		check(t, l, "0=? unknown")
		if strings.Contains(l.Problem(), "does not exist") {
			t.Errorf("%q", l.Problem())
		}
	})
}

// TestAPageOfLeasesIsNotAllOfThem has a lease container that goes away between two pages.
func TestAPageOfLeasesIsNotAllOfThem(t *testing.T) {
	t.Parallel()
	w, p := one(t)
	of := w.leasesOf(p)
	for i := range 1000 {
		w.put(of.DotNetPKOld(fmt.Sprint(i+1), leasefake.Fields{}))
	}
	var queries atomic.Int64
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.QueryDocuments && queries.Add(1) == 2 {
			return &cosmosfake.Answer{Status: 404}
		}
		return nil
	})
	check(t, w.estimate(p)[0], "bootstrap")
	if got := queries.Load(); got < 2 {
		t.Errorf("%d pages, want 2, and those of looking what else is there", got)
	}
}

// TestEveryRequestSaysWhatItSupports holds the header without which an account that merged
// partitions refuses a client.
func TestEveryRequestSaysWhatItSupports(t *testing.T) {
	t.Parallel()
	w, p := one(t)
	w.epk(p, changefeed.Range{Min: "", Max: "1F"}, testworld.At(1)) // has the ranges read
	var mu sync.Mutex
	silent := make(map[cosmosfake.Kind]bool)
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Header.Get("x-ms-cosmos-sdk-supportedcapabilities") == "" {
			mu.Lock()
			defer mu.Unlock()
			silent[r.Kind] = true
		}
		return nil
	})
	w.estimate(p)
	mu.Lock()
	defer mu.Unlock()
	if len(silent) > 0 {
		t.Errorf("no capabilities in %v", silent)
	}
}

// TestAnAccountThatDoesNotAnswerKeepsNoOtherFromBeingMeasured has every kind of request of one
// account unanswered beside another account.
func TestAnAccountThatDoesNotAnswerKeepsNoOtherFromBeingMeasured(t *testing.T) {
	t.Parallel()
	for _, kind := range []cosmosfake.Kind{cosmosfake.ReadContainer, cosmosfake.ReadAccount, cosmosfake.QueryDocuments, cosmosfake.ReadRanges, cosmosfake.ReadChangeFeed} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			t.Parallel()
			inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
				inMemory := testworld.New(t, testworld.Options{InMemory: true})
				other := &world{World: inMemory, t: t, account: inMemory.Client()}
				p, silent := w.one(), other.one()
				other.epk(silent, changefeed.Range{Min: "", Max: "1F"}, testworld.At(1)) // has the ranges read
				silent.Account = other.Client()
				silent.LeaseAccount = silent.Account
				other.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					if r.Kind == kind {
						return &cosmosfake.Answer{Delay: time.Hour}
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				lags := estimator.New(16, time.Now).EstimateAll(ctx, []estimator.Processor{silent, p})
				if ctx.Err() != nil {
					t.Error("the other account's time is used up")
				}
				check(t, lags[1], "0=2 lagging")
				if lags[0].Complete() {
					t.Errorf("complete, though nobody answered: %s", describe(lags[0]))
				}
			})
		})
	}
}

func TestARejectedRequestSaysWhichNameMayBeWrong(t *testing.T) {
	t.Parallel()
	w, p := one(t)
	w.Account.Control(answers("0", cosmosfake.Answer{Status: 400}))
	l := w.estimate(p)[0]
	check(t, l, "0=? unknown")
	if !strings.Contains(l.Problem(), "databaseId, containerId and leaseContainerId") {
		t.Errorf("%q does not say what to check", l.Problem())
	}
}

// TestAPatienceBeyondTheTickIsNotWaitedFor has a service that asks for an hour.
func TestAPatienceBeyondTheTickIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w, p := one(t)
	var reads atomic.Int64
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.ReadChangeFeed {
			return nil
		}
		reads.Add(1)
		return &cosmosfake.Answer{Status: 429, Substatus: 3200, Header: http.Header{"Retry-After": {"3600"}}}
	})
	check(t, w.estimate(p)[0], "0=? unknown")
	if got := reads.Load(); got != 1 {
		t.Errorf("%d reads, want 1", got)
	}
}

// TestASenselessSessionIsNoEndOfTheTick has session LSNs whose sums and products exceed 64 bits,
// for parts of one range and for the children of a split.
func TestASenselessSessionIsNoEndOfTheTick(t *testing.T) {
	t.Parallel()
	const session = 1 << 62
	senseless := cosmosfake.Answer{
		Status: 200, Body: `{"Documents":[{"id":"a","_lsn":1}]}`,
		Header: http.Header{"X-Ms-Session-Token": {fmt.Sprintf("0:-1#%d", int64(session))}},
	}
	t.Run("parts of one range have in all what the range has", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Container("orders", 1)
		p := w.processor("orders")
		bounds := []string{"", "10", "18", "20", "FF"}
		for i := range 4 {
			w.epk(p, changefeed.Range{Min: bounds[i], Max: bounds[i+1]}, testworld.At(1))
		}
		w.Account.Control(answers("0", senseless))
		l := w.estimate(p)[0]
		if lag := l.Lag(); lag == nil || *lag != session {
			t.Errorf("%s; want %d in all", describe(l), int64(session))
		}
	})
	t.Run("children of a split have no less than one of them", func(t *testing.T) {
		t.Parallel()
		w, p := one(t)
		children, err := w.Account.Split(database, "orders", "0")
		testworld.Must(w.t, err)
		for _, child := range children {
			w.Account.Control(answers(child, senseless))
		}
		l := w.estimate(p)[0]
		if lag := l.Lag(); lag == nil || *lag < session {
			t.Errorf("%s; want at least %d", describe(l), int64(session))
		}
	})
}
