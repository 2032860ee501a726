// Package estimator measures the lag of many change feed processors at once:
// one query for each lease container, one page of the change feed for each
// lease, what two processors both need only once.
//
// It knows accounts and leases; what an answer means is changefeed's, what a
// request looks like is cosmos's, and what follows from the lag is not its
// business. Start with Estimate, whose steps stand in their order.
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
	Name           string          // as configured, for nothing but messages
	Account        *cosmos.Account // of the monitored container
	Container      cosmos.Container
	LeaseAccount   *cosmos.Account
	LeaseContainer cosmos.Container
	ProcessorName  string // as in the lease ids
	AccountHost    string // as in the lease ids
	StartFrom      changefeed.StartFrom
}

// Estimator measures processors. Between two ticks it remembers the RIDs of
// containers, and the partition key ranges of those whose processors keep EPK
// leases, and nothing else. It is safe for concurrent use.
type Estimator struct {
	concurrency int
	now         func() time.Time

	mu     sync.Mutex
	rids   map[source]string
	ranges map[source]changefeed.Ranges
}

// New makes an Estimator that has at most concurrency requests under way at
// once at each account.
func New(concurrency int, now func() time.Time) *Estimator {
	return &Estimator{concurrency: concurrency, now: now, rids: make(map[source]string), ranges: make(map[source]changefeed.Ranges)}
}

// source is a container of an account.
type source struct {
	account   *cosmos.Account
	container cosmos.Container
}

// Estimate measures the processors; the result has one ProcessorLag for each,
// in their order. What could not be measured says so in the result: a failure
// never keeps the others from being measured. At the end of ctx it returns with
// what is known by then.
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

// tick is one Estimate.
type tick struct {
	*Estimator
	measured []*measured
	reads    map[read]*page // by position: two processors at the same one share a page
	wanted   []*page        // asked for and not yet read
}

// The parts of the time left that a step may take, so that an account that does
// not answer in one leaves the others theirs in the next.
const (
	partOfPreparation = 0.5 // what has to be known before feeds can be read
	partOfFeeds       = 0.75
)

// part ends a step after a part of the time that is left.
func part(ctx context.Context, of float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(of*float64(time.Until(deadline))))
}

// identify finds the prefixes of the processors' leases, for which it reads the
// RID of each monitored container once.
func (t *tick) identify(ctx context.Context, processors []*measured) {
	ctx, cancel := part(ctx, partOfPreparation)
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

// forget drops the RID of a container that no lease goes with: it may have been
// created anew, under the same name and with another RID.
func (t *tick) forget(s source) {
	t.mu.Lock()
	delete(t.rids, s)
	delete(t.ranges, s)
	t.mu.Unlock()
}

// queryLeases reads the leases of the processors, with one query for each lease
// container, and selects each one's own.
func (t *tick) queryLeases(ctx context.Context, processors []*measured) {
	ctx, cancel := part(ctx, partOfPreparation)
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

// each calls do for 0..n-1, with at most concurrency calls under way at once
// for each account, and returns when all are done. A few workers rather than a
// goroutine for each call: a tick may have ten thousand.
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
