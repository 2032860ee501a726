package tablestore

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// parallel is the greatest number of requests that one call has in flight.
const parallel = 16

// each calls do for 0..n-1, at most parallel at once, and waits for all. The first error cancels
// the context of the others and is returned.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(parallel)
	for i := range n {
		calls.Go(func() error { return do(ctx, i) })
	}
	return calls.Wait()
}
