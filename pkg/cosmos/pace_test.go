package cosmos_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// TestACallThatWaitsForASlotGetsTheNextOne has one slot, and an answer that is held back.
func TestACallThatWaitsForASlotGetsTheNextOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := azure(t)
		answer := make(chan struct{})
		var asked atomic.Int64
		w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.ReadChangeFeed {
				asked.Add(1)
				<-answer
			}
			return nil
		})
		a := clientOf(t, w, cosmos.Options{Concurrency: 1})
		var reads sync.WaitGroup
		for range 2 {
			reads.Go(func() {
				if _, _, err := a.FeedPage(t.Context(), orders, changefeed.Position{Range: "0"}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if got := asked.Load(); got != 1 {
			t.Errorf("%d requests are in flight, want 1", got)
		}
		close(answer)
		reads.Wait()
	})
}

// TestALookupWaitsForNoFeedRead has pages of the feed wait for the budget.
func TestALookupWaitsForNoFeedRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := azure(t)
		a := clientOf(t, w, cosmos.Options{Concurrency: 64, Budget: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var reads sync.WaitGroup
		var waited atomic.Int64
		for range 100 {
			reads.Go(func() {
				_, used, _ := a.FeedPage(ctx, orders, changefeed.Position{Range: "0"})
				waited.Add(int64(used.Delay))
			})
		}
		time.Sleep(3 * time.Second)
		if _, used, err := a.Describe(t.Context(), orders); err != nil || used.Delay != 0 {
			t.Errorf("a lookup waited %s for feed reads, %v", used.Delay, err)
		}
		cancel()
		if reads.Wait(); waited.Load() == 0 {
			t.Error("no read waited for the budget")
		}
	})
}
