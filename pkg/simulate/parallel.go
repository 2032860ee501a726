package simulate

import (
	"context"
	"runtime"
	"sync"
)

// parallel calls do for each number below n, on as many goroutines as may run at once, until the
// context is done. It returns when all calls have, with the context's error.
func parallel(ctx context.Context, n int, do func(i int)) error {
	next := make(chan int)
	var wait sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	defer wait.Wait()
	defer close(next)
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Progress is told how many of the replays are done, one call at a time.
type Progress func(done, all int)

// counter tells a Progress of each replay.
type counter struct {
	sync.Mutex
	done, all int
	progress  Progress
}

func (c *counter) one() {
	c.Lock()
	defer c.Unlock()
	c.done++
	if c.progress != nil {
		c.progress(c.done, c.all)
	}
}
