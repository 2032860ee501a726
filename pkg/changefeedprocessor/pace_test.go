package changefeedprocessor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// latency is what every request for a document takes in these tests. Hosts that start at once reach for
// the same leases only as long as requests take time.
const latency = 2 * time.Millisecond

// late has the account take that time. Requests for a container take none: azcosmos makes them while it
// holds a mutex, and the clock of a bubble stands still while anybody waits for one.
func late(r *cosmosfake.Request) *cosmosfake.Answer {
	switch r.Kind {
	case cosmosfake.ReadAccount, cosmosfake.ReadContainer, cosmosfake.ReadRanges:
		return nil
	}
	return &cosmosfake.Answer{Delay: latency}
}

// lookEvery is how exactly these tests tell when leases are spread.
const lookEvery = 500 * time.Millisecond

// interval is .NET's between two looks for leases to take.
const interval = 13 * time.Second

// settled is how long hosts run before anything happens. The first of them has then just renewed
// its leases: it does so 8.5 s behind its start and every 17 s from then on, and the start of the
// others took 13 s.
const settled = 64 * time.Second

// idle has a host look for changes, of which there are none here, once in a while.
func idle(o *changefeedprocessor.Options) { o.PollInterval = time.Hour }

// evenly starts hosts that have the same number of leases each, since they find those that carry
// their names, and that look for more in turn, as hosts do that were not started at once.
func (s *shop) evenly(n int) (hosts []*running) {
	s.t.Helper()
	i := 0
	for _, l := range s.leases() {
		if n > 0 {
			l.Owner = new(fmt.Sprint("before-", i%n))
			l.Stamp(time.Now())
			s.Put(testworld.Leases, l)
			i++
		}
	}
	for i := range n {
		hosts = append(hosts, s.host(fmt.Sprint("before-", i), idle))
		time.Sleep(interval / time.Duration(n))
	}
	return hosts
}

// spread waits until each of some hosts has its share of the leases and nobody else has any, and
// returns how long that took.
func (s *shop) spread(leases, hosts int) time.Duration {
	s.t.Helper()
	began := time.Now()
	for {
		owners := s.owners()
		even := len(owners) == hosts && owners[""] == 0
		for _, n := range owners {
			even = even && (n == leases/hosts || n == (leases+hosts-1)/hosts)
		}
		took := time.Since(began)
		switch {
		case even:
			return took
		case took > 10*time.Minute:
			s.t.Fatalf("after %s the leases are spread as %v, want them even over %d hosts", took, owners, hosts)
		}
		time.Sleep(lookEvery)
	}
}

// TestLeasesMoveAtThePaceOfDotNet_Long holds what was measured of Microsoft.Azure.Cosmos 3.64.0 with its
// default times and 32 leases, within one acquire interval. Hosts of .NET that start at once reach for
// the same leases, and whoever loses waits for the next interval: there the pace is a bound.
func TestLeasesMoveAtThePaceOfDotNet_Long(t *testing.T) {
	t.Parallel()
	const leases = 32
	for _, c := range []struct {
		rule       string
		before     int // hosts
		start      int
		stop, kill int
		want       time.Duration
		bound      bool // faster is as well
	}{
		{"a host that is alone takes all at once", 0, 1, 0, 0, 900 * time.Millisecond, true},
		{"each new host steals one lease per acquire interval", 1, 3, 0, 0, 105 * time.Second, false},
		{"of hosts that start at once the first one takes all", 0, 4, 0, 0, 132 * time.Second, true},
		{"more new hosts together steal faster", 0, 8, 0, 0, 109 * time.Second, true},
		{"what a host gives back as it stops is taken with the next look", 4, 0, 1, 0, interval, false},
		{"what a killed host had is taken once it has expired", 3, 0, 0, 1, 65 * time.Second, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, leases, func(t *testing.T, s *shop) {
				s.create()
				s.Account.Control(late)
				hosts := s.evenly(c.before)
				time.Sleep(settled)
				for i := range c.start {
					hosts = append(hosts, s.host(fmt.Sprint("new-", i), idle))
				}
				for range c.stop {
					s.stopAll(hosts[0])
					hosts = hosts[1:]
				}
				for range c.kill {
					hosts[0].kill()
					hosts = hosts[1:]
				}
				took := s.spread(leases, len(hosts))
				if took > c.want+interval || took < c.want-interval && !c.bound {
					t.Errorf("it took %s, want %s, or %s more or less", took, c.want, interval)
				}
			})
		})
	}
}
