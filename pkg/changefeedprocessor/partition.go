package changefeedprocessor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// partition is a lease that this host owns, and the work on it. The contexts are nested: the handler's
// ends with the working of the host, the lease's own when it is lost, and both at the drain deadline.
type partition struct {
	*host
	token   string
	since   time.Time       // when it was acquired
	owning  context.Context // ends when this host must not write the lease any more
	lose    context.CancelCauseFunc
	holding context.Context // ends when no further batch is to be handled
	end     context.CancelFunc

	position string               // ETag of the last answer; "" before the first. In memory alone, but for checkpoints
	start    changefeed.StartFrom // without one
	updating chan struct{}        // holds a token during an update of the lease, so that one passes at a time

	released bool // the lease is handed back, replaced or lost: nothing is left to name at the end

	mu        sync.Mutex         // guards what follows
	lease     *changefeed.Record // as it was read or written last
	renewed   time.Time          // when the last update began that succeeded
	delivered int                // batches
	done      int                // which of them is checkpointed
	safe      string             // all before this continuation is checkpointed, or has no changes
}

// request is the next read.
func (p *partition) request(at place) feedRequest {
	r := feedRequest{place: at, ifNoneMatch: p.position}
	switch {
	case !p.start.Now() && !p.start.Beginning:
		r.since = p.start.Time // kept beside the continuation: LSNs and times may differ after a merge
	case p.position == "" && p.start.Now():
		r.ifNoneMatch = "*"
	}
	return r
}

func newPartition(h *host, l *changefeed.Record) *partition {
	p := &partition{
		host: h, token: l.Token, since: time.Now(), renewed: l.Time, lease: l, safe: l.Continuation,
		position: l.Continuation, start: h.leases.Start, updating: make(chan struct{}, 1),
	}
	if l.StartFrom != nil { // Java's leases say it themselves
		p.start = *l.StartFrom
	}
	p.owning, p.lose = context.WithCancelCause(h.life)
	p.holding, p.end = context.WithCancel(p.owning)
	return p
}

// work processes a partition while this host owns it, and gives its lease up in the end
// (PartitionSupervisorCore.cs and PartitionControllerCore.ProcessPartitionAsync). A handler that fails
// for good ends it, and so does a feed that cannot be read: the lease is released at once, and free for
// whoever looks for leases next. It returns why.
func (p *partition) work() (why error) {
	stop := context.AfterFunc(p.working, p.end)
	defer stop()
	defer p.lose(nil)
	renewing, enough := context.WithCancel(p.owning)
	var renewal sync.WaitGroup
	renewal.Go(func() { p.keep(renewing) })
	err := p.follow()
	enough()
	renewal.Wait()
	why = p.finish(err)
	p.end()
	p.Log.Info("lease released", "lease", p.token, "instance", p.Instance, "why", fmt.Sprint(why))
	return why
}

// finish gives the lease up.
func (p *partition) finish(err error) error {
	switch {
	case errors.Is(context.Cause(p.owning), ErrLeaseLost) || errors.Is(err, ErrLeaseLost):
		p.released = true // nothing of this host's is left to give up
		return ErrLeaseLost
	case errors.Is(err, errGone) && p.working.Err() == nil:
		if err = p.replace(); err == nil {
			p.released = true
			return ErrLeaseReplaced
		}
	case p.working.Err() != nil:
		err = nil // that of a handler or request whose context ended
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		p.failed(p.token, err)
	}
	released := p.insist(p.owning, func() error { return p.update(p.owning, p.leases.release) })
	switch {
	case errors.Is(released, ErrLeaseLost):
		p.released = true
		return ErrLeaseLost
	case released != nil:
		p.failed(p.token, released)
		return errors.Join(err, released)
	}
	p.released = true
	return err
}

// current is the lease as it was read or written last.
func (p *partition) current() *changefeed.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lease
}

// update changes the lease, one update at a time. ctx ends with the ownership of the lease, or before.
func (p *partition) update(ctx context.Context, change func(context.Context, *changefeed.Record) (*changefeed.Record, error)) error {
	select {
	case p.updating <- struct{}{}:
		defer func() { <-p.updating }()
	case <-ctx.Done():
		return p.lost(ctx)
	}
	before := p.current()
	began := time.Now()
	after, err := change(ctx, before)
	switch {
	case errors.Is(err, ErrLeaseLost):
		p.lose(ErrLeaseLost)
		return err
	case ctx.Err() != nil:
		return p.lost(ctx)
	case err != nil:
		return err
	}
	p.mu.Lock()
	p.lease, p.renewed = after, began
	p.mu.Unlock()
	return nil
}

// lost is the error of an update that comes after the lease was lost or ctx has ended; nil before.
func (p *partition) lost(ctx context.Context) error {
	if cause := context.Cause(p.owning); errors.Is(cause, ErrLeaseLost) {
		return cause
	}
	return ctx.Err()
}

// insist does something again while the service says that it may succeed later: it is throttled, or
// cannot be reached. It ends with ctx.
func (p *partition) insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || errors.Is(err, ErrLeaseLost) || ctx.Err() != nil || !transient(err) {
			return err
		}
		pause(ctx, retryAfter(err, p.RetryDelay))
	}
}

// keep renews the lease until ctx ends. The first renewal comes after half the interval
// (LeaseRenewerCore.cs). A lease that could not be renewed until it expired is lost: any host may have
// it then.
func (p *partition) keep(ctx context.Context) {
	for wait := p.RenewInterval / 2; ; wait = p.RenewInterval {
		pause(ctx, wait)
		for {
			if ctx.Err() != nil {
				return
			}
			p.mu.Lock()
			left := time.Until(p.renewed.Add(p.ExpirationInterval))
			p.mu.Unlock()
			if left <= 0 {
				p.lose(ErrLeaseLost)
				return
			}
			// A request that hangs must not outlast the lease.
			expires := time.AfterFunc(left, func() { p.lose(ErrLeaseLost) })
			err := p.update(p.owning, p.leases.renew)
			expires.Stop()
			if err == nil || errors.Is(err, ErrLeaseLost) {
				break
			}
			p.failed(p.token, err)
			pause(ctx, min(retryAfter(err, p.RetryDelay), p.RenewInterval, left))
		}
	}
}

// follow reads the feed of the partition page by page, and has each handled (FeedProcessorCore.cs). It
// returns nil when the lease is to be given up.
func (p *partition) follow() error {
	at, err := p.feed.locate(p.holding, p.current(), false)
	for err == nil && p.holding.Err() == nil {
		var idle time.Duration
		if idle, err = p.step(at); errors.Is(err, changefeed.ErrMoved) {
			before := at
			if at, err = p.relocate(at); err == nil && at == before {
				idle = p.PollInterval // while a split is under way the range is still there
			}
		}
		if err == nil && idle > 0 {
			pause(p.holding, idle)
		}
	}
	if p.holding.Err() != nil && !errors.Is(err, ErrLeaseLost) {
		return nil
	}
	return err
}

// relocate looks the lease up in the ranges as they are now.
func (p *partition) relocate(before place) (place, error) {
	at, err := p.feed.locate(p.holding, p.current(), true)
	if err != nil && transient(err) {
		p.failed(p.token, err)
		pause(p.holding, retryAfter(err, p.PollInterval))
		return before, nil
	}
	return at, err
}

// step reads one page and has it handled. It returns how long to wait before the next.
func (p *partition) step(at place) (idle time.Duration, err error) {
	select {
	case p.pages <- struct{}{}:
		defer func() { <-p.pages }()
	case <-p.holding.Done():
		return 0, nil
	}
	began := time.Now()
	next, err := p.feed.read(p.holding, p.request(at), p.MaxItems)
	if err != nil {
		return p.refused(err)
	}
	p.Observe(Observation{Lease: p.token, Items: len(next.items), Charge: next.charge, Took: time.Since(began)})
	before := p.position
	p.position = next.continuation
	if len(next.items) == 0 {
		idle = p.PollInterval
		if next.status == http.StatusOK && next.continuation != before {
			idle = 0 // only a 304 says that nothing follows
		}
		return idle, p.unchanged(next.continuation)
	}
	return 0, p.process(next)
}

// refused says what becomes of a read that failed.
func (p *partition) refused(err error) (idle time.Duration, _ error) {
	status, sub := statusOf(err)
	switch {
	case p.holding.Err() != nil:
		return 0, nil
	case status != 0 && changefeed.OutcomeOf(status, sub) == changefeed.Gone:
		return 0, changefeed.ErrMoved
	case transient(err):
		p.failed(p.token, err)
		return retryAfter(err, p.PollInterval), nil
	default:
		return 0, err
	}
}

// unchanged notes that nothing changed up to a continuation. The first position of a lease that does
// not start from the beginning is checkpointed, or what is written while no host runs would be skipped
// (azure-cosmos-dotnet-v3#4342); Java does so since azure-sdk-for-java#43013.
func (p *partition) unchanged(continuation string) error {
	p.mu.Lock()
	if p.done == p.delivered {
		p.safe = continuation
	}
	first := p.lease.Continuation == "" && p.delivered == 0 && continuation != "" && !p.start.Beginning
	p.mu.Unlock()
	if !first {
		return nil
	}
	return p.store(p.owning, continuation)
}

// store writes a continuation into the lease.
func (p *partition) store(ctx context.Context, continuation string) error {
	return p.insist(ctx, func() error {
		return p.update(ctx, func(ctx context.Context, l *changefeed.Record) (*changefeed.Record, error) {
			return p.leases.checkpoint(ctx, l, continuation)
		})
	})
}

// checkpoint notes that a batch and all before it are handled. A later one may have been already.
func (p *partition) checkpoint(ctx context.Context, batch int, continuation string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.owning, cancel)()
	p.mu.Lock()
	late := batch <= p.done
	p.mu.Unlock()
	if late {
		return p.lost(p.owning)
	}
	if err := p.store(ctx, continuation); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if batch > p.done {
		p.done, p.safe = batch, continuation
	}
	return nil
}

// replace puts other leases in the place of one whose range was split or merged, takes those of them
// that are new, and deletes the lease (PartitionControllerCore.HandlePartitionGoneAsync). If it fails
// in between, whoever takes the lease next finds those that are there already.
func (p *partition) replace() error {
	ranges, err := p.feed.ranges(p.owning, true)
	if err != nil {
		return err
	}
	// The lease is written first: a host that lost it unnoticed must not create others from an old
	// continuation.
	if err := p.insist(p.owning, func() error { return p.update(p.owning, p.leases.renew) }); err != nil {
		return err
	}
	p.mu.Lock()
	gone, continuation := p.lease, p.safe
	p.mu.Unlock()
	wanted, err := p.leases.Successors(ranges, gone.Lease, continuation, time.Now())
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		return errors.New("its partition key range is back, so that the lease fits again")
	}
	var created []*changefeed.Record
	for _, next := range wanted {
		if err := p.insist(p.owning, func() error {
			ok, err := p.leases.add(p.owning, next)
			if ok {
				created = append(created, next)
			}
			return err
		}); err != nil {
			return err
		}
	}
	removed := p.insist(p.owning, func() error { return p.update(p.owning, p.leases.drop) })
	for _, next := range created {
		p.take(next)
	}
	return removed
}
