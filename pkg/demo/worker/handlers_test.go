package worker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/demo/worker"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

func with(h worker.Handler) func(*worker.Options) {
	return func(o *worker.Options) { o.Handle = h }
}

// calls notes when a handler is called.
type calls struct {
	mu    sync.Mutex
	began time.Time
	at    []time.Duration
}

func (c *calls) of(h worker.Handler) worker.Handler {
	return func(ctx context.Context, b worker.Batch) error {
		c.mu.Lock()
		c.at = append(c.at, time.Since(c.began).Truncate(100*time.Millisecond))
		c.mu.Unlock()
		return h(ctx, b)
	}
}

// changes looks at a lease every half second, and returns when it changed.
func (s *shop) changes(token string, during time.Duration) (at []time.Duration) {
	s.t.Helper()
	began, before := time.Now(), s.leases()[token]
	for time.Since(began) < during {
		time.Sleep(500 * time.Millisecond)
		now := s.leases()[token]
		if now.ETag == before.ETag {
			continue
		}
		if *now.Timestamp == *before.Timestamp || now.Written == before.Written {
			s.t.Errorf("the lease changed to %+v, want its timestamp and _ts moved", now)
		}
		at, before = append(at, time.Since(began)), now
	}
	return at
}

// TestAHandlerThatThrows holds what was measured of Microsoft.Azure.Cosmos 3.64.0: the lease is
// given back at once and taken again with the next look for leases, so that hardly ever anybody
// owns it (as in Azure/azure-cosmos-dotnet-v3#2801).
func TestAHandlerThatThrows(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(10)
		c := calls{began: time.Now()}
		host := s.host("host-1", with(c.of(worker.Throws())))
		time.Sleep(10 * time.Millisecond)
		if l := s.leases()["0"]; !l.OwnedBy("") || l.Continuation != nil {
			t.Errorf("after 10 ms: lease %+v, want it released and without a checkpoint", l)
		}
		changed := s.changes("0", 40*time.Second)
		s.stopAll(host)
		if want := []time.Duration{0, 13 * time.Second, 26 * time.Second, 39 * time.Second}; !slices.Equal(c.at, want) {
			t.Errorf("called at %v, want %v", c.at, want)
		}
		if want := []time.Duration{13 * time.Second, 26 * time.Second, 39 * time.Second}; !slices.Equal(changed, want) {
			t.Errorf("the lease changed after %v, want %v", changed, want)
		}
	})
}

// TestAnOwnedLeaseIsRenewed has the first renewal after half the interval of 17 s.
func TestAnOwnedLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	renewed := []time.Duration{8500 * time.Millisecond, 25500 * time.Millisecond, 42500 * time.Millisecond, 59500 * time.Millisecond}
	for _, c := range []struct {
		rule    string
		writes  int
		handler worker.Handler
	}{
		{"where there is nothing to do", 0, worker.Ignores()},
		{"while its handler hangs", 5, worker.Hangs()},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, s *shop) {
				s.write(c.writes)
				host := s.host("host-1", with(c.handler))
				time.Sleep(10 * time.Millisecond)
				if got := s.changes("0", time.Minute); !slices.Equal(got, renewed) {
					t.Errorf("the lease changed after %v, want %v", got, renewed)
				}
				if l := s.leases()["0"]; !l.OwnedBy("host-1") || l.Continuation != nil {
					t.Errorf("got lease %+v, want it owned and without a checkpoint", l)
				}
				host.kill()
				s.end(host)
			})
		})
	}
}

func TestALeaseThatNobodyServesDoesNotChange(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.stopAll(s.host("host-1", nil))
		s.write(5)
		if got := s.changes("0", 5*time.Minute); len(got) > 0 {
			t.Errorf("the lease changed after %v", got)
		}
	})
}

func TestAHandlerThatHangsHoldsUpAStop(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(5)
		host := s.host("host-1", with(worker.Hangs()))
		time.Sleep(time.Second)
		close(host.stop)
		time.Sleep(10 * time.Minute)
		select {
		case err := <-host.ended:
			t.Errorf("the host ended with %v, though its handler hangs", err)
		default:
		}
		host.kill()
		s.end(host)
	})
}

func TestAHandlerIsToldOfAStop(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(5)
		host := s.host("host-1", with(func(ctx context.Context, _ worker.Batch) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		time.Sleep(time.Second)
		s.stopAll(host)
		if l := s.leases()["0"]; !l.OwnedBy("") || l.Continuation != nil {
			t.Errorf("got lease %+v, want it released, and what was not handled not checkpointed", l)
		}
		s.host("host-2", nil)
		time.Sleep(time.Second)
		s.checkOnce()
	})
}

func TestAHandlerThatFailsOnOnePartitionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	inBubble(t, 4, func(t *testing.T, s *shop) {
		s.write(100)
		s.host("host-1", with(worker.ThrowsOn("2", s.handle)))
		time.Sleep(time.Minute)
		for token, l := range s.leases() {
			if failing := token == "2"; (l.Continuation == nil) != failing || l.OwnedBy("") != failing {
				t.Errorf("got lease %+v, want it without an owner and a checkpoint if it is that of partition 2", l)
			}
		}
		for _, token := range []string{"0", "1", "2", "3"} {
			if n := len(s.of(token)); (n == 0) != (token == "2") {
				t.Errorf("%d changes of partition %s were handled, want none if it is 2", n, token)
			}
		}
	})
}

func TestWhatAHandlerSkipsIsCheckpointed(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(21)
		batches := 0
		s.host("host-1", with(worker.Skips(func(worker.Batch) bool { batches++; return batches == 2 }, s.handle)))
		time.Sleep(time.Minute)
		var got []int64
		for _, c := range s.of("0") {
			got = append(got, c.LSN)
		}
		if want := []int64{1, 2, 3, 4, 5, 6, 7, 15, 16, 17, 18, 19, 20, 21}; !slices.Equal(got, want) {
			t.Errorf("handled %v, want %v: all but the second batch of 7", got, want)
		}
		if l := s.leases()["0"]; *l.Continuation != `"21"` {
			t.Errorf("got lease %+v, want all checkpointed", l)
		}
	})
}

func TestALeaseThatIsSetBackIsReadFromThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		to    *string
		again int64 // LSN of the first change that is handled again
	}{
		{"to a position", leasefake.At(10), 11},
		{"to the start", nil, 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, s *shop) {
				s.write(21)
				once := false
				last := func(b worker.Batch) bool {
					defer func() { once = true }()
					return !once && len(s.of("0")) == 21
				}
				host := s.host("host-1", func(o *worker.Options) {
					o.PageSize, o.Handle = 21, worker.Rewinds(c.to, last, s.handle)
				})
				time.Sleep(time.Second)
				if l := s.leases()["0"]; !l.OwnedBy("") || text(l.Continuation) != text(c.to) {
					t.Errorf("got lease %+v, want it at %s and given back", l, text(c.to))
				}
				time.Sleep(13 * time.Second)
				s.stopAll(host)
				if got := s.of("0"); len(got) != 21+int(22-c.again) || got[21].LSN != c.again {
					t.Errorf("%d changes were handled, want what follows LSN %d again", len(got), c.again-1)
				}
			})
		})
	}
}

func text(continuation *string) string {
	if continuation == nil {
		return "none"
	}
	return *continuation
}
