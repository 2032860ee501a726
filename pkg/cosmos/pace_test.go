package cosmos_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
)

// turns counts how many calls may be in flight at once: it begins as many as it can, and ends them
// unthrottled.
func turns(t *testing.T, p cosmos.Pace) int {
	t.Helper()
	n := 0
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		_, err := p.Enter(ctx)
		cancel()
		if err != nil {
			return n
		}
		n++
	}
}

func TestAThrottledAccountIsAskedLessAtOnceAndThenMoreAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := cosmos.NewPace(0, 8)
		if got := turns(t, p); got != 8 {
			t.Fatalf("%d turns, want 8", got)
		}
		p.Leave(true, 0)
		for range 7 {
			p.Leave(false, 0)
		}
		// The throttled call halves the limit of 8; the seven others raise it by one, once.
		if got := turns(t, p); got != 5 {
			t.Errorf("%d turns after a throttled call and seven unthrottled calls, want 5", got)
		}
		for range 5 {
			p.Leave(true, 0)
		}
		if got := turns(t, p); got != 1 {
			t.Errorf("%d turns while everything is throttled, want 1", got)
		}
		p.Leave(false, 0)
		for range 100 {
			if _, err := p.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Leave(false, 0)
		}
		if got := turns(t, p); got != 8 {
			t.Errorf("%d turns after many unthrottled calls, want all 8", got)
		}
	})
}

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
		p.Leave(false, 0)
		if err := <-entered; err != nil {
			t.Error(err)
		}
	})
}

func TestTheBudgetDelaysCallsAndFailsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := cosmos.NewPace(10, 8) // RU a second
		start := time.Now()
		var delayed time.Duration
		for range 31 {
			delay, err := p.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			delayed += delay
			p.Leave(false, 1)
		}
		// The bucket holds ten at first; each of the others takes a tenth of a second to refill.
		if took := time.Since(start); took < 2*time.Second || took > 2500*time.Millisecond {
			t.Errorf("31 RU at 10 RU/s took %s", took)
		}
		if delayed != time.Since(start) {
			t.Errorf("told of a delay of %s in %s", delayed, time.Since(start))
		}
		p.Leave(false, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if delay, err := p.Enter(ctx); err == nil || delay != time.Second {
			t.Errorf("delay %s, %v; want the whole second, and the deadline", delay, err)
		}
	})
}
