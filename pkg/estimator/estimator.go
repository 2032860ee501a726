// Package estimator measures the lag of many change feed processors at once: one query per lease
// container, one page of the change feed per lease. What several processors need is read once.
//
// It plans the requests of a tick and joins their answers. Package changefeed says what an answer
// means, package cosmos what a request looks like, package scaling what follows from the lag; this
// package imports the first two alone. The rules are in docs/lag.md. Start with
// [Estimator.Estimate].
//
// The package is internal to the program: its API may change in any release.
package estimator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

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
	NamesInUse     []string             // the ProcessorNames of all processors with these two containers: none is suggested
	AccountHost    string               // host of the endpoint that the application uses, which is in lease ids
	LeaseFormat    changefeed.Family    // whose leases count; AnyFamily = whichever is found
	StartFrom      changefeed.StartFrom // where a lease without a continuation is read from

	// Last returns what the last tick measured, from which this one carries over what it leaves
	// out. It is called at most once. nil = nothing was measured.
	Last func() changefeed.ProcessorLag
}

// Identity distinguishes the leases of the processor from all others in the container. rid is the RID of
// the monitored container.
func (p Processor) Identity(rid string) changefeed.Identity {
	return changefeed.Identity{
		ProcessorName: p.ProcessorName, AccountHost: p.AccountHost,
		Database: p.Container.Database, Container: p.Container.ID, ContainerRID: rid,
	}
}

// Estimator measures processors. From one tick to the next it remembers the properties of containers and
// their partition key ranges; nothing else. It is safe for concurrent use.
type Estimator struct {
	concurrency int
	now         func() time.Time
	turns       atomic.Int64 // ticks

	mu         sync.Mutex
	containers map[source]*described
	ranges     map[source]*shared
	nearest    map[source]found
}

// New makes an Estimator that reads at most concurrency pages of a container at once, at least 1.
// The cosmos.Account bounds the requests in flight. now is the clock of ProcessorLag.Time.
func New(concurrency int, now func() time.Time) *Estimator {
	return &Estimator{
		concurrency: concurrency, now: now,
		containers: make(map[source]*described), ranges: make(map[source]*shared), nearest: make(map[source]found),
	}
}

// source is a container in an account.
type source struct {
	account   *cosmos.Account
	container cosmos.Container
}

// Estimate measures processors and calls done with each ProcessorLag as soon as it is known, from
// many goroutines; i is the index of the processor. It returns after the last call. What could not
// be measured is unknown in the result, with the reason, and never keeps the others from being
// measured. When ctx ends, the rest is unknown. When budgetUntil passes, what an account's RU
// budget has not allowed is carried over from Processor.Last.
//
// Processors whose leases are in one container are a pipeline, and within it those that monitor one
// container. So an account that hangs delays only the processors that need it.
func (e *Estimator) Estimate(ctx context.Context, budgetUntil time.Time, processors []Processor, done func(i int, lag changefeed.ProcessorLag)) {
	ctx = cosmos.BudgetUntil(ctx, budgetUntil)
	t := &tick{Estimator: e, began: e.now(), reads: make(map[source]map[cosmos.Position]*page), users: make(map[source]int), idle: make(chan func()), turn: int(e.turns.Add(1))}
	defer close(t.idle)
	pipelines := make(map[source][]*measured)
	for i, p := range processors {
		m := &measured{index: i, processor: p}
		pipelines[m.leaseSource()] = append(pipelines[m.leaseSource()], m)
		t.users[m.source()]++
	}
	var running sync.WaitGroup
	for _, group := range pipelines {
		running.Go(func() {
			t.identify(ctx, group)
			t.queryLeases(ctx, group)
			units := make(map[source][]*measured)
			for _, m := range group {
				units[m.source()] = append(units[m.source()], m)
			}
			accounts := make(map[*cosmos.Account][]source)
			for s := range units {
				accounts[s.account] = append(accounts[s.account], s)
			}
			for _, containers := range accounts {
				running.Go(func() {
					t.each(containers, units, func(i int, unit []*measured) {
						t.measure(ctx, unit)
						now := e.now()
						for i, m := range unit {
							done(m.index, m.lag(now))
							*unit[i] = measured{} // and its leases with it
						}
						t.release(containers[i], len(unit))
					})
				})
			}
		})
	}
	running.Wait()
}

// aWhile is how long a container may take before the next one of its account is begun as well.
const aWhile = time.Second

// each calls do for each container of an account, and returns when all are done. So many are at
// work at once that their leases make twice the requests that may be in flight: more would only
// take memory. Containers that fail come last. One that takes a while gives its place to another,
// since it may never answer.
func (t *tick) each(containers []source, units map[source][]*measured, do func(i int, unit []*measured)) {
	failing := func(s source) int {
		if s.account.Failing(s.container) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(containers, func(a, b source) int { return failing(a) - failing(b) })
	places := semaphore.NewWeighted(2 * int64(t.concurrency))
	var running sync.WaitGroup
	for i, s := range containers {
		unit, leases := units[s], 0
		for _, m := range unit {
			leases += len(m.leases)
		}
		taken := int64(min(max(1, leases), t.concurrency))
		_ = places.Acquire(context.Background(), taken) // its context never ends, so that it cannot fail
		running.Go(func() {
			leave := sync.OnceFunc(func() { places.Release(taken) })
			defer leave()
			defer time.AfterFunc(aWhile, leave).Stop()
			do(i, unit)
		})
	}
	running.Wait()
}

// EstimateAll is Estimate that waits for all: it returns one ProcessorLag for each processor, in
// their order.
func (e *Estimator) EstimateAll(ctx context.Context, processors []Processor) []changefeed.ProcessorLag {
	lags := make([]changefeed.ProcessorLag, len(processors))
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(time.Hour)
	}
	e.Estimate(ctx, until, processors, func(i int, lag changefeed.ProcessorLag) { lags[i] = lag })
	return lags
}

// measure reads the feeds of processors that monitor one container.
func (t *tick) measure(ctx context.Context, unit []*measured) {
	for _, m := range unit {
		if m.processor.Last != nil {
			m.lastLag = m.processor.Last()
		}
	}
	t.readFeeds(ctx, unit)
	t.lookUpAgain(ctx, those(unit, (*measured).recreated))
	t.followSplits(ctx, unit)
	t.cover(ctx, unit)
	t.findBeside(ctx, unit)
}

// tick is the state of one call of Estimate.
type tick struct {
	*Estimator
	began time.Time

	mu    sync.Mutex
	reads map[source]map[cosmos.Position]*page // two processors at the same position share a page
	users map[source]int                       // processors that are not measured yet
	turn  int                                  // number of the tick
	idle  chan func()                          // what a goroutine of parallel does next
}

// release forgets the pages of a container once no processor needs them any more.
func (t *tick) release(s source, processors int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users[s] -= processors; t.users[s] == 0 {
		delete(t.reads, s)
	}
}

// The shares of the time left that a step may take, from 0 to 1. If an account does not answer in
// one step, time is left for the next.
const (
	preparationShare = 0.5  // properties, leases and partition key ranges, each
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

// described is the properties of a container, read once.
type described struct {
	once  sync.Mutex // held while they are read
	known bool
	cosmos.Description
}

// describe returns the properties of a container, which are read once. If several ask at once, one
// of them reads.
func (t *tick) describe(ctx context.Context, s source) (cosmos.Description, cosmos.Usage, error) {
	t.Estimator.mu.Lock()
	d := t.containers[s]
	if d == nil {
		d = &described{}
		t.containers[s] = d
	}
	t.Estimator.mu.Unlock()
	d.once.Lock()
	defer d.once.Unlock()
	if d.known {
		return d.Description, cosmos.Usage{}, nil
	}
	description, usage, err := s.account.Describe(ctx, s.container)
	if err == nil {
		d.Description, d.known = description, true
	}
	return description, usage, err
}

// identify finds the lease id prefixes of the processors (docs/lag.md, Whose lease it is). They
// hold the RID of the monitored container.
func (t *tick) identify(ctx context.Context, processors []*measured) {
	ctx, cancel := withShare(ctx, preparationShare)
	defer cancel()
	groups := make(map[source][]*measured)
	for _, m := range processors {
		groups[m.source()] = append(groups[m.source()], m)
	}
	var reading sync.WaitGroup
	for s, group := range groups {
		reading.Go(func() {
			description, usage, err := t.describe(ctx, s)
			group[0].usage.Add(usage)
			for _, m := range group {
				if m.described, m.err = description, err; err != nil {
					continue
				}
				m.prefixes, m.err = m.processor.Identity(m.described.RID).Prefixes()
			}
		})
	}
	reading.Wait()
}

// forget drops the properties of a container, so that they are read again. A container to whose RID
// no lease belongs may have been deleted and created again under the same name.
func (e *Estimator) forget(s source) {
	e.mu.Lock()
	delete(e.containers, s)
	e.mu.Unlock()
}

// queryLeases reads the leases of processors that share a lease container with one query, and
// selects those of each processor. A lease container that does not exist holds no leases. A query
// that fails says nothing of the containers: what is remembered of them stays.
func (t *tick) queryLeases(ctx context.Context, processors []*measured) {
	ctx, cancel := withShare(ctx, preparationShare)
	defer cancel()
	var (
		group []*measured
		texts []string
	)
	for _, m := range processors {
		if m.err != nil {
			continue
		}
		group = append(group, m)
		for _, p := range m.prefixes {
			texts = append(texts, strings.TrimSuffix(p.Text, ".")) // so that the marker is found as well
		}
	}
	if len(group) == 0 {
		return
	}
	leases := group[0].leaseSource()
	documents, usage, err := leases.account.Leases(ctx, leases.container, texts)
	group[0].usage.Add(usage)
	if errors.Is(err, cosmos.ErrMissing) {
		documents, err = nil, nil
	}
	now := t.now()
	for i := range documents {
		documents[i].LimitTime(now)
	}
	sorted := changefeed.Sorted(documents)
	for _, m := range group {
		m.leases, m.err = nil, err
		if err != nil {
			continue
		}
		var selected []changefeed.LeaseDocument
		if selected, m.err = sorted.Select(m.prefixes, m.processor.LeaseFormat); m.err != nil {
			if errors.Is(m.err, changefeed.ErrMixed) {
				m.err = fmt.Errorf("%w: set leaseFormat to dotnet or java, and give one of them a name of its own", m.err)
			}
			continue
		}
		m.leases, m.marked = make([]measuredLease, len(selected)), sorted.Marked(selected)
		for i, d := range selected {
			if d.Err == nil {
				d.ID = "" // by which it was selected: the longest text of a lease
			}
			m.leases[i].LeaseDocument = d
		}
		if len(m.leases) == 0 {
			t.forget(m.source())
			t.findNearest(ctx, m)
		}
	}
}

// parallel calls do for 0..n-1, and returns when all are done. It has no more goroutines than
// requests may be in flight, since a tick may have a hundred thousand calls.
func (t *tick) parallel(n int, do func(int)) {
	var (
		next    atomic.Int64
		running sync.WaitGroup
	)
	for range min(n, t.concurrency) {
		running.Add(1)
		t.spawn(func() {
			defer running.Done()
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	running.Wait()
}

// spawn calls do in a goroutine of the tick that is idle, or in a new one. A request takes a deep stack:
// growing one for each container took a tenth of a tick's CPU (docs/decisions/0022-speed.md).
func (t *tick) spawn(do func()) {
	select {
	case t.idle <- do:
	default:
		go func() {
			for ; do != nil; do = <-t.idle {
				do()
			}
		}()
	}
}
