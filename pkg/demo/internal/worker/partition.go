package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// work processes a partition while this host owns it, and gives its lease up in the end. It returns the leases that came in
// its place where the partition was split.
func (h *host) work(ctx context.Context, owned lease) (children []lease) {
	holding, lose := context.WithCancelCause(ctx)
	id := owned.ID
	var renewal sync.WaitGroup
	renewal.Go(func() { h.renew(holding, lose, id) })
	err := h.follow(holding, &owned)
	lose(nil)
	renewal.Wait()
	switch {
	case ctx.Err() != nil || errors.Is(context.Cause(holding), errLost) || errors.Is(err, errLost):
		return nil // nothing of this host's is left to give up
	case errors.Is(err, errGone):
		if children, err = h.replace(ctx, owned); err == nil && len(children) > 0 {
			return children
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
func (h *host) renew(holding context.Context, lose context.CancelCauseFunc, id string) {
	for {
		pause(holding, h.Timing.Renew)
		if holding.Err() != nil {
			return
		}
		switch err := h.leases.renew(holding, id); {
		case errors.Is(err, errLost):
			lose(errLost)
			return
		case err != nil && holding.Err() == nil:
			h.Log.Warn("a lease cannot be renewed", "lease", id, "error", err.Error())
		}
	}
}

// follow reads the feed of a partition page by page, and checkpoints each page that was processed. It returns nil when the
// host is to end, with all that was begun done.
func (h *host) follow(holding context.Context, owned *lease) error {
	for h.running.Err() == nil && holding.Err() == nil {
		continuation := ""
		if owned.Continuation != nil {
			continuation = *owned.Continuation
		}
		next, err := h.Account.page(holding, h.Monitored, owned.Token, continuation, h.PageSize)
		switch {
		case errors.Is(err, errGone):
			return err
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
		checkpointed, err := h.leases.checkpoint(holding, *owned, next.continuation)
		if err != nil {
			return err
		}
		*owned = checkpointed
		h.Checkpointed(owned.Token, len(next.documents))
	}
	return nil
}

// replace puts leases of the children in the place of a partition that was split: they continue where it was. While the
// split is still under way there are none, and the lease stays.
func (h *host) replace(ctx context.Context, parent lease) ([]lease, error) {
	ranges, err := h.Account.ranges(ctx, h.Monitored)
	if err != nil {
		return nil, err
	}
	tokens := map[string]bool{}
	for _, r := range ranges {
		if !slices.Contains(r.Parents, parent.Token) {
			continue
		}
		if err := h.leases.createLease(ctx, r, parent.Continuation); err != nil {
			return nil, err
		}
		tokens[r.ID] = true
	}
	if len(tokens) == 0 {
		return nil, nil
	}
	if err := h.leases.remove(ctx, parent.ID); err != nil {
		return nil, err
	}
	all, err := h.leases.list(ctx)
	return slices.DeleteFunc(all, func(l lease) bool { return !tokens[l.Token] }), err
}
