package poller_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/state"
)

// leases writes the leases of the processor for the ranges, so many LSNs behind each.
func (l *live) leases(lsn int64, ranges ...string) {
	l.t.Helper()
	of := l.LeasesOf(projection, workerHost, "orders")
	for _, id := range ranges {
		l.Put(testworld.Leases, of.DotNetPKOld(id, leasefake.Fields{Owner: "host", Continuation: leasefake.At(lsn), Updated: time.Now()}))
	}
}

// done writes the leases at the newest LSN that a poll saw.
func (l *live) done(s state.State) {
	l.t.Helper()
	for _, p := range s.Lag.Partitions {
		l.leases(*p.SessionLSN, p.Lease)
	}
}

func TestNoPollScalesInWhileNothingIsKnownOfAPartition(t *testing.T) {
	noIncompletePollScalesIn(t, 0, 4)
}

func TestNoPollScalesInWhileNothingIsKnownOfAPartition_Long(t *testing.T) {
	noIncompletePollScalesIn(t, 4, 16)
}

// noIncompletePollScalesIn has a fleet of as many replicas as partitions, then nothing left to do, splits that
// nobody repairs, and one read that fails: whatever policy caps, smooths or floors the decision.
func noIncompletePollScalesIn(t *testing.T, from, to uint64) {
	t.Helper()
	t.Parallel()
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			partitions := 2 + random.IntN(5)
			inBubble(t, partitions, func(t *testing.T, l *live) {
				p := &l.poller.Processors[0].Policy
				p.Threshold = 1
				p.EvenPartitions, p.LimitToPartitionsWithLag = random.IntN(2) == 0, random.IntN(2) == 0
				p.ExcludeStalled, p.Cooldown = random.IntN(2) == 0, time.Duration(random.IntN(60))*time.Second
				if random.IntN(2) == 0 {
					p.MaxLeasesPerReplica = 1 + random.IntN(3)
				}
				var ids []string
				for i := range partitions {
					ids = append(ids, fmt.Sprint(i))
				}
				l.write(100 * partitions)
				l.leases(0, ids...)
				first := l.tick()
				before := first.Decision.Replicas
				if before < 2 {
					t.Fatalf("%d replicas, while %d partitions have changes pending", before, partitions)
				}
				l.done(first)
				var mu sync.Mutex
				failing := map[string]bool{}
				l.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					mu.Lock()
					defer mu.Unlock()
					if r.Kind == cosmosfake.ReadChangeFeed && failing[r.RangeID] {
						return &cosmosfake.Answer{Status: 403}
					}
					return nil
				})
				fail := func(id string) {
					mu.Lock()
					defer mu.Unlock()
					clear(failing)
					failing[id] = true
				}
				incomplete, victim := 0, ids[0]
				for range 40 {
					time.Sleep(interval)
					if random.IntN(4) == 0 { // a split, after which the lease of the parent stays
						i := random.IntN(len(ids))
						children, err := l.Account.Split(testworld.Database, "orders", ids[i])
						testworld.Must(t, err)
						ids = append(append(ids[:i:i], ids[i+1:]...), children...)
					}
					if random.IntN(12) == 0 || !slices.Contains(ids, victim) {
						victim = ids[random.IntN(len(ids))]
					}
					fail(victim)
					s := l.tick()
					unknown := slices.ContainsFunc(s.Lag.Partitions, func(p changefeed.Partition) bool {
						return !p.Known() && (p.Earlier == nil || p.Earlier.Lag == nil)
					})
					if unknown {
						incomplete++
						if s.Decision.Replicas < before {
							t.Fatalf("%d replicas after %d by an incomplete poll: %+v", s.Decision.Replicas, before, s.Decision.Reasons)
						}
					}
					before = s.Decision.Replicas
				}
				if incomplete < 10 {
					t.Errorf("%d polls were incomplete: the test proves nothing", incomplete)
				}
			})
		})
	}
}

// TestAReadingThatIsCarriedForTooLongIsNoReasonToScaleIn has zeros that the RU budget carries from tick
// to tick: beyond the scale-down window, at least a minute, nobody knows.
func TestAReadingThatIsCarriedForTooLongIsNoReasonToScaleIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		carried bool
		want    int // replicas after the cooldown
	}{
		{"what is read goes to zero after the cooldown", false, 0},
		{"what is carried does not", true, 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 2, func(t *testing.T, l *live) {
				l.write(500)
				l.leases(0, "0", "1")
				first := l.tick()
				if got := first.Decision.Replicas; got != 2 {
					t.Fatalf("%d replicas", got)
				}
				time.Sleep(interval)
				l.done(first)
				if got := l.tick().Decision.Replicas; got != 1 {
					t.Fatalf("%d replicas, want what remains until the cooldown", got)
				}
				before := l.poller.Processors[0].Account
				if c.carried {
					poor := l.client(cosmos.Options{Budget: 0.001})
					_, _, err := poor.Describe(t.Context(), l.poller.Processors[0].Container) // spends the budget of an hour
					testworld.Must(t, err)
					l.poller.Processors[0].Account, l.poller.Processors[0].LeaseAccount = poor, poor
				}
				poll := func(polls int) (replicas, carried int) {
					for range polls {
						time.Sleep(interval)
						s := l.tick()
						replicas, carried = s.Decision.Replicas, 0
						for i := range s.Lag.Partitions {
							if s.Lag.Partitions[i].Carried() {
								carried++
							}
						}
						if !s.Lag.Complete() {
							t.Fatalf("what is carried is unknown: %s", s.Lag.Problem())
						}
					}
					return replicas, carried
				}
				got, carried := poll(int(2 * cooldown / interval))
				if got != c.want || (carried == 2) != c.carried {
					t.Errorf("%d replicas with %d partitions carried, want %d", got, carried, c.want)
				}
				l.poller.Processors[0].Account, l.poller.Processors[0].LeaseAccount = before, before
				if got, carried := poll(1); got != 0 || carried != 0 {
					t.Errorf("%d replicas with %d partitions carried, once all are read again", got, carried)
				}
			})
		})
	}
}

// TestAPartitionIsReadInTurnThoughOthersTakeTheBudget has a budget that allows few reads in a tick.
func TestAPartitionIsReadInTurnThoughOthersTakeTheBudget(t *testing.T) {
	t.Parallel()
	inBubble(t, 8, func(t *testing.T, l *live) {
		account := l.client(cosmos.Options{Budget: 1})
		l.poller.Processors[0].Account, l.poller.Processors[0].LeaseAccount = account, account
		var ids []string
		for i := range 8 {
			ids = append(ids, fmt.Sprint(i))
		}
		last := map[string]time.Time{}
		for range 40 {
			l.write(40)
			l.leases(0, ids...)
			s := l.tick()
			if s.Lag.Error != "" {
				t.Fatal(s.Lag.Error)
			}
			for i := range s.Lag.Partitions {
				p := &s.Lag.Partitions[i]
				if at, ok := last[p.Lease]; ok && s.Lag.Time.Sub(at) > 10*time.Minute {
					t.Errorf("lease %s was last read %s ago", p.Lease, s.Lag.Time.Sub(at))
				}
				if p.Known() && !p.Carried() {
					last[p.Lease] = s.Lag.Time
				}
			}
			time.Sleep(interval)
		}
		if len(last) != len(ids) {
			t.Errorf("%d of %d leases were read in ten minutes", len(last), len(ids))
		}
	})
}
