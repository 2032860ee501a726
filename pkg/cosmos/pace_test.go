package cosmos_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
)

func TestACallThatWaitsForATurnGetsTheNextOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := cosmos.NewPace(0, 1)
		if _, err := p.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		entered := make(chan error)
		go func() {
			_, err := p.Enter(t.Context())
			entered <- err
		}()
		synctest.Wait()
		p.Leave(0)
		if err := <-entered; err != nil {
			t.Error(err)
		}
	})
}

// closed is a read that ends at once.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func TestTheBudgetIsKeptHoweverManyReadsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget, charge = 50, 50 // RU a second, and RU for each read
		p := cosmos.NewPace(budget, 64)
		var spent atomic.Int64
		var reads sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for range 1000 {
			reads.Go(func() {
				answered := make(chan struct{})
				go func() {
					time.Sleep(20 * time.Millisecond)
					close(answered)
				}()
				if p.Read(ctx, charge, answered) == nil {
					spent.Add(charge)
				}
			})
		}
		for second := 1; second <= 10; second++ {
			time.Sleep(time.Second - time.Nanosecond)
			synctest.Wait()
			if got, most := spent.Load(), int64(budget*(second+1)); got > most {
				t.Errorf("%d RU in %d s at %d RU/s", got, second, budget)
			}
			time.Sleep(time.Nanosecond)
		}
		reads.Wait()
		if got := spent.Load(); got < 9*budget {
			t.Errorf("%d RU in 10 s: the budget was not used", got)
		}
	})
}

func TestALookupWaitsForNoFeedRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := cosmos.NewPace(10, 64)
		ctx, cancel := context.WithCancel(t.Context())
		var reads sync.WaitGroup
		for range 100 {
			reads.Go(func() { _ = p.Read(ctx, 10, closed) })
		}
		synctest.Wait()
		if delay, err := p.Enter(t.Context()); err != nil || delay != 0 {
			t.Errorf("a query of leases waited %s behind feed reads, %v", delay, err)
		}
		cancel()
		reads.Wait()
	})
}

func TestAReadThatTheBudgetLeavesOutSaysSoAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := cosmos.NewPace(10, 64)
		p.Leave(1000) // debts
		start := time.Now()
		err := p.Read(p.Until(t.Context(), start.Add(5*time.Second)), 1, closed)
		if !errors.Is(err, cosmos.ErrBudget) || time.Since(start) > 5*time.Second {
			t.Errorf("after %s: %v, want ErrBudget", time.Since(start), err)
		}
	})
}

// TestAWaitForTheBudgetIsAtMostAnHourAtATime has debts that no time pays, which a read may not count as no wait at
// all: it would ask again and again until its context ends.
func TestAWaitForTheBudgetIsAtMostAnHourAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := cosmos.NewPace(10, 64)
		p.Leave(1e300)
		start := time.Now()
		err := p.Read(p.Until(t.Context(), start.Add(59*time.Minute)), 1, closed)
		if !errors.Is(err, cosmos.ErrBudget) || time.Since(start) > 0 {
			t.Errorf("after %s: %v, want ErrBudget at once", time.Since(start), err)
		}
		err = p.Read(p.Until(t.Context(), start.Add(90*time.Minute)), 1, closed)
		if !errors.Is(err, cosmos.ErrBudget) || time.Since(start).Truncate(time.Second) != time.Hour {
			t.Errorf("after %s: %v, want ErrBudget after an hour", time.Since(start), err)
		}
	})
}
