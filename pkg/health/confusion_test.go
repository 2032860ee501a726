package health_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// behaviour is what becomes of the processor of a leaseModel halfway through its run.
type behaviour int

const (
	fine    behaviour = iota // a batch takes some seconds
	slow                     // a batch takes up to four minutes, while changes keep coming
	throws                   // its handler throws
	hangs                    // its handler does not return
	idle                     // nothing arrives any more
	nobody                   // its hosts are stopped in order, or killed
	rewinds                  // somebody sets its lease back, or takes the continuation out of it
	moves                    // its lease is balanced between hosts that work
	behaviours
)

func (b behaviour) String() string {
	return [...]string{"fine", "slow", "throws", "hangs", "idle", "nobody", "rewinds", "moves"}[b]
}

// The intervals of the SDKs' defaults (azure-cosmos-dotnet-v3, ChangeFeedLeaseOptions.cs; the Java
// SDK has the same).
const (
	acquireInterval = 13 * time.Second
	renewInterval   = 17 * time.Second
	feedPollDelay   = 5 * time.Second
)

// leaseModel is one lease and its hosts. A handler that throws has its lease released within
// milliseconds; the next host to look for leases, which each does every acquireInterval, takes it
// again. An owner renews its lease, idle or hung, every renewInterval, and each checkpoint writes it,
// too. A host that is killed leaves its name in the lease.
type leaseModel struct {
	*rand.Rand
	becomes behaviour
	turn    time.Duration // when it does

	now                 time.Duration
	owner               string
	written             time.Duration
	session, checkpoint int64
	hosts               int

	renew, acquire, arrival, done, move time.Duration // when each happens next; never where negative
	batch                               int64         // LSN that the batch under way ends at; 0 where none is
	turned                              bool
}

const never = -time.Second

func newLeaseModel(seed uint64) *leaseModel {
	m := &leaseModel{Rand: rand.New(rand.NewPCG(seed, 0)), becomes: behaviour(seed % uint64(behaviours))}
	m.turn = 5*time.Minute + m.upTo(5*time.Minute)
	m.session = 1000
	m.checkpoint = m.session
	m.done, m.move = never, never
	m.hosts = 1 + m.IntN(4)
	m.take(0)
	m.arrival = m.upTo(time.Minute)
	return m
}

func (m *leaseModel) upTo(d time.Duration) time.Duration { return time.Duration(m.Int64N(int64(d))) }

// take gives the lease to one of the hosts, which looks into the feed at once.
func (m *leaseModel) take(at time.Duration) {
	m.owner, m.written = fmt.Sprint("host-", m.IntN(m.hosts)), at
	m.renew, m.acquire, m.done, m.batch = at+renewInterval, never, at, 0
}

// release gives the lease back, for the next host that looks for one.
func (m *leaseModel) release(at time.Duration) {
	m.owner, m.written = "", at
	m.renew, m.done, m.batch = never, never, 0
	m.acquire = at + acquireInterval
}

// until lets everything happen up to a time.
func (m *leaseModel) until(end time.Duration) {
	for {
		next, event := end+1, func() {}
		for _, e := range []struct {
			at time.Duration
			do func()
		}{
			{m.arrival, m.arrive}, {m.renew, m.renewed}, {m.acquire, func() { m.take(m.now) }}, {m.done, m.step}, {m.move, m.moved}, {m.turning(), m.turnInto},
		} {
			if e.at >= 0 && e.at < next {
				next, event = e.at, e.do
			}
		}
		if next > end {
			m.now = end
			return
		}
		m.now = next
		event()
	}
}

func (m *leaseModel) turning() time.Duration {
	if m.turned {
		return never
	}
	return m.turn
}

func (m *leaseModel) arrive() {
	m.session += 1 + m.Int64N(20)
	m.arrival = m.now + m.upTo(40*time.Second)
	if m.turned && m.becomes == idle {
		m.arrival = never
	}
}

func (m *leaseModel) renewed() { m.written, m.renew = m.now, m.now+renewInterval }

// step ends the batch under way, and begins the next one where something is pending.
func (m *leaseModel) step() {
	if m.batch > 0 {
		if m.turned && m.becomes == throws {
			m.release(m.now + m.upTo(10*time.Millisecond))
			return
		}
		m.checkpoint, m.written, m.batch = m.batch, m.now, 0
	}
	if m.checkpoint >= m.session {
		m.done = m.now + feedPollDelay
		return
	}
	m.batch = min(m.session, m.checkpoint+1+m.Int64N(30))
	m.done = m.now + time.Second + m.upTo(5*time.Second)
	switch {
	case m.turned && m.becomes == slow:
		m.done = m.now + time.Minute + m.upTo(3*time.Minute)
	case m.turned && m.becomes == throws:
		m.done = m.now + m.upTo(10*time.Millisecond)
	case m.turned && m.becomes == hangs:
		m.done = never
	}
}

// moved gives the lease to another host, as balancing does: one in each acquireInterval at most.
func (m *leaseModel) moved() {
	m.take(m.now)
	m.move = m.now + acquireInterval + m.upTo(2*time.Minute)
}

func (m *leaseModel) turnInto() {
	m.turned = true
	switch m.becomes {
	case nobody:
		killed := m.IntN(2) == 0
		owner, written := m.owner, m.written
		m.release(m.now)
		if m.acquire = never; killed {
			m.owner, m.written = owner, written
		}
	case rewinds:
		// By more than is done between two polls, with its hosts stopped; they are started again
		// later than the next poll.
		m.checkpoint -= 500 + m.Int64N(200)
		m.release(m.now)
		m.acquire = m.now + time.Minute + m.upTo(time.Minute)
	case moves:
		m.hosts = 2 + m.IntN(4)
		m.moved()
	}
}

// measure is what an estimator finds.
func (m *leaseModel) measure(at time.Time) changefeed.ProcessorLag {
	session, checkpoint, lag := m.session, m.checkpoint, m.session-m.checkpoint
	p := changefeed.Partition{
		Lease: "0", Owner: m.owner, LeaseTime: start.Add(m.written), Position: fmt.Sprint(checkpoint),
		Lag: &lag, SessionLSN: &session, CheckpointLSN: &checkpoint, Status: changefeed.StatusOK,
	}
	if lag > 0 {
		p.Status = changefeed.StatusLagging
	}
	return changefeed.ProcessorLag{Time: at, Partitions: []changefeed.Partition{p}}
}

// TestNoStallIsMissedAndNoneIsInvented_Long polls models at a random phase, for half an hour from the
// moment that their behaviour turns. What is wrong has to be shown within stalledAfter, a minute in
// which the lease of a killed host expires, and two intervals of polling, and as long as it lasts;
// anything else never.
func TestNoStallIsMissedAndNoneIsInvented_Long(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		interval time.Duration
		runs     uint64
	}{{15 * time.Second, 1000}, {5 * time.Second, 200}, {30 * time.Second, 400}, {time.Minute, 400}} {
		t.Run(c.interval.String(), func(t *testing.T) {
			t.Parallel()
			shown := [behaviours]map[string]int{}
			for seed := range c.runs {
				m := newLeaseModel(seed)
				if shown[m.becomes] == nil {
					shown[m.becomes] = map[string]int{}
				}
				watch(t, m, seed, c.interval, shown[m.becomes])
			}
			for b, want := range alarms {
				if shown[b][want] < int(c.runs) {
					t.Errorf("%s: the polls prove nothing: %v", b, shown[b])
				}
			}
		})
	}
}

// alarms are the statuses that tell a person that something is wrong, with the kind of a stall.
var alarms = map[behaviour]string{throws: "stalled/flapping", hangs: "stalled/hung", nobody: "unclaimed"}

// watch polls one model, and counts the alarms.
func watch(t *testing.T, m *leaseModel, seed uint64, interval time.Duration, shown map[string]int) {
	t.Helper()
	p := policy()
	want := alarms[m.becomes]
	s := tell(t, p)
	s.asked = start
	rewound, pendingSince := false, never
	for at := m.upTo(interval); at < m.turn+30*time.Minute; at += interval {
		m.until(at)
		s.now = start.Add(at)
		s.poll(0, m.measure)
		got, part := s.shown(), s.lag.Partitions[0]
		if at <= m.turn || !part.Pending() {
			pendingSince = never
		} else if pendingSince < 0 {
			pendingSince = at
		}
		alarm := got != "ok" && got != "lagging"
		if alarm {
			shown[got]++
		}
		rewound = rewound || part.Rewound != nil
		late := pendingSince >= 0 && at > pendingSince+p.StalledAfter+time.Minute+2*interval
		switch {
		case alarm && got != want:
			t.Fatalf("seed %d, %s at %s: false alarm: %s at %s", seed, m.becomes, m.turn, got, at)
		case alarm && at < m.turn+p.StalledAfter-15*time.Second: // less what a batch took that was under way
			t.Fatalf("seed %d, %s at %s: %s too early, at %s", seed, m.becomes, m.turn, got, at)
		case !alarm && want != "" && late:
			t.Fatalf("seed %d, %s at %s: missed: %s at %s", seed, m.becomes, m.turn, got, at)
		case part.Rewound != nil && m.becomes != rewinds:
			t.Fatalf("seed %d, %s at %s: rewound at %s", seed, m.becomes, m.turn, at)
		}
	}
	if m.becomes == rewinds && !rewound {
		t.Fatalf("seed %d: not seen to be rewound at %s", seed, m.turn)
	}
}
