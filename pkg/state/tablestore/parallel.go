package tablestore

import (
	"context"
	"sync"
)

// parallel bounds how many requests one call makes at once.
const parallel = 16

// each calls do for 0..n-1, a bounded number at once, and waits for all. The
// first error ends the context of the others, and is returned.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		all   sync.WaitGroup
		once  sync.Once
		first error
	)
	turns := make(chan struct{}, parallel)
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := do(ctx, i); err != nil {
				once.Do(func() {
					first = err
					cancel()
				})
			}
		})
	}
	all.Wait()
	return first
}
