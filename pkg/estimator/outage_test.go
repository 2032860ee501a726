package estimator_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// inBubble runs a test on a world in memory, in which no time really passes.
func inBubble(t *testing.T, account cosmosfake.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{World: testworld.New(t, testworld.Options{InMemory: true, Account: account}), t: t}
		w.account = w.Client()
		test(t, w)
	})
}

// accountWith is a connection to the account with options of its own.
func (w *world) accountWith(o cosmos.Options) *cosmos.Account {
	w.t.Helper()
	o.Endpoint, o.Setting, o.Key = w.Account.Endpoint(), "COSMOS", cosmosfake.WellKnownKey
	o.Concurrency, o.Transport = max(16, o.Concurrency), &http.Client{Transport: w.Transport}
	a, err := cosmos.NewAccount(o)
	testworld.Must(w.t, err)
	return a
}

// poll measures processors as a tick of 15 s does, which ends in time for the next one. What the tick
// before measured is in their Last, and what this one does is there afterwards.
func (w *world) poll(e *estimator.Estimator, processors ...estimator.Processor) []changefeed.ProcessorLag {
	w.t.Helper()
	const interval = 15 * time.Second
	next := time.Now().Add(interval)
	ctx, cancel := context.WithDeadline(w.t.Context(), next)
	defer cancel()
	lags := make([]changefeed.ProcessorLag, len(processors))
	e.Estimate(ctx, time.Now().Add(interval*4/5), processors, func(i int, lag changefeed.ProcessorLag) { lags[i] = lag })
	for i := range processors {
		processors[i].Last = func() changefeed.ProcessorLag { return lags[i] }
	}
	if time.Now().After(next) {
		w.t.Errorf("the poll ended %s too late", time.Since(next))
	}
	time.Sleep(time.Until(next))
	return lags
}

// TestAnOutageOfTheWriteRegionLeavesNothingUnknown has leases of both kinds, whose processor is measured
// poll after poll while the write region is out of order and the other one is not.
func TestAnOutageOfTheWriteRegionLeavesNothingUnknown(t *testing.T) {
	t.Parallel()
	for rule, state := range map[string]cosmosfake.RegionState{"503": cosmosfake.Unavailable, "refused": cosmosfake.Refusing, "hanging": cosmosfake.Hanging} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, cosmosfake.Options{Regions: []string{"West Europe", "North Europe"}}, func(t *testing.T, w *world) {
				w.Container("orders", 1)
				w.Container("payments", 1)
				w.Write("orders", 3)
				w.Write("payments", 3)
				processors := []estimator.Processor{w.processor("orders"), w.processor("payments")}
				w.lease(processors[0], "0", "1", "worker")
				w.epk(processors[1], changefeed.Range{Min: "", Max: "FF"}, testworld.At(1))
				e := estimator.New(16, time.Now)
				w.poll(e, processors...)
				testworld.Must(t, w.Account.SetRegion(0, state))
				for range 10 {
					lags := w.poll(e, processors...)
					check(t, lags[0], "0=2 lagging")
					check(t, lags[1], "-FF=2 lagging")
				}
			})
		})
	}
}

// TestAFailedLeaseQueryForgetsNeitherRIDsNorRanges counts what is read again once the leases can be
// read: nothing that was known.
func TestAFailedLeaseQueryForgetsNeitherRIDsNorRanges(t *testing.T) {
	t.Parallel()
	const containers = 20
	for rule, answer := range map[string]cosmosfake.Answer{
		"503":           {Status: 503},
		"429":           {Status: 429, Substatus: 3200},
		"403":           {Status: 403},
		"broken off":    {Break: true},
		"an odd answer": {Status: 200, Body: "{}"},
		"hanging":       {Delay: time.Hour},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
				var processors []estimator.Processor
				for i := range containers {
					id := fmt.Sprint("orders-", i)
					w.Container(id, 1)
					processors = append(processors, w.processor(id))
					w.epk(processors[i], changefeed.Range{Min: "", Max: "FF"}, testworld.At(0))
				}
				e := estimator.New(16, time.Now)
				w.poll(e, processors...)
				known := w.Account.Requests().Requests
				heal := w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					if r.Kind == cosmosfake.QueryDocuments {
						return &answer
					}
					return nil
				})
				for range 3 {
					for _, l := range w.poll(e, processors...) {
						if l.Error == "" {
							t.Errorf("%s, though no lease could be read", describe(l))
						}
					}
				}
				heal()
				for i, l := range w.poll(e, processors...) {
					check(t, l, "-FF=0 ok")
					if t.Failed() {
						t.Fatalf("processor %d", i)
					}
				}
				now := w.Account.Requests().Requests
				for _, kind := range []cosmosfake.Kind{cosmosfake.ReadContainer, cosmosfake.ReadRanges} {
					if now[kind] != known[kind] {
						t.Errorf("%s: %d times more, for %d containers that were known", kind, now[kind]-known[kind], containers)
					}
				}
			})
		})
	}
}

// TestABreakerThatIsOpenSaysSo has an account that does not answer, poll after poll: after some calls each
// container is asked once in a while, and each processor says why.
func TestABreakerThatIsOpenSaysSo(t *testing.T) {
	t.Parallel()
	inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
		const containers = 6
		var processors []estimator.Processor
		for i := range containers {
			id := fmt.Sprint("orders-", i)
			w.Container(id, 1)
			p := w.processor(id)
			w.lease(p, "0", "0", "worker")
			processors = append(processors, p)
		}
		e := estimator.New(16, time.Now)
		w.poll(e, processors...)
		known := w.accountWith(cosmos.Options{}) // asks for RIDs anew, six at once
		for i := range processors {
			processors[i].Account = known
		}
		testworld.Must(t, w.Account.SetRegion(0, cosmosfake.Unavailable))
		for range 5 {
			w.poll(e, processors...)
		}
		before := w.asked()
		for range 10 {
			for _, l := range w.poll(e, processors...) {
				if l.Error == "" {
					t.Errorf("%s, though nobody answers", describe(l))
				}
			}
		}
		if asked := w.asked() - before; asked > 10*(containers+1) { // each container and the account's regions, every poll
			t.Errorf("%d requests in 10 polls of an account that does not answer", asked)
		}
		w.poll(e, processors...)
		e.EstimateAll(t.Context(), processors) // the probes
		before = w.asked()
		for _, l := range e.EstimateAll(t.Context(), processors) {
			if !strings.Contains(l.Error, "circuit breaker is open") {
				t.Errorf("%q does not say that the circuit breaker is open", l.Error)
			}
		}
		if asked := w.asked() - before; asked > 0 {
			t.Errorf("%d requests though every breaker is open", asked)
		}
		testworld.Must(t, w.Account.SetRegion(0, cosmosfake.Online))
		time.Sleep(15 * time.Second)
		w.poll(e, processors...)
		for _, l := range w.poll(e, processors...) {
			if !l.Complete() {
				t.Errorf("the account answers again: %s", l.Problem())
			}
		}
	})
}

// asked returns how many requests the account has had.
func (w *world) asked() (n int) {
	for _, of := range w.Account.Requests().Requests {
		n += of
	}
	return n
}
