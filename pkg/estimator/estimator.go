// Package estimator measures the lag of many change feed processors at once: one query per lease
// container, one page of the change feed per lease. What two processors both need is read once.
//
// It plans the requests of a tick and joins their answers. What an answer means is decided by
// package changefeed, what a request looks like by package cosmos, and what follows from the lag by
// package scaling. The rules are in docs/lag.md. Start with Estimate, which calls the steps in
// their order.
//
// The package is internal to the program: its API may change in any release.
package estimator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// Processor is one change feed processor to measure.
type Processor struct {
	Name           string          // as configured; used in messages alone
	Account        *cosmos.Account // of the monitored container
	Container      cosmos.Container
	LeaseAccount   *cosmos.Account
	LeaseContainer cosmos.Container
	ProcessorName  string               // as the application gives it to the SDK, which puts it into lease ids; may be empty
	AccountHost    string               // host of the endpoint that the application uses, which is in lease ids
	StartFrom      changefeed.StartFrom // where a lease without a continuation is read from
}

// Estimator measures processors. From one tick to the next it remembers the RIDs of containers and,
// of containers whose processors keep EPK leases or had a split, the partition key ranges; nothing
// else. It is safe for concurrent use.
type Estimator struct {
	concurrency int
	now         func() time.Time

	mu     sync.Mutex
	rids   map[source]string
	ranges map[source]changefeed.Ranges
}

// New makes an Estimator that has at most concurrency requests in flight at once at each account;
// it must be at least 1. now is the clock that ProcessorLag.Time is taken from.
func New(concurrency int, now func() time.Time) *Estimator {
	return &Estimator{concurrency: concurrency, now: now, rids: make(map[source]string), ranges: make(map[source]changefeed.Ranges)}
}

// source is a container in an account.
type source struct {
	account   *cosmos.Account
	container cosmos.Container
}

// Estimate measures the processors; the result has one ProcessorLag for each, in their order. It
// returns no error: what could not be measured is unknown in the result, with the reason, and never
// keeps the others from being measured. When ctx ends, it returns with what is known by then.
func (e *Estimator) Estimate(ctx context.Context, processors []Processor) []changefeed.ProcessorLag {
	t := &tick{Estimator: e, reads: make(map[read]*page), measured: make([]*measured, len(processors))}
	for i, p := range processors {
		t.measured[i] = &measured{processor: p}
	}
	t.identify(ctx, t.measured)
	t.queryLeases(ctx, t.measured)
	t.readFeeds(ctx, t.measured)
	t.followRecreation(ctx)
	t.followSplits(ctx)

	now := e.now()
	lags := make([]changefeed.ProcessorLag, len(processors))
	for i, m := range t.measured {
		lags[i] = m.lag(now)
	}
	return lags
}

// tick is the state of one call of Estimate.
type tick struct {
	*Estimator
	measured []*measured
	reads    map[read]*page // by position: two processors at the same position share a page
	planned  []*page        // to be read by the next readPlanned
}

// The shares of the time left that a step may take, from 0 to 1. They leave time for the next step
// where an account does not answer in this one.
const (
	preparationShare = 0.5  // RIDs, leases and partition key ranges, each
	feedsShare       = 0.75 // pages of the change feed
)

// withShare returns a context that ends after a share of the time that ctx has left.
func withShare(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(share*float64(time.Until(deadline))))
}

// identify finds the lease id prefixes of the processors (docs/lag.md, Whose lease it is). They
// hold the RID of the monitored container, which is read once per container.
func (t *tick) identify(ctx context.Context, processors []*measured) {
	ctx, cancel := withShare(ctx, preparationShare)
	defer cancel()
	first := make(map[source]*measured)
	var sources []source
	for _, m := range processors {
		s := m.source()
		if _, seen := first[s]; !seen {
			first[s] = m
			sources = append(sources, s)
		}
	}
	failed := make([]error, len(sources))
	rids := make([]string, len(sources))
	t.each(len(sources), func(i int) *cosmos.Account { return sources[i].account }, func(i int) {
		var usage cosmos.Usage
		rids[i], usage, failed[i] = t.rid(ctx, sources[i])
		first[sources[i]].usage.Add(usage)
	})
	byRID, byError := make(map[source]string), make(map[source]error)
	for i, s := range sources {
		byRID[s], byError[s] = rids[i], failed[i]
	}
	for _, m := range processors {
		s := m.source()
		m.rid = byRID[s]
		if m.err = byError[s]; m.err == nil {
			m.prefixes, m.err = changefeed.Identity{
				ProcessorName: m.processor.ProcessorName,
				AccountHost:   m.processor.AccountHost,
				Database:      s.container.Database,
				Container:     s.container.ID,
				ContainerRID:  byRID[s],
			}.Prefixes()
		}
	}
}

// rid returns the RID of a container, from memory where it was read before.
func (t *tick) rid(ctx context.Context, s source) (string, cosmos.Usage, error) {
	t.mu.Lock()
	rid := t.rids[s]
	t.mu.Unlock()
	if rid != "" {
		return rid, cosmos.Usage{}, nil
	}
	rid, usage, err := s.account.RID(ctx, s.container)
	if err == nil {
		t.mu.Lock()
		t.rids[s] = rid
		t.mu.Unlock()
	}
	return rid, usage, err
}

// forget drops the RID and the ranges of a container, so that they are read again: a container to
// whose RID no lease belongs may have been deleted and created again under the same name.
func (t *tick) forget(s source) {
	t.mu.Lock()
	delete(t.rids, s)
	delete(t.ranges, s)
	t.mu.Unlock()
}

// queryLeases reads the leases of the processors with one query per lease container, and selects
// those of each processor. A lease container that does not exist holds no leases.
func (t *tick) queryLeases(ctx context.Context, processors []*measured) {
	ctx, cancel := withShare(ctx, preparationShare)
	defer cancel()
	groups := make(map[source][]*measured)
	var sources []source
	for _, m := range processors {
		if m.err != nil {
			continue
		}
		s := source{m.processor.LeaseAccount, m.processor.LeaseContainer}
		if groups[s] == nil {
			sources = append(sources, s)
		}
		groups[s] = append(groups[s], m)
	}
	t.each(len(sources), func(i int) *cosmos.Account { return sources[i].account }, func(i int) {
		group := groups[sources[i]]
		var prefixes []string
		for _, m := range group {
			prefixes = append(prefixes, m.prefixes...)
		}
		documents, usage, err := sources[i].account.Leases(ctx, sources[i].container, prefixes)
		group[0].usage.Add(usage)
		for _, m := range group {
			m.leases, m.err = nil, err
			if errors.Is(err, cosmos.ErrMissing) {
				m.err = nil
			}
			if m.err == nil {
				for _, d := range changefeed.Select(documents, m.prefixes) {
					m.leases = append(m.leases, measuredLease{LeaseDocument: d})
				}
			}
			if len(m.leases) == 0 {
				t.forget(m.source())
			}
		}
	})
}

// each calls do for 0..n-1, with at most concurrency calls in flight at once per account, and
// returns when all are done. It uses a bounded number of goroutines, since a tick may have ten
// thousand calls.
func (t *tick) each(n int, account func(int) *cosmos.Account, do func(int)) {
	byAccount := make(map[*cosmos.Account][]int)
	for i := range n {
		byAccount[account(i)] = append(byAccount[account(i)], i)
	}
	var wg sync.WaitGroup
	for _, calls := range byAccount {
		next := make(chan int)
		for range min(t.concurrency, len(calls)) {
			wg.Go(func() {
				for i := range next {
					do(i)
				}
			})
		}
		wg.Go(func() {
			defer close(next)
			for _, i := range calls {
				next <- i
			}
		})
	}
	wg.Wait()
}
