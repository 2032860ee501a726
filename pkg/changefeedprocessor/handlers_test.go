package changefeedprocessor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
)

func with(h changefeedprocessor.Handler) func(*changefeedprocessor.Options) {
	return func(o *changefeedprocessor.Options) { o.Handle = h }
}

var errScripted = errors.New("the handler fails, as it was told to")

// throws fails on every batch.
func throws(context.Context, changefeedprocessor.Batch) error { return errScripted }

// hangs does not return until the test ends, whatever its context says.
func hangs(t *testing.T) (h changefeedprocessor.Handler, free func()) {
	freed := make(chan struct{})
	free = sync.OnceFunc(func() { close(freed) })
	t.Cleanup(free)
	return func(context.Context, changefeedprocessor.Batch) error {
		<-freed
		return errScripted
	}, free
}

// calls notes when a handler is called.
type calls struct {
	mu    sync.Mutex
	began time.Time
	at    []time.Duration
}

func (c *calls) of(h changefeedprocessor.Handler) changefeedprocessor.Handler {
	return func(ctx context.Context, b changefeedprocessor.Batch) error {
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
		pass(500 * time.Millisecond)
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
		host := s.host("host-1", with(c.of(throws)))
		pass(10 * time.Millisecond)
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
		rule   string
		writes int
	}{
		{"where there is nothing to do", 0},
		{"while its handler hangs", 5},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, s *shop) {
				s.write(c.writes)
				h, free := hangs(t)
				host := s.host("host-1", with(h))
				pass(10 * time.Millisecond)
				if got := s.changes("0", time.Minute); !slices.Equal(got, renewed) {
					t.Errorf("the lease changed after %v, want %v", got, renewed)
				}
				if l := s.leases()["0"]; !l.OwnedBy("host-1") || l.Continuation != nil {
					t.Errorf("got lease %+v, want it owned and without a checkpoint", l)
				}
				host.kill()
				free()
			})
		})
	}
}

func TestALeaseThatNobodyServesDoesNotChange(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.create()
		s.write(5)
		if got := s.changes("0", 5*time.Minute); len(got) > 0 {
			t.Errorf("the lease changed after %v", got)
		}
	})
}

func TestAHandlerThatHangsHoldsUpAStopUntilTheDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(t *testing.T, s *shop) {
		s.Put("orders", map[string]any{"id": "order-1", "customer": "customer-1"})
		h, free := hangs(t)
		host := s.host("host-1", with(h))
		pass(time.Second)
		began := time.Now()
		host.stop()
		err := <-host.ended
		if took := time.Since(began); took < 30*time.Second || took > 32*time.Second {
			t.Errorf("Run took %s to end, want the 30 s that it waits for handlers", took)
		}
		kept := ""
		for token, l := range s.leases() {
			if l.OwnedBy("host-1") {
				kept += token
			}
		}
		if err == nil || len(kept) != 1 || !strings.HasSuffix(err.Error(), ": "+kept) {
			t.Errorf("got error %v and leases %q kept, want the one whose handler hangs, and its name in the error", err, kept)
		}
		free()
	})
}

func TestAHandlerIsToldOfAStop(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(5)
		host := s.host("host-1", with(func(ctx context.Context, _ changefeedprocessor.Batch) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		pass(time.Second)
		s.stopAll(host)
		if l := s.leases()["0"]; !l.OwnedBy("") || l.Continuation != nil {
			t.Errorf("got lease %+v, want it released, and what was not handled not checkpointed", l)
		}
		s.host("host-2", nil)
		pass(time.Second)
		s.checkOnce()
	})
}

func TestAHandlerThatFailsOnOnePartitionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	inBubble(t, 4, func(t *testing.T, s *shop) {
		s.write(100)
		s.host("host-1", with(func(ctx context.Context, b changefeedprocessor.Batch) error {
			if b.Lease == "2" {
				return errScripted
			}
			return s.handle(ctx, b)
		}))
		pass(time.Minute)
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
