package budget_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos/budget"
)

// read is a read that takes some time and costs so much.
func read(ctx context.Context, b *budget.Budget, charge float64, takes time.Duration) error {
	reserved, _, err := b.Reserve(ctx)
	if err != nil {
		return err
	}
	time.Sleep(takes)
	b.Spend(reserved, charge)
	return nil
}

func TestTheBudgetIsKeptHoweverManyReadsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perSecond, charge = 50, 50 // RU a second, and RU for each read
		b := budget.New(perSecond)
		var spent atomic.Int64
		var reads sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for range 1000 {
			reads.Go(func() {
				if read(ctx, b, charge, 20*time.Millisecond) == nil {
					spent.Add(charge)
				}
			})
		}
		for second := 1; second <= 10; second++ {
			time.Sleep(time.Second - time.Nanosecond)
			synctest.Wait()
			if got, most := spent.Load(), int64(perSecond*(second+1)); got > most {
				t.Errorf("%d RU in %d s at %d RU/s", got, second, perSecond)
			}
			time.Sleep(time.Nanosecond)
		}
		reads.Wait()
		if got := spent.Load(); got < 9*perSecond {
			t.Errorf("%d RU in 10 s: the budget was not used", got)
		}
	})
}

func TestAReadThatTheBudgetLeavesOutSaysSoAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10)
		b.Spend(0, 1000) // debts
		start := time.Now()
		err := read(b.Turn(t.Context(), start.Add(5*time.Second), time.Time{}), b, 1, 0)
		if !errors.Is(err, budget.ErrNoTime) || time.Since(start) > 0 {
			t.Errorf("after %s: %v, want ErrNoTime at once", time.Since(start), err)
		}
	})
}

// TestAWaitForTheBudgetIsAtMostAnHourAtATime has debts that no time pays, which a read may not count as no wait at
// all: it would ask again and again until its context ends.
func TestAWaitForTheBudgetIsAtMostAnHourAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(10)
		b.Spend(0, 1e300)
		start := time.Now()
		err := read(b.Turn(t.Context(), start.Add(59*time.Minute), time.Time{}), b, 1, 0)
		if !errors.Is(err, budget.ErrNoTime) || time.Since(start) > 0 {
			t.Errorf("after %s: %v, want ErrNoTime at once", time.Since(start), err)
		}
		err = read(b.Turn(t.Context(), start.Add(90*time.Minute), time.Time{}), b, 1, 0)
		if !errors.Is(err, budget.ErrNoTime) || time.Since(start).Truncate(time.Second) != time.Hour {
			t.Errorf("after %s: %v, want ErrNoTime after an hour", time.Since(start), err)
		}
	})
}
