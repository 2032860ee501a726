package changefeedprocessor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// partition is a lease that this host owns, and the work on it. The contexts are nested: the handler's
// ends with the working of the host, the lease's own when it is lost, and both at the drain deadline.
type partition struct {
	*host
	token   string
	owning  context.Context // ends when this host must not write the lease any more
	lose    context.CancelCauseFunc
	holding context.Context // ends when no further batch is to be handled
	end     context.CancelFunc
	expiry  *time.Timer // loses the lease when it expires: any host may have it then

	position  string               // ETag of the last answer; "" before the first. In memory alone, but for checkpoints
	start     changefeed.StartFrom // without one, and beside one: LSNs and times may differ after a merge
	moved     bool                 // the ranges that were learned are not those of now
	delivered int64                // batches
	released  bool                 // the lease is handed back, replaced or lost: nothing is left to name at the end
	updating  chan struct{}        // holds a token during an update of the lease, so that one passes at a time

	lease atomic.Pointer[changefeed.Record] // as it was read or written last
	done  atomic.Int64                      // number of the batch that is checkpointed
}

func newPartition(h *host, l *changefeed.Record) *partition {
	p := &partition{host: h, token: l.Token, position: l.Continuation, updating: make(chan struct{}, 1)}
	p.start = *cmp.Or(l.StartFrom, &h.leases.Start) // Java's leases say it themselves
	p.lease.Store(l)
	p.owning, p.lose = context.WithCancelCause(h.life)
	p.holding, p.end = context.WithCancel(p.owning)
	p.expiry = time.AfterFunc(time.Until(l.Time.Add(h.ExpirationInterval)), func() { p.lose(ErrLeaseLost) })
	return p
}

// work processes a partition while this host owns it, and gives its lease up in the end
// (PartitionSupervisorCore.cs and PartitionControllerCore.ProcessPartitionAsync). A handler that fails
// for good ends it, and so does a feed that cannot be read: the lease is released at once, and free for
// whoever looks for leases next. It returns why.
func (p *partition) work() (why error) {
	defer context.AfterFunc(p.working, p.end)()
	defer p.expiry.Stop()
	defer p.lose(nil)
	renewing, enough := context.WithCancel(p.owning)
	var keeping sync.WaitGroup
	keeping.Go(func() { p.keep(renewing) })
	err := p.follow()
	enough()
	keeping.Wait()
	why = p.finish(err)
	p.end()
	p.Log.Info("lease released", "lease", p.token, "instance", p.Instance, "why", fmt.Sprint(why))
	return why
}

// finish gives the lease up.
func (p *partition) finish(err error) error {
	switch {
	case p.lost(err):
		p.released = true // nothing of this host's is left to give up
		return ErrLeaseLost
	case p.working.Err() != nil:
		err = nil // that of a handler or request whose context ended
	case errors.Is(err, errGone):
		if err = p.replace(); err == nil {
			p.released = true
			return ErrLeaseReplaced
		}
	}
	if err != nil && !p.lost(err) {
		p.failed(p.token, err)
	}
	released := p.change(p.owning, func(l *changefeed.Record) { p.leases.Own(l, "") })
	p.released = released == nil || p.lost(released)
	switch {
	case released == nil:
		return err
	case p.released:
		return ErrLeaseLost
	}
	p.failed(p.token, released)
	return errors.Join(err, released)
}

// lost reports whether the lease is another host's, or err says so.
func (p *partition) lost(err error) bool {
	return errors.Is(err, ErrLeaseLost) || errors.Is(context.Cause(p.owning), ErrLeaseLost)
}

// update changes the lease, one update at a time; a nil change deletes it. ctx ends with the ownership of
// the lease, or before.
func (p *partition) update(ctx context.Context, change func(*changefeed.Record)) error {
	select {
	case p.updating <- struct{}{}:
		defer func() { <-p.updating }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	began := time.Now()
	after, err := p.leases.update(ctx, p.lease.Load(), p.Instance, change)
	switch {
	case errors.Is(err, ErrLeaseLost):
		p.lose(ErrLeaseLost)
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	p.expiry.Reset(time.Until(began.Add(p.ExpirationInterval)))
	p.lease.Store(after)
	return nil
}

// change updates the lease, and again while that may help.
func (p *partition) change(ctx context.Context, change func(*changefeed.Record)) error {
	return p.insist(ctx, p.token, func() error { return p.update(ctx, change) })
}

// renewal is the change that only tells the other hosts that the owner lives.
func renewal(*changefeed.Record) {}

// keep renews the lease until ctx ends. The first renewal comes after half the interval
// (LeaseRenewerCore.cs).
func (p *partition) keep(ctx context.Context) {
	for wait := p.RenewInterval / 2; ctx.Err() == nil; wait = p.RenewInterval {
		pause(ctx, wait)
		if err := p.change(ctx, renewal); err != nil && ctx.Err() == nil {
			p.failed(p.token, err)
		}
	}
}

// follow reads the feed of the partition page by page, and has each handled (FeedProcessorCore.cs). It
// returns nil when the lease is to be given up.
func (p *partition) follow() error {
	for p.holding.Err() == nil {
		idle, err := p.step()
		if err != nil {
			return err
		}
		pause(p.holding, idle)
	}
	return nil
}

// step reads one page and has it handled. It returns how long to wait before the next.
func (p *partition) step() (idle time.Duration, err error) {
	select {
	case p.pages <- struct{}{}:
		defer func() { <-p.pages }()
	case <-p.holding.Done():
		return 0, nil
	}
	began := time.Now()
	next, err := p.read()
	if err != nil {
		return p.refused(err)
	}
	p.Observe(Observation{Lease: p.token, Items: len(next.Items), Charge: float64(next.RequestCharge), Took: time.Since(began)})
	before := p.position
	p.position, p.moved = string(next.ETag), false
	if len(next.Items) > 0 {
		return 0, p.process(next.Items)
	}
	if next.RawResponse.StatusCode != http.StatusOK || p.position == before {
		idle = p.PollInterval // else nothing says yet that nothing follows
	}
	// The first position of a lease that does not start from the beginning is checkpointed, or what is
	// written while no host runs would be skipped (azure-cosmos-dotnet-v3#4342); Java does so since
	// azure-sdk-for-java#43013.
	if p.lease.Load().Continuation == "" && p.delivered == 0 && p.position != "" && !p.start.Beginning {
		err = p.store(p.owning, p.position)
	}
	return idle, err
}

// read reads what follows the position.
func (p *partition) read() (azcosmos.ChangeFeedResponse, error) {
	share, err := p.feed.locate(p.holding, p.lease.Load(), p.moved)
	if err != nil {
		return azcosmos.ChangeFeedResponse{}, err
	}
	at := changefeed.Lease{Continuation: p.position, Mode: p.leases.Mode, StartFrom: &p.start}
	return p.feed.read(p.holding, at.Position(share, p.start), p.MaxItems)
}

// refused says what becomes of a read that failed.
func (p *partition) refused(err error) (idle time.Duration, _ error) {
	status, sub := statusOf(err)
	switch {
	case p.holding.Err() != nil:
		return 0, nil
	case changefeed.OutcomeOf(status, sub) == changefeed.Gone:
		if p.moved {
			idle = p.PollInterval // while a split is under way the range is still there
		}
		p.moved = true
		return idle, nil
	case transient(err):
		p.failed(p.token, err)
		return retryAfter(err, p.PollInterval), nil
	default:
		return 0, err
	}
}

// store writes a continuation into the lease.
func (p *partition) store(ctx context.Context, continuation string) error {
	return p.change(ctx, func(l *changefeed.Record) { p.leases.Position(l, continuation) })
}

// checkpoint notes that a batch and all before it are handled. A later one may have been already.
func (p *partition) checkpoint(ctx context.Context, batch int64, continuation string) error {
	if batch <= p.done.Load() {
		return context.Cause(p.owning)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.owning, func() { cancel(context.Cause(p.owning)) })()
	err := p.store(ctx, continuation)
	if err == nil {
		p.done.Store(max(p.done.Load(), batch))
	}
	return err
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
	if err := p.change(p.owning, renewal); err != nil {
		return err
	}
	gone := p.lease.Load()
	wanted, err := p.leases.Successors(ranges, gone.Lease, gone.Continuation, time.Now())
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		return errors.New("its partition key range is back, so that the lease fits again")
	}
	var created []*changefeed.Record
	for _, next := range wanted {
		err := p.insist(p.owning, p.token, func() error { return p.leases.put(p.owning, next, false) })
		if err != nil && !errors.Is(err, errExists) {
			return err
		}
		if err == nil {
			created = append(created, next)
		}
	}
	removed := p.change(p.owning, nil)
	for _, next := range created {
		p.take(next)
	}
	return removed
}
