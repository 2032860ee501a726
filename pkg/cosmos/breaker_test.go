package cosmos_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestAnAccountThatDoesNotAnswerIsAskedOnceInAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, askedOnceInAWhile)
}

func askedOnceInAWhile(t *testing.T) {
	w := azure(t)
	server := w.Account
	var asked atomic.Int64
	broken := true
	var mu sync.Mutex
	server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		asked.Add(1)
		mu.Lock()
		defer mu.Unlock()
		if broken {
			return &cosmosfake.Answer{Status: 503}
		}
		return nil
	})
	a := clientOf(t, w, cosmos.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	read := func() error {
		_, _, err := a.FeedPage(ctx, orders, changefeed.Position{Range: "0"})
		return err
	}
	for range 5 {
		if read() == nil {
			t.Fatal("503 is no error")
		}
	}
	before := asked.Load()
	_ = read() // finds out whether the account answers again
	for range 100 {
		if err := read(); err == nil || !strings.Contains(err.Error(), "circuit breaker is open") {
			t.Fatalf("error %v, want one that says that the circuit breaker is open", err)
		}
	}
	// One of the hundred finds out whether the account answers, and is not tried again.
	if n := asked.Load() - before; n > 1 {
		t.Errorf("asked %d times, want once", n)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	time.Sleep(5 * time.Second)
	for range 3 {
		if err := read(); err != nil {
			t.Errorf("the account answers again: %v", err)
		}
	}
}

func TestWhoComesWhileAnOpenBreakerIsTriedWaitsForWhatItFinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, waitsForWhatItFinds)
}

func waitsForWhatItFinds(t *testing.T) {
	w := azure(t)
	server := w.Account
	release := make(chan struct{})
	var fail atomic.Bool
	fail.Store(true)
	server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if fail.Load() {
			return &cosmosfake.Answer{Status: 503}
		}
		<-release
		return nil
	})
	a := clientOf(t, w, cosmos.Options{Concurrency: 16})
	for range 6 {
		_, _, _ = a.FeedPage(t.Context(), orders, changefeed.Position{Range: "0"})
	}
	fail.Store(false)
	time.Sleep(5 * time.Second)
	errs := make(chan error, 10)
	for range 10 {
		go func() {
			_, _, err := a.FeedPage(t.Context(), orders, changefeed.Position{Range: "0"})
			errs <- err
		}()
	}
	close(release)
	for range 10 {
		if err := <-errs; err != nil {
			t.Errorf("the account answers: %v", err)
		}
	}
}

// TestAnAccountThatHangsOpensTheBreaker has calls that end with the tick and not with an answer.
func TestAnAccountThatHangsOpensTheBreaker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		until time.Duration // when each call is given up
		cause error         // nil: its deadline has passed
		opens bool
	}{
		{"where each call ends with its deadline", 3 * time.Second, nil, true},
		{"not where no call had time for an answer", 100 * time.Millisecond, nil, false},
		{"not where the calls were cancelled", 5 * time.Second, context.Canceled, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := azure(t)
				a := clientOf(t, w, cosmos.Options{})
				testworld.Must(t, w.Account.SetRegion(writeRegion, cosmosfake.Hanging))
				testworld.Must(t, w.Account.SetRegion(otherRegion, cosmosfake.Hanging))
				var last error
				for range 7 {
					ctx, cancel := context.WithTimeout(t.Context(), c.until)
					if c.cause != nil {
						ctx, cancel = context.WithCancel(t.Context())
						time.AfterFunc(c.until, cancel)
					}
					_, _, last = a.FeedPage(ctx, orders, changefeed.Position{Range: "0"})
					cancel()
				}
				if got := strings.Contains(last.Error(), "circuit breaker is open"); got != c.opens {
					t.Errorf("the seventh call ended with %v, want the breaker open: %v", last, c.opens)
				}
			})
		})
	}
}
