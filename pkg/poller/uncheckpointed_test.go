package poller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// TestIdlePartitionsWithoutACheckpointAskForOneReplica has a processor with 300 partitions that
// starts from now and has seen no change. Its leases have owners and, after a restart, none. It
// asks for one replica all the time.
func TestIdlePartitionsWithoutACheckpointAskForOneReplica(t *testing.T) {
	t.Parallel()
	const partitions = 300
	inBubble(t, partitions, func(t *testing.T, l *live) {
		of := l.LeasesOf(projection, workerHost, "orders")
		l.poller.Processors[0].Policy.Threshold = 1
		for poll := range 8 {
			for i := range partitions {
				f := leasefake.Fields{Owner: fmt.Sprint("host-", i%3), Updated: time.Now()}
				if poll > 3 {
					f.Owner = ""
				}
				l.Put(testworld.Leases, of.DotNetPKOld(fmt.Sprint(i), f))
			}
			s := l.tick()
			if d := s.Decision; d.Replicas != 1 || !d.Active || s.Lag.Status() != changefeed.StatusUncheckpointed || *s.Lag.Lag() != 1 {
				t.Fatalf("poll %d: %d replicas, lag %d, %s; want one replica", poll, d.Replicas, *s.Lag.Lag(), s.Lag.Status())
			}
			why := ""
			for _, r := range s.Decision.Reasons {
				if r.Step == string(changefeed.StatusUncheckpointed) {
					why = r.Why
				}
			}
			if !strings.Contains(why, "300 of 300 partitions") || !strings.Contains(why, "first change") || !strings.Contains(why, "from the beginning") {
				t.Fatalf("reason %q", why)
			}
			time.Sleep(6 * time.Minute) // many cooldowns, in all
		}
	})
}

// TestAHandlerThatHangsBeforeItsFirstCheckpoint has a processor that starts from now: its lag is what has
// come since, and it is stalled like any other.
func TestAHandlerThatHangsBeforeItsFirstCheckpoint(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		l.start("host", l.hang, fromNow)
		time.Sleep(time.Second)
		l.tick()
		l.write(3206)
		time.Sleep(interval)
		s := l.tick()
		if *s.Lag.Lag() != 3206 || s.Decision.Replicas < 1 {
			t.Errorf("lag %d and %d replicas, while 3206 changes wait", *s.Lag.Lag(), s.Decision.Replicas)
		}
		l.watch(stalledAfter+time.Minute, 0, func(now state.State) { s = now })
		if shown(s) != "stalled hung" {
			t.Errorf("status %s after %s", shown(s), stalledAfter+time.Minute)
		}
	})
}

// scale starts and stops hosts as a scaler does that acts on decisions, one host at most.
type scale struct {
	*live
	change  func(*changefeedprocessor.Options)
	running *host
	started int
}

func (s *scale) to(replicas int) {
	s.t.Helper()
	switch {
	case replicas > 0 && s.running == nil:
		s.started++
		s.running = s.start(fmt.Sprint("host-", s.started), s.handle, s.change)
		time.Sleep(time.Second)
	case replicas == 0 && s.running != nil:
		s.end(s.running)
		s.running = nil
	}
}

// TestTheLossThatOneReplicaPrevents scales one processor by its decisions, and another one to zero
// because it is idle. The second loses changes: what is written while no replica runs is skipped for
// good (Azure/azure-cosmos-dotnet-v3#4342).
func TestTheLossThatOneReplicaPrevents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		change  func(*changefeedprocessor.Options)
		from    changefeed.StartFrom
		obey    bool // the decisions
		zero    bool // whether it goes to zero while it is idle
		handled int  // of the 5 written then
	}{
		{"from now, by the decisions: one replica stays, and nothing is lost", fromNow, changefeed.StartFrom{}, true, false, 5},
		{"from now, put to sleep all the same: all is lost", fromNow, changefeed.StartFrom{}, false, true, 0},
		{"from the beginning, by the decisions: it sleeps, wakes, and nothing is lost", nil, changefeed.StartFrom{Beginning: true}, true, true, 5},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 2, func(t *testing.T, l *live) {
				l.poller.Processors[0].StartFrom = c.from
				l.poller.Processors[0].Policy.Fallback = scaling.Fallback{}
				s := &scale{live: l, change: c.change}
				s.to(1)
				slept := false
				l.watch(20*time.Minute, 0, func(now state.State) {
					if c.obey {
						s.to(now.Decision.Replicas)
						slept = slept || now.Decision.Replicas == 0
					}
				})
				if !c.obey {
					s.to(0)
					slept = true
				}
				if slept != c.zero {
					t.Errorf("at zero replicas: %v, want %v", slept, c.zero)
				}
				l.write(5)
				l.watch(3*time.Minute, 0, func(now state.State) { s.to(now.Decision.Replicas) })
				if got := l.count(); got != c.handled {
					t.Errorf("%d of 5 changes were handled, want %d", got, c.handled)
				}
			})
		})
	}
}
