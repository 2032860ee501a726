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

// Estimator measures processors. From one tick to the next it remembers the properties of containers, their
// partition key ranges, and what lease containers hold. It is safe for concurrent use.
type Estimator struct {
	concurrency int
	now         func() time.Time
	turns       atomic.Int64 // ticks

	containers  sync.Map // *cache[cosmos.Description] by source
	ranges      sync.Map // *cache[changefeed.Ranges] by source and RID: a container that is created again has another
	inventories sync.Map // *cache[[]changefeed.FoundProcessor] by source
}

// New makes an Estimator that reads at most concurrency pages of a container at once, at least 1.
// The cosmos.Account bounds the requests in flight. now is the clock of ProcessorLag.Time.
func New(concurrency int, now func() time.Time) *Estimator {
	return &Estimator{concurrency: concurrency, now: now}
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
// budget has not allowed is carried over from Processor.Last; the zero time never passes.
//
// Processors whose leases are in one container are a pipeline, and within it those that monitor one
// container. So an account that hangs delays only the processors that need it.
func (e *Estimator) Estimate(ctx context.Context, budgetUntil time.Time, processors []Processor, done func(i int, lag changefeed.ProcessorLag)) {
	t := &tick{
		Estimator: e, began: e.now(), budgetUntil: budgetUntil, turn: int(e.turns.Add(1)), idle: make(chan func()),
		reads: make(map[source]map[changefeed.Position]*page), users: make(map[source]int),
	}
	defer close(t.idle)
	pipelines := make(map[source][]*measurement)
	for i, p := range processors {
		m := &measurement{index: i, processor: p, now: e.now}
		pipelines[m.leaseSource()] = append(pipelines[m.leaseSource()], m)
		t.users[m.source()]++
	}
	var running sync.WaitGroup
	for _, group := range pipelines {
		running.Go(func() {
			t.identify(ctx, group)
			t.queryLeases(ctx, group)
			accounts := make(map[*cosmos.Account][][]*measurement)
			for s, unit := range bySource(group) {
				accounts[s.account] = append(accounts[s.account], unit)
			}
			for _, units := range accounts {
				running.Go(func() {
					t.each(units, func(unit []*measurement) {
						t.measure(ctx, unit)
						t.release(unit[0].source(), len(unit))
						for _, m := range unit {
							done(m.index, m.lag())
							*m = measurement{} // and its leases with it
						}
					})
				})
			}
		})
	}
	running.Wait()
}

// bySource groups processors by the container that they monitor.
func bySource(processors []*measurement) map[source][]*measurement {
	groups := make(map[source][]*measurement)
	for _, m := range processors {
		groups[m.source()] = append(groups[m.source()], m)
	}
	return groups
}

// aWhile is how long a container may take before the next one of its account is begun as well.
const aWhile = time.Second

// each calls do for the processors of each container of an account, and returns when all are done. So many
// are at work at once that their leases make twice the requests that may be in flight. Containers that fail
// come last. One that takes a while gives its place to another, since it may never answer.
func (t *tick) each(units [][]*measurement, do func(unit []*measurement)) {
	failing := func(unit []*measurement) int {
		if unit[0].processor.Account.Failing(unit[0].processor.Container) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(units, func(a, b []*measurement) int { return failing(a) - failing(b) })
	places := semaphore.NewWeighted(2 * int64(t.concurrency))
	var running sync.WaitGroup
	for _, unit := range units {
		leases := 1
		for _, m := range unit {
			leases += len(m.leases)
		}
		taken := int64(min(leases, t.concurrency))
		_ = places.Acquire(context.Background(), taken) // its context never ends, so that it cannot fail
		running.Go(func() {
			leave := sync.OnceFunc(func() { places.Release(taken) })
			defer leave()
			defer time.AfterFunc(aWhile, leave).Stop()
			do(unit)
		})
	}
	running.Wait()
}

// EstimateAll is Estimate that waits for all: it returns one ProcessorLag for each processor, in
// their order.
func (e *Estimator) EstimateAll(ctx context.Context, processors []Processor) []changefeed.ProcessorLag {
	lags := make([]changefeed.ProcessorLag, len(processors))
	until, _ := ctx.Deadline()
	e.Estimate(ctx, until, processors, func(i int, lag changefeed.ProcessorLag) { lags[i] = lag })
	return lags
}

// measure reads the feeds of processors that monitor one container.
func (t *tick) measure(ctx context.Context, unit []*measurement) {
	for _, m := range unit {
		if m.processor.Last != nil {
			m.lastLag = m.processor.Last()
		}
		m.last = make(map[string]*changefeed.Partition, len(m.lastLag.Partitions))
		for i := range m.lastLag.Partitions {
			p := &m.lastLag.Partitions[i]
			m.last[p.Lease] = p
		}
	}
	t.readFeeds(ctx, unit)
	if recreated := those(unit, (*measurement).recreated); len(recreated) > 0 {
		t.lookUp(ctx, recreated)
		t.readFeeds(ctx, recreated)
	}
	t.followSplits(ctx, unit)
	t.cover(ctx, unit)
}

// tick is the state of one call of Estimate.
type tick struct {
	*Estimator
	began       time.Time
	budgetUntil time.Time
	turn        int         // number of the tick
	idle        chan func() // what a goroutine of parallel does next

	mu    sync.Mutex
	reads map[source]map[changefeed.Position]*page // two processors at the same position share a page
	users map[source]int                           // processors that are not measured yet
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

// readAgainAfter is how long the partition key ranges of a container, and what a lease container holds, count as fresh.
const readAgainAfter = 5 * time.Minute

// cache is something that many processors need: one of them reads it, and the others wait.
type cache[T any] struct {
	reading chan struct{}     // holds one while it is read
	value   atomic.Pointer[T] // of the last read that succeeded; nil before
	tried   time.Time         // last read
	err     error             // of it
}

// cachedIn returns what is remembered under a key.
func cachedIn[T any](m *sync.Map, key any) *cache[T] {
	c, _ := m.LoadOrStore(key, &cache[T]{reading: make(chan struct{}, 1)})
	return c.(*cache[T])
}

// known returns the value without waiting; the zero value if it was never read.
func (c *cache[T]) known() (value T) {
	if known := c.value.Load(); known != nil {
		value = *known
	}
	return value
}

// get returns the value, and the error of the last read. It reads unless the last one is fresh.
func (c *cache[T]) get(now func() time.Time, fresh func(tried time.Time, err error) bool, read func() (T, error)) (T, error) {
	c.reading <- struct{}{}
	defer func() { <-c.reading }()
	if c.tried.IsZero() || !fresh(c.tried, c.err) {
		value, err := read()
		if c.tried, c.err = now(), err; err == nil {
			c.value.Store(&value)
		}
	}
	return c.known(), c.err
}

// identify finds the lease id prefixes of the processors (docs/lag.md, Whose lease it is). They
// hold the RID of the monitored container.
func (t *tick) identify(ctx context.Context, processors []*measurement) {
	ctx, cancel := withShare(ctx, preparationShare)
	defer cancel()
	once := func(_ time.Time, err error) bool { return err == nil }
	var reading sync.WaitGroup
	for s, group := range bySource(processors) {
		reading.Go(func() {
			description, err := cachedIn[cosmos.Description](&t.containers, s).get(t.now, once, func() (cosmos.Description, error) {
				description, usage, err := s.account.Describe(ctx, s.container)
				group[0].usage.Add(usage)
				return description, err
			})
			for _, m := range group {
				if m.described, m.err = description, err; err == nil {
					m.ranges = cachedIn[changefeed.Ranges](&t.ranges, [2]any{s, description.RID})
					m.prefixes, m.err = m.processor.Identity(description.RID).Prefixes()
				}
			}
		})
	}
	reading.Wait()
}

// queryLeases reads the leases of processors that share a lease container with one query, and
// selects those of each processor. A lease container that does not exist holds no leases. A query
// that fails says nothing of the containers: what is remembered of them stays.
func (t *tick) queryLeases(ctx context.Context, processors []*measurement) {
	ctx, cancel := withShare(ctx, preparationShare)
	defer cancel()
	group := those(processors, nil)
	if len(group) == 0 {
		return
	}
	var texts []string
	for _, m := range group {
		for _, p := range m.prefixes {
			texts = append(texts, strings.TrimSuffix(p, ".")) // so that the marker is found as well
		}
	}
	leases := group[0].leaseSource()
	documents, usage, err := leases.account.Leases(ctx, leases.container, texts)
	group[0].usage.Add(usage)
	if errors.Is(err, cosmos.ErrMissing) {
		documents, err = nil, nil
	}
	sorted := changefeed.Sorted(documents, t.now())
	for _, m := range group {
		if m.leases, m.err = nil, err; err != nil {
			continue
		}
		selected, err := sorted.Select(m.prefixes, m.processor.LeaseFormat)
		m.err, m.marked, m.leases = err, len(selected) > 0 && sorted.Marked(selected[0]), make([]measuredLease, len(selected))
		for i, d := range selected {
			if d.Err == nil {
				d.ID = "" // by which it was selected: the longest text of a lease
			}
			m.leases[i].LeaseDocument = d
		}
		if err == nil && len(selected) == 0 {
			t.containers.Delete(m.source()) // it may have been deleted and created again: its RID is read again
			m.nearest = nearest(t.look(ctx, m), m)
		}
	}
}

// parallel calls do for 0..n-1, and returns when all are done. It has no more goroutines than requests may
// be in flight, and takes idle ones of the tick first: a request takes a deep stack, and growing one for
// each container took a tenth of a tick's CPU (docs/decisions/0022-speed.md).
func (t *tick) parallel(n int, do func(int)) {
	var (
		next    atomic.Int64
		running sync.WaitGroup
	)
	running.Add(min(n, t.concurrency))
	work := func() {
		defer running.Done()
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			do(int(i))
		}
	}
	for range min(n, t.concurrency) {
		select {
		case t.idle <- work:
		default:
			go func() {
				for do := work; do != nil; do = <-t.idle {
					do()
				}
			}()
		}
	}
	running.Wait()
}
