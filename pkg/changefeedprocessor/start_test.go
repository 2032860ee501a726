package changefeedprocessor_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func fromNow(o *changefeedprocessor.Options) { o.FromBeginning = false }

// TestWhatIsWrittenWhileNoHostRuns holds that nothing is lost as in Azure/azure-cosmos-dotnet-v3#4342.
func TestWhatIsWrittenWhileNoHostRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		options func(*changefeedprocessor.Options)
		before  int // changes while the first host runs
		want    int // of the five
	}{
		{"is handled once the first change was checkpointed", fromNow, 1, 5},
		{"is handled where the processor starts from the beginning", nil, 0, 5},
		{"is handled where the processor starts from now, whose first position is checkpointed", fromNow, 0, 5},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, s *shop) {
				first := s.host("host-1", c.options)
				pass(6 * time.Second)
				s.write(c.before)
				pass(6 * time.Second)
				s.stopAll(first)
				s.write(5)
				second := s.host("host-2", c.options)
				pass(time.Minute)
				s.write(1) // is handled in any case
				pass(time.Minute)
				s.stopAll(second)
				if got, want := s.count(), c.before+c.want+1; got != want {
					t.Errorf("%d changes were handled, want %d: %d of the 5", got, want, c.want)
				}
			})
		})
	}
}

func TestAPositionThatDidNotMoveIsCheckpointedOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(3)
		s.host("host-1", fromNow)
		pass(time.Second)
		first := s.leases()["0"]
		if first.Continuation == nil || *first.Continuation != `"3"` {
			t.Fatalf("got lease %+v, want the position of now checkpointed", first)
		}
		pass(7 * time.Second) // the first renewal comes after 8.5 s
		if now := s.leases()["0"]; now.ETag != first.ETag {
			t.Errorf("got lease %+v, want it as it was", now)
		}
	})
}

func TestAHostThatWasKilledGoesOnWithTheLeasesThatCarryItsName(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(t *testing.T, s *shop) {
		killed := s.host("host-1", nil)
		pass(time.Second)
		killed.kill()
		s.write(20)
		s.host("host-1", nil)
		pass(time.Second)
		if got := s.count(); got != 20 {
			t.Errorf("%d changes were handled a second after the restart, want 20", got)
		}
	})
}

// TestALeaseIsTakenWithTheNextLookIfTheAnswerToItsAcquisitionWasLost has the request made again, and so
// refused: the lease is of another revision, and has the name of the host already.
func TestALeaseIsTakenWithTheNextLookIfTheAnswerToItsAcquisitionWasLost(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(5)
		var tries atomic.Int64
		s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.ReplaceDocument && tries.Add(1) == 1 {
				lease := s.leases()["0"]
				lease.Owner = new("host-1")
				lease.Stamp(time.Now())
				if err := s.Account.Upsert(testworld.Database, testworld.Leases, lease); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		s.host("host-1", nil)
		pass(time.Second)
		if got := s.count(); got != 0 {
			t.Fatalf("%d changes were handled without the lease", got)
		}
		pass(13 * time.Second)
		if got := s.count(); got != 5 {
			t.Errorf("%d changes were handled after the next look, want 5", got)
		}
	})
}

func TestARunEndsIfAContainerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind != cosmosfake.ReadContainer {
				return nil
			}
			return &cosmosfake.Answer{Delay: 24 * time.Hour}
		})
		host := s.host("host-1", nil)
		pass(66 * time.Second)
		select {
		case err := <-host.ended:
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "reading container shop/orders") {
				t.Errorf("got %v, want that the container was not read in time", err)
			}
		default:
			t.Error("Run still waits after 66 s")
		}
	})
}

func TestAKilledHostLeavesItsLeasesUntilTheyExpire(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(t *testing.T, s *shop) {
		killed := s.host("host-1", nil)
		pass(9 * time.Second) // 0.5 s behind the first renewal
		killed.kill()
		next := s.host("host-2", nil) // looks every 13 s, and takes its share of the two at once
		pass(59 * time.Second)
		if got := s.owners()["host-1"]; got != 1 {
			t.Errorf("after 59 s: %d leases of the killed host, want 1", got)
		}
		pass(7 * time.Second)
		if got := s.owners()["host-2"]; got != 2 {
			t.Errorf("after 66 s: %d leases of the next host, want 2", got)
		}
		s.stopAll(next)
	})
}
