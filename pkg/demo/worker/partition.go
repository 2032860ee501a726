package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// partition is an owned partition that is being processed.
type partition struct {
	*host
	id       string // of the lease
	lease    leasefake.DotNetLease
	position position

	// updating lets one update of the lease pass at a time. The SDK does not wait: there many quick
	// checkpoints can make every try of a renewal fail, and a lease count as lost that nobody has
	// taken (Azure/azure-cosmos-dotnet-v2#237).
	updating sync.Mutex
}

// position is where the next read of a feed starts. It is in the memory of the host and, but for
// the checkpoints, nowhere else.
type position struct {
	continuation *string // ETag of the last answer; nil before the first one
}

// fromNow is the If-None-Match that asks for what is written from the read on.
const fromNow = "*"

// ifNoneMatch is the header of the next read; "" leaves it out, which reads from the beginning.
//
// Without a continuation .NET reads from now by default (ChangeFeedStartFromNow). So a host that
// stops before its first checkpoint loses what is written until it, or another one, reads again
// (Azure/azure-cosmos-dotnet-v3#4342). Since pull request #5617 of that repository the start is
// when the processor was started rather than its first read, which does not change that.
func (p position) ifNoneMatch(fromBeginning bool) string {
	switch {
	case p.continuation != nil:
		return *p.continuation
	case fromBeginning:
		return ""
	default:
		return fromNow
	}
}

// work processes a partition while this host owns it, and gives its lease up in the end
// (PartitionSupervisorCore and PartitionControllerCore.ProcessPartitionAsync). A handler that fails
// ends it, and so does a feed that cannot be read: the lease is released at once, and free for
// whoever looks for leases next, which is this host in a while or another one before it.
func (h *host) work(ctx context.Context, owned leasefake.DotNetLease) {
	p := &partition{host: h, id: owned.ID, lease: owned, position: position{owned.Continuation}}
	holding, lose := context.WithCancelCause(h.running)
	var renewal sync.WaitGroup
	renewal.Go(func() { p.renew(ctx, holding, lose) })
	err := p.follow(ctx, holding)
	lose(nil)
	renewal.Wait()
	switch {
	case ctx.Err() != nil || errors.Is(context.Cause(holding), errLost) || errors.Is(err, errLost):
		return // nothing of this host's is left to give up
	case errors.Is(err, errGone):
		p.tell(ctx, p.id, "the lease of a range that was split or merged cannot be replaced", p.replace(ctx))
	case h.running.Err() == nil:
		p.tell(ctx, p.id, "a partition is given up", err)
	}
	p.tell(ctx, p.id, "a lease cannot be released", h.leases.release(ctx, p.id))
}

// renew renews the lease until holding ends, and ends it where the lease is lost. The first renewal
// comes after half the interval (LeaseRenewerCore).
func (p *partition) renew(ctx, holding context.Context, lose context.CancelCauseFunc) {
	pause(holding, p.Timing.Renew/2)
	for holding.Err() == nil {
		p.updating.Lock()
		err := p.leases.renew(ctx, p.id)
		p.updating.Unlock()
		if errors.Is(err, errLost) {
			lose(errLost)
			return
		}
		p.tell(ctx, p.id, "a lease cannot be renewed", err)
		pause(holding, p.Timing.Renew)
	}
}

// follow reads the feed of the partition batch by batch, and checkpoints each one that was handled
// (FeedProcessorCore and AutoCheckpointer). It returns nil when the host is to stop.
func (p *partition) follow(ctx, holding context.Context) error {
	at, err := p.locate(holding, p.lease)
	if err != nil {
		return err
	}
	for holding.Err() == nil {
		next, err := p.Account.page(holding, p.Monitored, at, p.position.ifNoneMatch(p.FromBeginning), p.PageSize)
		switch {
		case holding.Err() != nil:
			return nil
		case errors.Is(err, errGone):
			// For an EPK lease another range may have come. While a split is under way the range is
			// still there: the SDK's client tries again, for half a minute, before the processor
			// hears of it (GoneAndRetryWithRequestRetryPolicy).
			before := at.rangeID
			if at, err = p.locate(holding, p.lease); err != nil {
				return err
			}
			if at.rangeID == before {
				pause(holding, p.Timing.Poll)
			}
			continue
		case err != nil:
			return err
		}
		unchanged := p.position.continuation != nil && *p.position.continuation == next.continuation
		p.position.continuation = &next.continuation
		if len(next.documents) > 0 {
			if err := p.Handle(holding, p.batch(ctx, next.documents)); err != nil {
				return fmt.Errorf("handling changes: %w", err)
			}
		}
		if len(next.documents) > 0 || p.CheckpointUnchanged && !unchanged {
			if err := p.checkpoint(ctx, next.continuation); err != nil {
				return err
			}
		}
		if n := len(next.documents); n > 0 {
			p.Checkpointed(p.lease.Token, n)
			continue
		}
		pause(holding, p.Timing.Poll)
	}
	return nil
}

func (p *partition) batch(ctx context.Context, changes []json.RawMessage) Batch {
	return Batch{Partition: p.lease.Token, Changes: changes, Killed: ctx.Done(), rewind: func(continuation *string) error {
		p.updating.Lock()
		defer p.updating.Unlock()
		return p.leases.rewind(ctx, p.id, continuation)
	}}
}

func (p *partition) checkpoint(ctx context.Context, continuation string) error {
	p.updating.Lock()
	defer p.updating.Unlock()
	checkpointed, err := p.leases.checkpoint(ctx, p.lease, continuation)
	if err == nil {
		p.lease = checkpointed
	}
	return err
}
