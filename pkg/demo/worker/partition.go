package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// work processes a partition while this host owns it, and gives its lease up in the end. It returns
// the leases that came in its place where the partition was split or merged.
func (h *host) work(ctx context.Context, owned leasefake.DotNetLease) (successors []leasefake.DotNetLease) {
	holding, lose := context.WithCancelCause(ctx)
	id := owned.ID
	// One update of the lease at a time: many quick checkpoints would make every try of a renewal
	// fail, and a lease count as lost that nobody has taken.
	var updating sync.Mutex
	var renewal sync.WaitGroup
	renewal.Go(func() { h.renew(holding, lose, &updating, id) })
	err := h.follow(holding, &updating, &owned)
	lose(nil)
	renewal.Wait()
	switch {
	case ctx.Err() != nil || errors.Is(context.Cause(holding), errLost) || errors.Is(err, errLost):
		return nil // nothing of this host's is left to give up
	case errors.Is(err, errGone):
		if successors, err = h.replace(ctx, owned.ID); err == nil || errors.Is(err, errLost) {
			return successors
		}
	}
	if err != nil {
		h.Log.Warn("a partition is given up", "lease", id, "error", err.Error())
	}
	if err := h.leases.release(ctx, id); err != nil && !errors.Is(err, errLost) {
		h.Log.Warn("a lease cannot be released", "lease", id, "error", err.Error())
	}
	return nil
}

// renew renews a lease until holding ends, and ends it where the lease is lost.
func (h *host) renew(holding context.Context, lose context.CancelCauseFunc, updating *sync.Mutex, id string) {
	for {
		pause(holding, h.Timing.Renew)
		if holding.Err() != nil {
			return
		}
		updating.Lock()
		err := h.leases.renew(holding, id)
		updating.Unlock()
		switch {
		case errors.Is(err, errLost):
			lose(errLost)
			return
		case err != nil && holding.Err() == nil:
			h.Log.Warn("a lease cannot be renewed", "lease", id, "error", err.Error())
		}
	}
}

// follow reads the feed of a partition page by page, and checkpoints each page that was processed.
// It returns nil when the host is to end, with all that was begun done.
func (h *host) follow(holding context.Context, updating *sync.Mutex, owned *leasefake.DotNetLease) error {
	at, err := h.locate(holding, *owned)
	if err != nil {
		return err
	}
	for h.running.Err() == nil && holding.Err() == nil {
		continuation := ""
		if owned.Continuation != nil {
			continuation = *owned.Continuation
		}
		next, err := h.Account.page(holding, h.Monitored, at, continuation, h.PageSize)
		switch {
		case errors.Is(err, errGone):
			// While a split is under way the range is still there, and for an EPK lease another one
			// may have come.
			if at, err = h.locate(holding, *owned); err != nil {
				return err
			}
		case err != nil && holding.Err() == nil:
			h.Log.Warn("the change feed cannot be read", "lease", owned.ID, "error", err.Error())
		}
		if len(next.documents) == 0 {
			waiting, done := context.WithCancel(h.running)
			release := context.AfterFunc(holding, done)
			pause(waiting, h.Timing.Poll)
			release()
			done()
			continue
		}
		if err := h.Handle(holding, owned.Token, next.documents); err != nil {
			return fmt.Errorf("processing changes: %w", err)
		}
		updating.Lock()
		checkpointed, err := h.leases.checkpoint(holding, *owned, next.continuation)
		updating.Unlock()
		if err != nil {
			return err
		}
		*owned = checkpointed
		h.Checkpointed(owned.Token, len(next.documents))
	}
	return nil
}
