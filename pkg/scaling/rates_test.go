package scaling_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// reading is what a poll finds about one partition.
type reading struct {
	session, checkpoint int64 // LSNs; what lies between is the lag; 0 is none
	owner               string
	renewed             time.Duration // ago
}

// unread is a partition that could not be measured.
var unread = reading{session: -1}

// readings is a measurement of these partitions, and of idle ones up to 20.
func readings(at time.Time, partitions []reading) changefeed.ProcessorLag {
	l := changefeed.ProcessorLag{Time: at}
	for i := range 20 {
		p := changefeed.Partition{Lease: fmt.Sprint(i), Status: changefeed.StatusOK, Lag: new(int64)}
		if i < len(partitions) {
			r := partitions[i]
			p.Owner, p.LeaseTime = r.owner, at.Add(-r.renewed)
			p.SessionLSN, p.CheckpointLSN, p.Position = &r.session, &r.checkpoint, fmt.Sprint(r.checkpoint)
			*p.Lag = r.session - r.checkpoint
			switch {
			case r == unread:
				p.Lag, p.SessionLSN, p.CheckpointLSN = nil, nil, nil
				p.Status, p.Error = changefeed.StatusUnknown, "the account could not answer"
			case *p.Lag > 0:
				p.Status = changefeed.StatusLagging
			}
		}
		l.Partitions = append(l.Partitions, p)
	}
	return l
}

// TestCatchUpWithin is step 3. The threshold is so high that step 2 asks for one replica;
// catchUpWithin is 100 s.
func TestCatchUpWithin(t *testing.T) {
	t.Parallel()
	type tick struct {
		after time.Duration
		found []reading
		want  string
	}
	within := func(change ...func(*scaling.Policy)) scaling.Policy {
		p := unlimited()
		p.Threshold, p.CatchUpWithin = 10_000, 100*time.Second
		for _, c := range change {
			c(&p)
		}
		return p
	}
	const s10 = 10 * time.Second
	for _, c := range []struct {
		rule   string
		policy scaling.Policy
		ticks  []tick
	}{
		{
			// 2,100 in 100 s are 21 a second, 20 arrive, and one of two owners does 5: 41 / 5.
			"as many replicas as work off the lag and what arrives meanwhile", within(), []tick{
				{0, []reading{{2000, 1000, "a", 0}, {2000, 1000, "b", 0}}, "1 active 2000 out [threshold=1]"},
				{s10, []reading{{2100, 1050, "a", 0}, {2100, 1050, "b", 0}}, "9 active 2100 out [threshold=1 catchUpWithin=9]"},
			},
		},
		{
			// 1,500 in 100 s are 15 a second, none arrive, one owner does 10.
			"nothing arrives: the lag alone", within(), []tick{
				{0, []reading{{2600, 1000, "a", 0}}, "1 active 1600 out [threshold=1]"},
				{s10, []reading{{2600, 1100, "a", 0}}, "2 active 1500 out [threshold=1 catchUpWithin=2]"},
			},
		},
		{"no rate at the first poll, no effect", within(), []tick{
			{0, []reading{{2000, 1500, "a", 0}}, "1 active 500 out [threshold=1]"},
		}},
		{"no rate while the checkpoint stands still, no effect", within(), []tick{
			{0, []reading{{2000, 1000, "a", 0}}, "1 active 1000 out [threshold=1]"},
			{s10, []reading{{6000, 1000, "a", 0}}, "1 active 5000 none [threshold=1]"},
		}},
		{"no rate without a live owner, no effect", within(), []tick{
			{0, []reading{{2000, 1000, "a", 0}}, "1 active 1000 out [threshold=1]"},
			{s10, []reading{{6000, 1100, "a", 61 * time.Second}}, "1 active 4900 none [threshold=1]"},
		}},
		{"no rate of two polls at the same instant, no effect", within(), []tick{
			{0, []reading{{2000, 1000, "a", 0}}, "1 active 1000 out [threshold=1]"},
			{0, []reading{{6000, 1100, "a", 0}}, "1 active 4900 none [threshold=1]"},
		}},
		{"no rate of a partition seen for the first time, no effect", within(), []tick{
			{0, nil, "0 inactive 0 none [activation=0]"},
			{s10, []reading{{6000, 1100, "a", 0}}, "1 active 4900 out [threshold=1]"},
		}},
		{"a span that began with nothing pending says nothing about the drain rate", within(), []tick{
			{0, []reading{{2000, 2000, "a", 0}}, "0 inactive 0 none [activation=0]"},
			{s10, []reading{{10000, 2100, "a", 0}}, "1 active 7900 out [threshold=1]"},
		}},
		{"nor does one that ended so: the owner may have been idle for most of it", within(), []tick{
			{0, []reading{{2000, 1900, "a", 0}}, "1 active 100 out [threshold=1]"},
			{s10, []reading{{2100, 2100, "a", 0}}, "1 inactive 0 none [activation=0 cooldown=1]"},
			{s10, []reading{{10000, 2100, "a", 0}}, "1 active 7900 none [threshold=1]"},
		}},
		{
			// One owner did 10 a second before the pause; then 1,000 in 100 s are 10 a second, and
			// 100 a second have arrived.
			"the drain that was found last is kept", within(), []tick{
				{0, []reading{{2000, 1000, "a", 0}}, "1 active 1000 out [threshold=1]"},
				{s10, []reading{{2000, 1100, "a", 0}}, "1 active 900 none [threshold=1]"},
				{s10, []reading{{2000, 2000, "a", 0}}, "1 inactive 0 none [activation=0 cooldown=1]"},
				{s10, []reading{{3000, 2000, "a", 0}}, "11 active 1000 out [threshold=1 catchUpWithin=11]"},
			},
		},
		{
			"an owner counts once, whatever the number of its leases", within(), []tick{
				{0, []reading{{2000, 1000, "a", 0}, {2000, 1000, "a", 0}}, "1 active 2000 out [threshold=1]"},
				{s10, []reading{{2100, 1050, "a", 0}, {2100, 1050, "a", 0}}, "5 active 2100 out [threshold=1 catchUpWithin=5]"},
			},
		},
		{
			// 1,100 in 100 s are 11 a second, one owner does 5.
			"LSNs that went back count as no arrival", within(), []tick{
				{0, []reading{{6000, 1000, "a", 0}}, "1 active 5000 out [threshold=1]"},
				{s10, []reading{{2150, 1050, "a", 0}}, "3 active 1100 out [threshold=1 catchUpWithin=3]"},
			},
		},
		{
			// 1,800 in 100 s are 18 a second; in 20 s 1,000 arrived and 200 were done: 68 / 10.
			"a partition that was unknown for a poll is measured over both spans", within(), []tick{
				{0, []reading{{2000, 1000, "a", 0}}, "1 active 1000 out [threshold=1]"},
				{s10, []reading{unread}, "1 active 1000 none [activation=0 incomplete=1]"},
				{s10, []reading{{3000, 1200, "a", 0}}, "7 active 1800 out [threshold=1 catchUpWithin=7]"},
			},
		},
		{
			// 100 per second arrive and are processed. The formula asks for 105 per second, and one
			// owner was seen to do 100; with two or three owners it would ask for one more again.
			"owners that keep up: no more replicas than owners", within(), []tick{
				{0, []reading{{2000, 1500, "a", 0}}, "1 active 500 out [threshold=1]"},
				{s10, []reading{{3000, 2500, "a", 0}}, "1 active 500 none [threshold=1 catchUpWithin=1]"},
				{s10, []reading{{4000, 3500, "a", 0}}, "1 active 500 none [threshold=1 catchUpWithin=1]"},
			},
		},
		{
			// Little arrives and there is no owner: 1 in 100 s and the 0.5 per second that arrive
			// are a tenth of what one was seen to do before.
			"without a live owner nobody keeps up, and the formula counts", within(), []tick{
				{0, []reading{{2000, 1000, "a", 0}}, "1 active 1000 out [threshold=1]"},
				{s10, []reading{{2000, 1100, "a", 0}}, "1 active 900 none [threshold=1]"},
				{s10, []reading{{2000, 2000, "", 0}}, "1 inactive 0 none [activation=0 cooldown=1]"},
				{s10, []reading{{2005, 2000, "", 0}}, "1 active 5 none [threshold=1]"},
			},
		},
		{
			// As before, but what is processed falls short of what arrives by a fifth and slightly
			// more than the slack.
			"an owner that does not keep up: the formula counts", within(), []tick{
				{0, []reading{{2000, 1500, "a", 0}}, "1 active 500 out [threshold=1]"},
				{s10, []reading{{3000, 2289, "a", 0}}, "2 active 711 out [threshold=1 catchUpWithin=2]"},
			},
		},
		{
			// What is pending drains in 200 s, not in 100.
			"owners that keep up more slowly than catchUpWithin asks for: the formula counts", within(), []tick{
				{0, []reading{{2000, 1500, "a", 0}}, "1 active 500 out [threshold=1]"},
				{200 * time.Second, []reading{{22000, 21500, "a", 0}}, "2 active 500 out [threshold=1 catchUpWithin=2]"},
			},
		},
		{
			// One keeps up with 25 a second; then there are two and 30, which is 1.2 of what one
			// was seen to do.
			"owners that keep up are kept where fewer were seen to do less than is needed", within(), []tick{
				{0, []reading{{2000, 1990, "a", 0}, {2000, 1990, "a", 0}}, "1 active 20 out [threshold=1]"},
				{s10, []reading{{2125, 2115, "a", 0}, {2125, 2115, "a", 0}}, "1 active 20 none [threshold=1 catchUpWithin=1]"},
				{s10, []reading{{2275, 2265, "a", 0}, {2275, 2265, "b", 0}}, "2 active 20 out [threshold=1 catchUpWithin=2]"},
			},
		},
		{
			// Two keep up with 50 per second, then with 30: that lower bound of two owners does not
			// say whether one would do.
			"a lower bound from as many owners as are live keeps none of them", within(), []tick{
				{0, []reading{{2000, 1990, "a", 0}, {2000, 1990, "b", 0}}, "1 active 20 out [threshold=1]"},
				{s10, []reading{{2250, 2240, "a", 0}, {2250, 2240, "b", 0}}, "1 active 20 none [threshold=1 catchUpWithin=1]"},
				{s10, []reading{{2400, 2390, "a", 0}, {2400, 2390, "b", 0}}, "1 active 20 none [threshold=1 catchUpWithin=1]"},
			},
		},
		{
			// It was seen to do 50 a second; with work for all of the next span it did 10, and 900
			// in 100 s are 0.9 of it.
			"the rate of an owner that had work all the time replaces a higher one", within(), []tick{
				{0, []reading{{2000, 1900, "a", 0}}, "1 active 100 out [threshold=1]"},
				{s10, []reading{{3000, 2400, "a", 0}}, "3 active 600 out [threshold=1 catchUpWithin=3]"},
				{s10, []reading{{3000, 2500, "a", 0}}, "1 active 500 in [threshold=1]"},
				{s10, []reading{{4000, 2600, "a", 0}}, "12 active 1400 out [threshold=1 catchUpWithin=12]"},
			},
		},
		{
			// Two did 10 a second each, and then one is seen with what both did.
			"a lease that changed owners leaves the drain rate as it was", within(), []tick{
				{0, []reading{{2000, 1000, "a", 0}, {2000, 1000, "b", 0}}, "1 active 2000 out [threshold=1]"},
				{s10, []reading{{2000, 1100, "a", 0}, {2000, 1100, "b", 0}}, "2 active 1800 out [threshold=1 catchUpWithin=2]"},
				{s10, []reading{{2000, 1200, "a", 0}, {2000, 1200, "a", 0}}, "2 active 1600 none [threshold=1 catchUpWithin=2]"},
			},
		},
		{
			// 1,000 in 100 s and 10 a second that arrive are 2 of an owner that does 10.
			"a stalled partition that is left out counts neither as arrival nor as work",
			within(func(p *scaling.Policy) { p.ExcludeStalled, p.StalledAfter = true, 10*time.Second }), []tick{
				{0, []reading{{2000, 1000, "a", 0}, {2000, 1000, "b", 0}}, "1 active 2000 out [threshold=1]"},
				{s10, []reading{{2100, 1100, "a", 0}, {9000, 1000, "b", 0}}, "20 active 9000 out [threshold=1 catchUpWithin=160 clamp=20]"},
				{s10, []reading{{2200, 1200, "a", 0}, {99000, 1000, "b", 0}}, "2 active 1000 in [threshold=1 excludeStalled=1 catchUpWithin=2]"},
			},
		},
		{"it never lowers what the threshold asks for", within(), []tick{
			{0, []reading{{91000, 1000, "a", 0}}, "9 active 90000 out [threshold=9]"},
			{s10, []reading{{91000, 81000, "a", 0}}, "1 active 10000 in [threshold=1]"},
		}},
		{"an inactive processor is not sized", within(func(p *scaling.Policy) { p.Activation = 5000 }), []tick{
			{0, []reading{{2000, 1000, "a", 0}}, "0 inactive 1000 none [activation=0]"},
			{s10, []reading{{5000, 1010, "a", 0}}, "0 inactive 3990 none [activation=0]"},
		}},
		{"without catchUpWithin there is none of it", within(func(p *scaling.Policy) { p.CatchUpWithin = 0 }), []tick{
			{0, []reading{{2000, 1000, "a", 0}}, "1 active 1000 out [threshold=1]"},
			{s10, []reading{{10000, 1010, "a", 0}}, "1 active 8990 none [threshold=1]"},
		}},
		{"more replicas than can be counted are as many as possible", within(), []tick{
			{0, []reading{{math.MaxInt64, 1000, "a", 0}}, "20 active 200000 out [threshold=20]"},
			{24 * time.Hour, []reading{{math.MaxInt64, 1001, "a", 0}}, "20 active 200000 none [threshold=20 catchUpWithin=2147483647 clamp=20]"},
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := tell(t, c.policy)
			for _, tick := range c.ticks {
				s.poll(tick.after, func(at time.Time) changefeed.ProcessorLag { return readings(at, tick.found) })
				s.want(tick.want)
			}
		})
	}
}

// TestMaxChangeAge is step 4: 20 partitions, one of them with changes pending, and a limit of 5
// minutes.
func TestMaxChangeAge(t *testing.T) {
	t.Parallel()
	owners := func(n int, renewed time.Duration) []reading {
		found := []reading{{1000, 999, "worker-0", renewed}}
		for i := 1; i < n; i++ {
			found = append(found, reading{1000, 1000, fmt.Sprint("worker-", i), renewed})
		}
		return found
	}
	for _, c := range []struct {
		rule   string
		change func(*scaling.Policy)
		found  []reading
		age    int64 // seconds
		want   string
	}{
		{"an age within the limit asks for nothing", nil, owners(4, 0), 300, "1 active 1 out [threshold=1]"},
		{"nor does one within 10 percent of it", nil, owners(4, 0), 330, "1 active 1 out [threshold=1]"},
		{"beyond, the ratio counts: 4 x 331 / 300", nil, owners(4, 0), 331, "5 active 1 out [threshold=1 maxChangeAge=5]"},
		{"twice the limit asks for twice the owners", nil, owners(4, 0), 600, "8 active 1 out [threshold=1 maxChangeAge=8]"},
		{"an exact product is not rounded up: 15 x 620 / 300", nil, owners(15, 0), 620, "20 active 1 out [threshold=1 maxChangeAge=31 clamp=20]"},
		{"owners that are gone do not count, but at least one does", nil, owners(4, 61*time.Second), 600, "2 active 1 out [threshold=1 maxChangeAge=2]"},
		{"nor does it need any", nil, []reading{{1000, 999, "", 0}}, 900, "3 active 1 out [threshold=1 maxChangeAge=3]"},
		{"an owner counts once", nil, []reading{{1000, 999, "a", 0}, {1000, 1000, "a", 0}}, 600, "2 active 1 out [threshold=1 maxChangeAge=2]"},
		{
			"it never lowers what the threshold asks for", func(p *scaling.Policy) { p.Threshold = 1 },
			[]reading{{1000, 990, "a", 0}}, 600, "10 active 10 out [threshold=10]",
		},
		{
			"an inactive processor may be late", func(p *scaling.Policy) { p.Activation = 1 },
			owners(4, 0), 86400, "0 inactive 1 none [activation=0]",
		},
		{
			"without maxChangeAge there is none of it", func(p *scaling.Policy) { p.MaxChangeAge = 0 },
			owners(4, 0), 86400, "1 active 1 out [threshold=1]",
		},
		{
			"the age of a known partition counts beside an unknown one", nil,
			[]reading{{1000, 999, "a", 0}, unread}, 600, "2 active 1 out [threshold=1 maxChangeAge=2]",
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p := unlimited()
			p.MaxChangeAge = 5 * time.Minute
			if c.change != nil {
				c.change(&p)
			}
			lag := readings(start, c.found)
			lag.Partitions[0].Age = &c.age
			got := scaling.Decide(scaling.Input{Now: start, Lag: lag, Policy: p})
			if got := describe(got.Decision); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		rule      string
		retention time.Duration // of the policy
		measured  time.Duration // with the lag
		limit     time.Duration // maxChangeAge
		age       int64
		want      string
	}{
		{"half of the retention, and 10 percent, ask for nothing", 0, 10 * time.Minute, 0, 330, "1 active 1 out [threshold=1]"},
		{"beyond, the ratio counts, as with maxChangeAge: 4 x 331 / 300", 0, 10 * time.Minute, 0, 331, "5 active 1 out [threshold=1 retention=5]"},
		{"the retention of the policy counts first", 4 * time.Minute, 10 * time.Minute, 0, 240, "8 active 1 out [threshold=1 retention=8]"},
		{"the smaller limit asks for more: maxChangeAge", 0, time.Hour, 5 * time.Minute, 600, "8 active 1 out [threshold=1 maxChangeAge=8]"},
		{"the smaller limit asks for more: the retention", 0, 5 * time.Minute, 5 * time.Minute, 600, "16 active 1 out [threshold=1 maxChangeAge=8 retention=16]"},
		{"for ever is no limit", 0, 0, 0, 1e9, "1 active 1 out [threshold=1]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p := unlimited()
			p.MaxChangeAge, p.Retention = c.limit, c.retention
			lag := readings(start, owners(4, 0))
			lag.Retention, lag.Partitions[0].Age = c.measured, &c.age
			got := scaling.Decide(scaling.Input{Now: start, Lag: lag, Policy: p})
			if got := describe(got.Decision); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("an unknown age asks for nothing", func(t *testing.T) {
		t.Parallel()
		p := unlimited()
		p.MaxChangeAge = 5 * time.Minute
		got := scaling.Decide(scaling.Input{Now: start, Lag: readings(start, owners(4, 0)), Policy: p})
		if got, want := describe(got.Decision), "1 active 1 out [threshold=1]"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestCarriedReadingsSayNothingAboutRates: 1,800 in 100 s; in 20 s 1,000 arrived and 200 were done.
func TestCarriedReadingsSayNothingAboutRates(t *testing.T) {
	t.Parallel()
	p := unlimited()
	p.Threshold, p.CatchUpWithin = 10_000, 100*time.Second
	s := tell(t, p)
	for _, tick := range []struct {
		found   reading
		carried bool
		want    string
	}{
		{reading{2000, 1000, "a", 0}, false, "1 active 1000 out [threshold=1]"},
		{reading{2000, 1000, "a", 0}, true, "1 active 1000 none [threshold=1]"},
		{reading{3000, 1200, "a", 0}, false, "7 active 1800 out [threshold=1 catchUpWithin=7]"},
	} {
		s.poll(10*time.Second, func(at time.Time) changefeed.ProcessorLag {
			l := readings(at, []reading{tick.found})
			if tick.carried {
				l.Partitions[0].Measured = at.Add(-10 * time.Second)
			}
			return l
		})
		s.want(tick.want)
		if tick.carried && s.memory.Arrival != nil {
			t.Errorf("%v a second arrive, by a reading of an earlier tick", *s.memory.Arrival)
		}
	}
}
