package worker_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/demo/worker"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

func fromNow(o *worker.Options) { o.FromBeginning = false }

func asJava(o *worker.Options) { o.FromBeginning, o.CheckpointUnchanged = false, true }

// TestWhatIsWrittenWhileNoHostRuns holds when it is lost: Azure/azure-cosmos-dotnet-v3#4342.
func TestWhatIsWrittenWhileNoHostRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		options func(*worker.Options)
		before  int // changes while the first host runs
		want    int // of the five
	}{
		{"is lost where the processor starts from now and saw no change before", fromNow, 0, 0},
		{"is handled once the first change was checkpointed", fromNow, 1, 5},
		{"is handled where the processor starts from the beginning", nil, 0, 5},
		{"is handled where a read without changes is checkpointed, as by Java", asJava, 0, 5},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, s *shop) {
				first := s.host("host-1", c.options)
				time.Sleep(6 * time.Second)
				s.write(c.before)
				time.Sleep(6 * time.Second)
				s.stopAll(first)
				s.write(5)
				second := s.host("host-2", c.options)
				time.Sleep(time.Minute)
				s.write(1) // is handled in any case
				time.Sleep(time.Minute)
				s.stopAll(second)
				if got, want := s.count(), c.before+c.want+1; got != want {
					t.Errorf("%d changes were handled, want %d: %d of the 5", got, want, c.want)
				}
			})
		})
	}
}

func TestAHostThatStartsFromNowKeepsItsPositionInMemory(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(3)
		var mu sync.Mutex
		var asked []string
		s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.ReadChangeFeed {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, r.Header.Get("If-None-Match"))
			}
			return nil
		})
		s.host("host-1", fromNow)
		time.Sleep(11 * time.Second)
		if l := s.leases()["0"]; l.Continuation != nil || !l.OwnedBy("host-1") {
			t.Errorf("got lease %+v, want it owned and without a continuation", l)
		}
		s.write(1)
		time.Sleep(5 * time.Second)
		if l := s.leases()["0"]; l.Continuation == nil || *l.Continuation != `"4"` {
			t.Errorf("got lease %+v, want the first change checkpointed", l)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"*", `"3"`, `"3"`, `"3"`, `"4"`}; !slices.Equal(asked, want) {
			t.Errorf("asked for what follows %q, want %q", asked, want)
		}
	})
}

func TestAPositionThatDidNotMoveIsCheckpointedOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(3)
		s.host("host-1", asJava)
		time.Sleep(time.Second)
		first := s.leases()["0"]
		if first.Continuation == nil || *first.Continuation != `"3"` {
			t.Fatalf("got lease %+v, want the position of now checkpointed", first)
		}
		time.Sleep(7 * time.Second) // the first renewal comes after 8.5 s
		if now := s.leases()["0"]; now.ETag != first.ETag {
			t.Errorf("got lease %+v, want it as it was", now)
		}
	})
}

func TestAHostThatWasKilledGoesOnWithTheLeasesThatCarryItsName(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(t *testing.T, s *shop) {
		killed := s.host("host-1", nil)
		time.Sleep(time.Second)
		killed.kill()
		s.end(killed)
		s.write(20)
		s.host("host-1", nil)
		time.Sleep(time.Second)
		if got := s.count(); got != 20 {
			t.Errorf("%d changes were handled a second after the restart, want 20", got)
		}
	})
}

func TestAKilledHostLeavesItsLeasesUntilTheyExpire(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(t *testing.T, s *shop) {
		killed := s.host("host-1", nil)
		time.Sleep(9 * time.Second) // 0.5 s behind the first renewal
		killed.kill()
		s.end(killed)
		next := s.host("host-2", nil) // looks every 13 s, and takes its share of the two at once
		time.Sleep(59 * time.Second)
		if got := s.owners()["host-1"]; got != 1 {
			t.Errorf("after 59 s: %d leases of the killed host, want 1", got)
		}
		time.Sleep(7 * time.Second)
		if got := s.owners()["host-2"]; got != 2 {
			t.Errorf("after 66 s: %d leases of the next host, want 2", got)
		}
		s.stopAll(next)
	})
}
