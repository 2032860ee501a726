package health_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func policy(change ...func(*health.Policy)) health.Policy {
	p := health.Policy{StalledAfter: 5 * time.Minute, StalledPolls: 2, LeaseExpiration: time.Minute}
	for _, c := range change {
		c(&p)
	}
	return p
}

// measured is a measurement with one partition per lag; -1 is unknown.
func measured(at time.Time, lags ...int64) changefeed.ProcessorLag {
	l := changefeed.ProcessorLag{Time: at}
	for i, lag := range lags {
		p := changefeed.Partition{Lease: fmt.Sprint(i), Owner: "worker", LeaseTime: at, Status: changefeed.StatusOK}
		switch {
		case lag < 0:
			p.Status, p.Error = changefeed.StatusUnknown, "the account could not answer"
		case lag > 0:
			p.Status, p.Lag = changefeed.StatusLagging, &lag
		default:
			p.Lag = &lag
		}
		l.Partitions = append(l.Partitions, p)
	}
	return l
}

// story is one processor over several polls. Replicas are asked for from the first poll on that finds
// more than activation pending.
type story struct {
	t          *testing.T
	policy     health.Policy
	activation int64
	memory     health.Memory
	asked      time.Time
	now, last  time.Time
	lag        changefeed.ProcessorLag
}

func tell(t *testing.T, p health.Policy) *story { return &story{t: t, policy: p, now: start} }

// poll assesses at the given time after the last poll.
func (s *story) poll(after time.Duration, measure func(time.Time) changefeed.ProcessorLag) {
	s.now = s.now.Add(after)
	if s.last.After(s.now) {
		s.memory = s.memory.Until(s.now)
		if s.asked.After(s.now) {
			s.asked = s.now
		}
	}
	s.lag, s.memory = health.Assess(health.Input{Now: s.now, Lag: measure(s.now), Policy: s.policy, Asked: s.asked, Memory: s.memory})
	if lag := s.lag.Lag(); lag != nil && *lag > s.activation && s.asked.IsZero() {
		s.asked = s.now
	}
	s.last = s.now
}

// sight is what one poll finds of the one partition of a processor.
type sight struct {
	at       time.Duration // from the start
	lag      int64         // -1 is unknown; or unread
	position string
	owner    string
	written  time.Duration // when the lease was last written, from the start
	want     string        // status, with the kind of a stall behind a slash
}

// unread is the lag of a processor whose leases could not be read.
const unread = -2

// see polls what is in sight.
func (s *story) see(x sight, change ...func(*changefeed.ProcessorLag)) {
	s.poll(start.Add(x.at).Sub(s.now), func(at time.Time) changefeed.ProcessorLag {
		if x.lag == unread {
			return changefeed.ProcessorLag{Time: at, Error: "the account throttles"}
		}
		l := measured(at, x.lag)
		p := &l.Partitions[0]
		p.Position, p.Owner, p.LeaseTime = x.position, x.owner, start.Add(x.written)
		for _, c := range change {
			c(&l)
		}
		return l
	})
}

// shown is the status of the first partition, with the kind of a stall.
func (s *story) shown() string {
	if len(s.lag.Partitions) == 0 {
		return ""
	}
	p := s.lag.Partitions[0]
	if p.Stall == nil {
		return string(p.Status)
	}
	return fmt.Sprintf("%s/%s", p.Status, p.Stall.Kind)
}

// every is the same sight at intervals, its lease written so long before each.
func every(interval, from, to, age time.Duration, x sight) (all []sight) {
	for at := from; at <= to; at += interval {
		x.at, x.written = at, at-age
		all = append(all, x)
	}
	return all
}

func then(parts ...[]sight) (all []sight) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// alternately is a sight at intervals, between each two of which a poll does not know the partition.
func alternately(interval, to time.Duration, look func(at time.Duration) sight) (all []sight) {
	for at := time.Duration(0); at <= to; at += 2 * interval {
		x := look(at)
		all = append(all, x)
		x.at, x.written, x.lag, x.want = at+interval, at+interval, -1, "unknown"
		all = append(all, x)
	}
	return all
}

// TestStatus is the evaluation of a partition by earlier polls; stalledAfter is 5 minutes.
func TestStatus(t *testing.T) {
	t.Parallel()
	const s, m, h = time.Second, time.Minute, time.Hour
	for _, c := range []struct {
		rule   string
		sights []sight
	}{
		{"1: nothing pending is ok, whoever owns it", []sight{{0, 0, "1", "", -h, "ok"}}},
		{"2: pending and owned is lagging", []sight{{0, 5, "1", "w", 0, "lagging"}}},
		{"3: pending and not owned yet is lagging", []sight{{0, 5, "1", "", -h, "lagging"}}},
		{"4: no progress for stalledAfter is stalled", []sight{
			{0, 5, "1", "w", 0, "lagging"},
			{299 * s, 9, "1", "w", 299 * s, "lagging"},
			{5 * m, 9, "1", "w", 5 * m, "stalled/hung"},
		}},
		{"5: progress ends it, though lag grows", []sight{
			{0, 5, "1", "w", 0, "lagging"},
			{300 * s, 9, "1", "w", 300 * s, "stalled/hung"},
			{330 * s, 90, "2", "w", 330 * s, "lagging"},
			{629 * s, 90, "2", "w", 629 * s, "lagging"},
			{630 * s, 90, "2", "w", 630 * s, "stalled/hung"},
		}},
		{"6: time without anything pending does not count", []sight{
			{0, 0, "1", "w", 0, "ok"},
			{h, 5, "1", "w", h, "lagging"},
			{h + 299*s, 5, "1", "w", h + 299*s, "lagging"},
		}},
		{"7: time until a poll that does not know the partition does not count: whatever refused that poll may have refused the owner", []sight{
			{0, 5, "1", "w", 0, "lagging"},
			{100 * s, 5, "1", "w", 100 * s, "lagging"},
			{400 * s, -1, "1", "w", 400 * s, "unknown"},
			{415 * s, 5, "1", "w", 415 * s, "lagging"},
			{599 * s, 5, "1", "w", 599 * s, "lagging"},
			{600 * s, 5, "1", "w", 600 * s, "stalled/hung"}, // 100 s before, 200 s after
			{615 * s, -1, "1", "w", 615 * s, "unknown"},
			{630 * s, 5, "1", "w", 630 * s, "stalled/hung"},
		}},
		{"8: an owner who is hardly ever seen, though the lease is written to again and again, is stalled", then(
			every(15*s, 0, 285*s, 3*s, sight{lag: 5, position: "1", want: "lagging"}),
			every(15*s, 315*s, 900*s, 3*s, sight{lag: 5, position: "1", want: "stalled/flapping"}),
		)},
		{"9: an owner who is seen now and then does not start the time again", []sight{
			{0, 5, "1", "w", 0, "lagging"},
			{100 * s, 5, "1", "", 99 * s, "lagging"},
			{200 * s, 5, "1", "v", 200 * s, "lagging"},
			{300 * s, 5, "1", "", 299 * s, "stalled/flapping"},
		}},
		{"10: nor does one poll that finds nobody, and an unchanged lease", []sight{
			{0, 5, "1", "w", 0, "lagging"},
			{100 * s, 5, "1", "", 99 * s, "lagging"},
			{110 * s, 5, "1", "", 99 * s, "lagging"},
			{120 * s, 5, "1", "", 119 * s, "lagging"},
			{300 * s, 5, "1", "", 299 * s, "stalled/flapping"},
		}},
		{"11: an owner who keeps the lease after others did is hung", []sight{
			{0, 5, "1", "a", 0, "lagging"},
			{100 * s, 5, "1", "b", 100 * s, "lagging"},
			{300 * s, 5, "1", "b", 300 * s, "stalled/hung"},
		}},
		{"12: owners that follow each other are flapping", []sight{
			{0, 5, "1", "a", 0, "lagging"},
			{200 * s, 5, "1", "b", 200 * s, "lagging"},
			{300 * s, 5, "1", "a", 300 * s, "stalled/flapping"},
		}},
		{"13: nobody for stalledAfter after replicas were asked for is unclaimed", []sight{
			{0, 5, "1", "", -h, "lagging"},
			{299 * s, 5, "1", "", -h, "lagging"},
			{300 * s, 5, "1", "", -h, "unclaimed"},
			{315 * s, 5, "1", "w", 315 * s, "lagging"},
		}},
		{"14: so is one whose owner is gone", []sight{
			{0, 5, "1", "w", 0, "lagging"},
			{60 * s, 5, "1", "w", 0, "lagging"}, // the last that finds the lease not expired
			{70 * s, 5, "1", "w", 0, "lagging"},
			{369 * s, 5, "1", "w", 0, "lagging"},
			{370 * s, 5, "1", "w", 0, "unclaimed"},
		}},
		{"15: time with nobody does not count as stalled: at most the minute in which a lease expires", []sight{
			{0, 5, "1", "", -h, "lagging"},
			{h, 5, "1", "", -h, "unclaimed"},
			{h + m, 5, "1", "w", h + m, "lagging"},
			{h + 2*m, 5, "1", "w", h + m, "lagging"},
			{h + 3*m, 5, "1", "w", h + m, "lagging"},
			{2 * h, 5, "1", "w", h + m, "unclaimed"},
			{2*h + m, 5, "1", "w", 2*h + m, "lagging"},         // 1 minute, and 1 more
			{2*h + 239*s, 5, "1", "w", 2*h + 239*s, "lagging"}, // 179 s more
			{2*h + 4*m, 5, "1", "w", 2*h + 4*m, "stalled/hung"},
		}},
		{"16: a lease written to before changes were pending says nothing", []sight{
			{0, 0, "1", "w", 0, "ok"},
			{15 * s, 5, "1", "", 10 * s, "lagging"}, // given back, in order
			{310 * s, 5, "1", "", 10 * s, "lagging"},
			{315 * s, 5, "1", "", 10 * s, "unclaimed"},
		}},
		{"17: what was stalled and is left by everybody is unclaimed after stalledAfter", []sight{
			{0, 5, "1", "w", 0, "lagging"},
			{300 * s, 5, "1", "w", 300 * s, "stalled/hung"},
			{400 * s, 5, "1", "", 310 * s, "stalled/flapping"}, // given back just now
			{500 * s, 5, "1", "", 310 * s, "stalled/flapping"},
			{799 * s, 5, "1", "", 310 * s, "stalled/flapping"},
			{800 * s, 5, "1", "", 310 * s, "unclaimed"},
			{815 * s, 5, "1", "v", 815 * s, "stalled/flapping"},
		}},
		{"18: polls that are further apart than stalledAfter see it, too", []sight{
			{0, 5, "1", "", -s, "lagging"},
			{h, 5, "1", "", h - s, "lagging"},
			{2 * h, 5, "1", "", 2*h - s, "stalled/flapping"},
		}},
		{"19: an owner whose clock is behind is no owner that is gone", then(
			every(15*s, 0, 300*s, 10*m, sight{lag: 5, position: "1", owner: "w", want: "lagging"}),
			every(15*s, 315*s, 600*s, 10*m, sight{lag: 5, position: "1", owner: "w", want: "stalled/hung"}),
		)},
		{"20: nor does time until a poll that could not read the leases", then(
			every(15*s, 0, 60*s, 0, sight{lag: 5, position: "1", owner: "w", want: "lagging"}),
			every(15*s, 75*s, 900*s, 0, sight{lag: unread}),
			every(15*s, 915*s, 1125*s, 0, sight{lag: 5, position: "1", owner: "w", want: "lagging"}),
			every(15*s, 1140*s, 1200*s, 0, sight{lag: 5, position: "1", owner: "w", want: "stalled/hung"}),
		)},
		{"21: a hang is seen in twice the time if every other poll fails", alternately(15*s, 900*s, func(at time.Duration) sight {
			if at < 600*s {
				return sight{at, 5, "1", "w", at, "lagging"}
			}
			return sight{at, 5, "1", "w", at, "stalled/hung"}
		})},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			st := tell(t, policy())
			for _, x := range c.sights {
				st.see(x)
				if got := st.shown(); got != x.want {
					t.Errorf("at %s: %s, want %s", x.at, got, x.want)
				}
			}
		})
	}
}

func TestUnclaimedNeedsReplicasThatWereAskedFor(t *testing.T) {
	t.Parallel()
	s := tell(t, policy())
	s.activation = 10
	for _, x := range []sight{
		{0, 5, "1", "", -time.Hour, "lagging"},
		{time.Hour, 5, "1", "", -time.Hour, "lagging"}, // at zero replicas, on purpose
		{2 * time.Hour, 50, "1", "", -time.Hour, "lagging"},
		{2*time.Hour + 299*time.Second, 50, "1", "", -time.Hour, "lagging"},
		{2*time.Hour + 300*time.Second, 50, "1", "", -time.Hour, "unclaimed"},
	} {
		s.see(x)
		if got := s.shown(); got != x.want {
			t.Errorf("at %s: %s, want %s", x.at, got, x.want)
		}
	}
}

func TestAStallSaysSinceWhenAndNamesItsOwners(t *testing.T) {
	t.Parallel()
	s := tell(t, policy())
	const m = time.Minute
	s.see(sight{0, 5, "1", "", -time.Hour, ""})
	for i, owner := range []string{"g", "b", "", "f", "a", "b", "e", "d", "c"} {
		at := time.Duration(i+1) * m
		s.see(sight{at, 5, "1", owner, at, ""})
	}
	want := &changefeed.Stall{Kind: changefeed.StallFlapping, Since: start.Add(m), Owners: []string{"a", "b", "e", "d", "c"}}
	if got := s.lag.Partitions[0].Stall; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestWorstStatus: of several, a partition has the first of changefeed.Statuses.
func TestWorstStatus(t *testing.T) {
	t.Parallel()
	day := func(l *changefeed.ProcessorLag) { l.Retention = 24 * time.Hour }
	aged := func(hours float64) func(*changefeed.ProcessorLag) {
		age := int64(hours * 3600)
		return func(l *changefeed.ProcessorLag) { l.Partitions[0].Age = &age }
	}
	splitting := func(l *changefeed.ProcessorLag) { l.Partitions[0].Status = changefeed.StatusSplitting }
	const h = time.Hour
	for _, c := range []struct {
		rule   string
		policy func(*health.Policy)
		change []func(*changefeed.ProcessorLag)
		sights []sight
	}{
		{"younger than three quarters of the retention is lagging", nil, []func(*changefeed.ProcessorLag){day, aged(18)}, []sight{{0, 5, "1", "w", 0, "lagging"}}},
		{"older is expiring", nil, []func(*changefeed.ProcessorLag){day, aged(18.01)}, []sight{{0, 5, "1", "w", 0, "expiring"}}},
		{"without a retention nothing is", nil, []func(*changefeed.ProcessorLag){aged(1e6)}, []sight{{0, 5, "1", "w", 0, "lagging"}}},
		{
			"the retention of the policy counts before that of the container", func(p *health.Policy) { p.Retention = 10 * h },
			[]func(*changefeed.ProcessorLag){day, aged(8)}, []sight{{0, 5, "1", "w", 0, "expiring"}},
		},
		{"nothing pending has no age", nil, []func(*changefeed.ProcessorLag){day}, []sight{{0, 0, "1", "w", 0, "ok"}}},
		{"stalled before expiring", nil, []func(*changefeed.ProcessorLag){day, aged(23)}, []sight{{0, 5, "1", "w", 0, "expiring"}, {h, 5, "1", "w", h, "stalled/hung"}}},
		{"expiring before unclaimed", nil, []func(*changefeed.ProcessorLag){day, aged(23)}, []sight{{0, 5, "1", "", -h, "expiring"}, {h, 5, "1", "", -h, "expiring"}}},
		{"stalled before splitting", nil, []func(*changefeed.ProcessorLag){splitting}, []sight{{0, 5, "1", "w", 0, "splitting"}, {h, 5, "1", "w", h, "stalled/hung"}}},
		{"splitting before unclaimed", nil, []func(*changefeed.ProcessorLag){splitting}, []sight{{0, 5, "1", "", -h, "splitting"}, {h, 5, "1", "", -h, "splitting"}}},
		{"unknown before all", nil, []func(*changefeed.ProcessorLag){day, aged(23)}, []sight{{0, 5, "1", "w", 0, "expiring"}, {h, -1, "1", "w", h, "unknown"}}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p := policy()
			if c.policy != nil {
				c.policy(&p)
			}
			s := tell(t, p)
			for _, x := range c.sights {
				s.see(x, c.change...)
				if got := s.shown(); got != x.want {
					t.Errorf("at %s: %s, want %s", x.at, got, x.want)
				}
			}
		})
	}
	t.Run("a status that wakes is kept where another one hides it", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.see(sight{0, 5, "1", "w", 0, ""}, splitting)
		s.see(sight{h, 5, "1", "w", h, ""}, splitting)
		if got, wakes := s.shown(), s.lag.Partitions[0].Wakes(); got != "stalled/hung" || wakes != changefeed.StatusSplitting {
			t.Errorf("%s, woken by %q", got, wakes)
		}
	})
}

func TestRewound(t *testing.T) {
	t.Parallel()
	type found struct {
		at         time.Duration
		checkpoint int64 // 0 is none
		want       string
	}
	const h = time.Hour
	for _, c := range []struct {
		rule  string
		polls []found
	}{
		{"a checkpoint that moves on is not", []found{{0, 100, ""}, {h, 100, ""}, {2 * h, 101, ""}}},
		{"one below the one before is, for an hour", []found{
			{0, 100, ""}, {time.Minute, 40, "100 to 40 at 1m0s"}, {h, 60, "100 to 40 at 1m0s"}, {h + 59*time.Second, 60, "100 to 40 at 1m0s"}, {h + time.Minute, 60, ""},
		}},
		{"one that is gone is", []found{{0, 100, ""}, {time.Minute, 0, "100 to 0 at 1m0s"}, {2 * time.Minute, 0, "100 to 0 at 1m0s"}, {2 * h, 0, ""}}},
		{"the first checkpoint of a lease is not", []found{{0, 0, ""}, {time.Minute, 100, ""}}},
		{"the last of several counts", []found{{0, 100, ""}, {time.Minute, 40, "100 to 40 at 1m0s"}, {2 * time.Minute, 30, "40 to 30 at 2m0s"}}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := tell(t, policy())
			for _, f := range c.polls {
				s.see(sight{at: f.at, lag: 5, owner: "w", written: f.at}, func(l *changefeed.ProcessorLag) {
					if f.checkpoint > 0 {
						l.Partitions[0].CheckpointLSN, l.Partitions[0].Position = &f.checkpoint, fmt.Sprint(f.checkpoint)
					}
				})
				got := ""
				if r := s.lag.Partitions[0].Rewound; r != nil {
					got = fmt.Sprintf("%d to %d at %s", r.From, r.To, r.Time.Sub(start))
				}
				if got != f.want {
					t.Errorf("at %s: %q, want %q", f.at, got, f.want)
				}
			}
		})
	}
	t.Run("an unknown partition shows it too, and a carried one is not compared", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		at := func(at time.Duration, lag, checkpoint int64, change func(*changefeed.Partition)) string {
			s.see(sight{at: at, lag: lag, position: "p", owner: "w", written: at}, func(l *changefeed.ProcessorLag) {
				l.Partitions[0].CheckpointLSN = &checkpoint
				change(&l.Partitions[0])
			})
			return fmt.Sprint(s.lag.Partitions[0].Rewound != nil)
		}
		plain := func(*changefeed.Partition) {}
		got := []string{
			at(0, 5, 100, plain),
			at(time.Minute, 5, 50, func(p *changefeed.Partition) { p.Measured = start }),
			at(2*time.Minute, 5, 50, plain),
			at(3*time.Minute, -1, 50, plain),
			at(2*h, -1, 50, plain),
		}
		if want := "false false true true false"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestUncheckpointed: the position of a lease without a continuation is in its owner's memory.
func TestUncheckpointed(t *testing.T) {
	t.Parallel()
	type found struct {
		at      time.Duration
		owner   string
		session int64
		lag     int64
		want    string
	}
	const s, m = time.Second, time.Minute
	for _, c := range []struct {
		rule  string
		polls []found
	}{
		{"nothing is pending at the first poll that sees its owner", []found{{0, "w", 500, 0, "uncheckpointed"}}},
		{"what its range advances from then on is", []found{{0, "w", 500, 0, "uncheckpointed"}, {m, "w", 500, 0, "uncheckpointed"}, {2 * m, "w", 507, 7, "uncheckpointed"}}},
		{"another owner began at its own now", []found{{0, "w", 500, 0, "uncheckpointed"}, {m, "w", 507, 7, "uncheckpointed"}, {2 * m, "v", 509, 0, "uncheckpointed"}, {3 * m, "v", 510, 1, "uncheckpointed"}}},
		{"so did an owner that came back", []found{{0, "w", 500, 0, "uncheckpointed"}, {m, "", 507, 0, "uncheckpointed"}, {2 * m, "w", 509, 0, "uncheckpointed"}, {3 * m, "w", 510, 1, "uncheckpointed"}}},
		{"nothing is pending where nobody owns it", []found{{0, "", 500, 0, "uncheckpointed"}, {m, "", 507, 0, "uncheckpointed"}, {10 * m, "", 907, 0, "uncheckpointed"}}},
		{"a replica of the service that is behind takes nothing back", []found{{0, "w", 500, 0, "uncheckpointed"}, {m, "w", 490, 0, "uncheckpointed"}, {2 * m, "w", 507, 7, "uncheckpointed"}}},
		{"one whose range advanced while it was owned stalls", []found{
			{0, "w", 500, 0, "uncheckpointed"}, {10 * m, "w", 500, 0, "uncheckpointed"},
			{11 * m, "w", 501, 1, "uncheckpointed"}, {11*m + 299*s, "w", 501, 1, "uncheckpointed"}, {16 * m, "w", 501, 1, "stalled/hung"},
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			st := tell(t, policy())
			for _, f := range c.polls {
				st.see(sight{at: f.at, owner: f.owner, written: f.at}, uncheckpointed(f.session))
				p := st.lag.Partitions[0]
				if got := st.shown(); got != f.want || *p.Lag != f.lag || !p.Approximate {
					t.Errorf("at %s: %s, lag %d, approximate %v; want %s, %d", f.at, got, *p.Lag, p.Approximate, f.want, f.lag)
				}
			}
		})
	}
	t.Run("a poll that does not know the partition keeps what its owner began with", func(t *testing.T) {
		t.Parallel()
		st := tell(t, policy())
		st.see(sight{owner: "w"}, uncheckpointed(500))
		st.see(sight{at: m, lag: -1, owner: "w", written: m})
		st.see(sight{at: 2 * m, owner: "w", written: 2 * m}, uncheckpointed(507))
		if lag := *st.lag.Partitions[0].Lag; lag != 7 {
			t.Errorf("a lag of %d, want 7", lag)
		}
	})
}

// uncheckpointed makes the first partition one whose lease has no continuation.
func uncheckpointed(session int64) func(*changefeed.ProcessorLag) {
	return func(l *changefeed.ProcessorLag) { uncheckpointedPartition(&l.Partitions[0], session) }
}

func uncheckpointedPartition(p *changefeed.Partition, session int64) {
	p.Lag, p.SessionLSN, p.Approximate, p.Status = new(int64), &session, true, changefeed.StatusUncheckpointed
}

func TestStalledTakesSoManyPolls(t *testing.T) {
	t.Parallel()
	s := tell(t, policy(func(p *health.Policy) { p.StalledPolls = 3 }))
	for i, want := range []changefeed.Status{"lagging", "lagging", "stalled"} {
		s.poll(time.Hour, func(at time.Time) changefeed.ProcessorLag { return measured(at, 5) })
		if got := s.lag.Partitions[0].Status; got != want {
			t.Errorf("poll %d: %s, want %s", i+1, got, want)
		}
	}
}
