package scaling_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// poll is one poll of a story: the lag asks for a number of replicas.
type poll struct {
	after time.Duration
	asked int
	want  int
}

// unlimited is a policy in which step 9 limits nothing.
func unlimited(change ...func(*scaling.Policy)) scaling.Policy {
	p := policy(change...)
	p.Behavior = scaling.Behavior{}
	return p
}

// behaves returns a policy that sets only this behavior.
func behaves(up, down scaling.Rules) scaling.Policy {
	p := unlimited()
	p.Behavior = scaling.Behavior{ScaleUp: up, ScaleDown: down}
	return p
}

// from continues a story in which the last decision was for n replicas.
func (s *story) from(n int) *story {
	s.memory.Replicas, s.memory.Active, s.memory.LastActive = &n, n > 0, s.now
	return s
}

// asks polls with 100 partitions and one threshold of lag for each replica asked for.
func (s *story) asks(after time.Duration, replicas int) *scaling.Decision {
	lags := repeat(0, 100)
	lags[0] = int64(replicas) * s.policy.Threshold
	return s.lags(after, lags...)
}

func pods(n int, period time.Duration) scaling.RatePolicy {
	return scaling.RatePolicy{Type: scaling.RatePods, Value: n, Period: period}
}

func percent(n int, period time.Duration) scaling.RatePolicy {
	return scaling.RatePolicy{Type: scaling.RatePercent, Value: n, Period: period}
}

func rates(policies ...scaling.RatePolicy) scaling.Rules { return scaling.Rules{Policies: policies} }

func slowest(policies ...scaling.RatePolicy) scaling.Rules {
	return scaling.Rules{SelectPolicy: scaling.SelectMin, Policies: policies}
}

func window(d time.Duration) scaling.Rules { return scaling.Rules{StabilizationWindow: d} }

// TestBehavior is step 9: the examples of the HPA's documentation, and the HPA controller's results
// where the documentation leaves a case open.
func TestBehavior(t *testing.T) {
	t.Parallel()
	const second, minute = time.Second, time.Minute
	disabled := scaling.Rules{SelectPolicy: scaling.SelectDisabled}
	for _, c := range []struct {
		rule   string
		policy scaling.Policy
		from   int
		polls  []poll
	}{
		{"without any rule the replicas follow at once, both ways", unlimited(), 3, []poll{{0, 50, 50}, {second, 2, 2}}},
		{
			"HPA example: down by 4 pods or 10 percent a minute, whichever is more, to the end",
			behaves(scaling.Rules{}, rates(pods(4, minute), percent(10, minute))), 80, []poll{
				{0, 10, 72}, {minute, 10, 64}, {minute, 10, 57}, {minute, 10, 51}, {minute, 10, 45}, {minute, 10, 40},
				{minute, 10, 36}, {minute, 10, 32}, {minute, 10, 28}, {minute, 10, 24}, {minute, 10, 20},
				{minute, 10, 16}, {minute, 10, 12}, {minute, 10, 10}, {minute, 10, 10},
			},
		},
		{
			"HPA example: 10 percent a minute is of the replicas at the start of the minute, however often it polls",
			behaves(scaling.Rules{}, rates(percent(10, minute))), 80, []poll{
				{0, 10, 72}, {20 * second, 10, 72}, {39 * second, 10, 72}, {second, 10, 64},
			},
		},
		{
			"HPA example: 10 percent or 5 pods a minute, whichever is less",
			behaves(scaling.Rules{}, slowest(percent(10, minute), pods(5, minute))), 80, []poll{
				{0, 10, 75}, {minute, 10, 70}, {minute, 10, 65}, {minute, 10, 60}, {minute, 10, 55},
				{minute, 10, 50}, {minute, 10, 45}, {minute, 10, 40}, {minute, 10, 36}, {minute, 10, 32},
			},
		},
		{
			"HPA default down: 100 percent every 15 seconds is no limit",
			behaves(scaling.Rules{}, rates(percent(100, 15*second))), 80, []poll{{0, 1, 1}},
		},
		{
			"HPA default up: 4 pods or 100 percent every 15 seconds, whichever is more",
			behaves(rates(percent(100, 15*second), pods(4, 15*second)), scaling.Rules{}), 1, []poll{
				{0, 100, 5}, {15 * second, 100, 10}, {15 * second, 100, 20}, {15 * second, 100, 40}, {15 * second, 100, 80}, {15 * second, 100, 100},
			},
		},
		{"HPA example: scale-down disabled, scale-up free", behaves(scaling.Rules{}, disabled), 10, []poll{{0, 1, 10}, {time.Hour, 1, 10}, {second, 12, 12}, {second, 1, 12}}},
		{"scale-up disabled, scale-down free", behaves(disabled, scaling.Rules{}), 10, []poll{{0, 20, 10}, {second, 4, 4}, {second, 20, 4}}},
		{
			"Disabled wins over policies",
			behaves(scaling.Rules{}, scaling.Rules{SelectPolicy: scaling.SelectDisabled, Policies: []scaling.RatePolicy{pods(4, minute)}}), 10, []poll{{0, 1, 10}},
		},
		{
			"up by 4 pods or 100 percent, whichever is less",
			behaves(slowest(percent(100, 15*second), pods(4, 15*second)), scaling.Rules{}), 1, []poll{
				{0, 100, 2}, {15 * second, 100, 4}, {15 * second, 100, 8}, {15 * second, 100, 12},
			},
		},
		{"a percentage up is rounded up, so that it never stands still", behaves(rates(percent(10, minute)), scaling.Rules{}), 1, []poll{{0, 100, 2}, {minute, 100, 3}, {minute, 100, 4}}},
		{"a percentage down leaves a replica less of a fraction, so that it never stands still", behaves(scaling.Rules{}, rates(percent(10, minute))), 9, []poll{{0, 1, 8}, {minute, 1, 7}}},
		{"what is asked for within the limit is given", behaves(rates(pods(4, minute)), rates(pods(4, minute))), 10, []poll{{0, 13, 13}, {minute, 10, 10}}},
		{"what a period has left may be used up later in it", behaves(rates(pods(4, minute)), scaling.Rules{}), 10, []poll{{0, 11, 11}, {second, 20, 14}, {second, 20, 14}}},
		{"a change is forgotten when its period has passed", behaves(rates(pods(4, minute)), scaling.Rules{}), 10, []poll{{0, 14, 14}, {59 * second, 20, 14}, {second, 20, 18}}},
		{"a change the other way gives the room back", behaves(rates(pods(4, minute)), scaling.Rules{}), 10, []poll{{0, 14, 14}, {second, 10, 10}, {second, 20, 14}}},
		{"more than a limit that was passed the other way is not taken back", behaves(rates(pods(4, minute)), scaling.Rules{}), 10, []poll{{0, 2, 2}, {second, 20, 14}}},
		{
			"each policy counts its own period",
			behaves(slowest(pods(2, 30*second), pods(3, 2*minute)), scaling.Rules{}), 1, []poll{
				{0, 50, 3}, {30 * second, 50, 4}, {30 * second, 50, 4}, {minute, 50, 6},
			},
		},
		{
			"the window down takes the highest recommendation in it, not the last",
			behaves(scaling.Rules{}, window(minute)), 10, []poll{
				{0, 10, 10}, {15 * second, 4, 10}, {15 * second, 6, 10}, {30 * second, 3, 6}, {15 * second, 2, 6}, {15 * second, 1, 3},
			},
		},
		{"the window down holds until a recommendation is as old as it", behaves(scaling.Rules{}, window(300*second)), 5, []poll{{0, 5, 5}, {299 * second, 1, 5}, {second, 1, 1}}},
		{"the window down does not hold a scale-out up", behaves(scaling.Rules{}, window(300*second)), 1, []poll{{0, 2, 2}, {second, 9, 9}}},
		{
			"the window up takes the lowest recommendation in it, not the last",
			behaves(window(minute), scaling.Rules{}), 2, []poll{
				{0, 2, 2}, {15 * second, 8, 2}, {15 * second, 6, 2}, {30 * second, 9, 6}, {15 * second, 9, 6}, {15 * second, 9, 9},
			},
		},
		{"each window reaches back as far as its own length, not the other's", behaves(window(minute), window(2*minute)), 2, []poll{{0, 2, 2}, {minute, 9, 9}}},
		{
			"with both windows the replicas move only as far as both agree",
			behaves(window(minute), window(minute)), 5, []poll{
				{0, 5, 5}, {20 * second, 9, 5}, {20 * second, 1, 5}, {20 * second, 9, 5}, {20 * second, 7, 5}, {20 * second, 7, 7},
			},
		},
		{
			"a policy limits what the window lets through",
			behaves(scaling.Rules{}, scaling.Rules{StabilizationWindow: minute, Policies: []scaling.RatePolicy{pods(1, minute)}}), 5, []poll{
				{0, 5, 5}, {30 * second, 1, 5}, {30 * second, 1, 4}, {30 * second, 1, 4}, {30 * second, 1, 3},
			},
		},
		{"from zero the policies count from one", behaves(rates(pods(4, minute)), scaling.Rules{}), 0, []poll{{0, 50, 5}, {minute, 50, 9}}},
		{"the step from zero to one uses none of a policy up", behaves(rates(pods(4, minute)), scaling.Rules{}), 0, []poll{{0, 1, 1}, {second, 50, 5}}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := tell(t, c.policy).from(c.from)
			for i, p := range c.polls {
				if got := s.asks(p.after, p.asked).Replicas; got != p.want {
					t.Fatalf("poll %d, at %s: %d asked for, got %d, want %d", i+1, s.now.Sub(start), p.asked, got, p.want)
				}
			}
		})
	}
}

// TestTolerance is the part of step 9 that compares the metric with its target at the current
// replicas.
func TestTolerance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		up, down float64
		from     int
		lag      int64 // at 100 per replica
		want     int
	}{
		{"HPA example: 5 percent above the target is within 5 percent", 0.05, 0, 20, 2100, 20},
		{"HPA example: more than that scales up", 0.05, 0, 20, 2101, 22},
		{"10 percent below the target is within 10 percent", 0, 0.1, 20, 1800, 20},
		{"more than that scales down", 0, 0.1, 20, 1799, 18},
		{"the tolerance up does not hold a scale-in", 0.5, 0, 20, 1900, 19},
		{"the tolerance down does not hold a scale-out", 0, 0.5, 20, 2001, 21},
		{"the ratio is rounded once, as the HPA does: 3536 of 17 x 260 is 20 percent below", 0, 0.2, 17, 1360, 17},
		{"none: the smallest excess scales up", 0, 0, 20, 2001, 21},
		{"the unrounded ratio counts: 1 of 2 replicas is 50 percent below", 0, 0.4, 2, 100, 1},
		{"the unrounded ratio counts: 101 of 200 is within 50 percent, though 1 replica more than 1 is asked for", 0, 0.5, 3, 151, 3},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := tell(t, behaves(scaling.Rules{Tolerance: c.up}, scaling.Rules{Tolerance: c.down})).from(c.from)
			lags := repeat(0, 100)
			lags[0] = c.lag
			if got := s.lags(time.Second, lags...).Replicas; got != c.want {
				t.Errorf("from %d at lag %d: got %d, want %d", c.from, c.lag, got, c.want)
			}
		})
	}
	t.Run("what it held is what the windows remember", func(t *testing.T) {
		t.Parallel()
		s := tell(t, behaves(scaling.Rules{}, scaling.Rules{Tolerance: 0.1, StabilizationWindow: time.Minute})).from(10)
		s.lags(0, append(repeat(0, 99), 900)...)
		s.asks(59*time.Second, 5)
		s.want("10 active 500 none [threshold=5 behavior=10]")
		s.asks(time.Second, 5)
		s.want("5 active 500 in [threshold=5]")
	})
}

// TestBehaviorEndsAtOne: the windows and policies of step 9 affect neither the step between one and
// zero, which is cooldown's, nor the bounds of step 10.
func TestBehaviorEndsAtOne(t *testing.T) {
	t.Parallel()
	frozen := scaling.Rules{SelectPolicy: scaling.SelectDisabled}
	t.Run("scale-down disabled does not hold the step to zero", func(t *testing.T) {
		t.Parallel()
		s := tell(t, behaves(scaling.Rules{}, frozen)).from(4)
		s.asks(0, 0)
		s.want("4 inactive 0 none [activation=0 behavior=4 cooldown=4]")
		s.asks(300*time.Second, 0)
		s.want("0 inactive 0 in [activation=0 behavior=4 cooldown=0]")
	})
	t.Run("scale-up disabled does not hold the step from zero to one", func(t *testing.T) {
		t.Parallel()
		s := tell(t, behaves(frozen, scaling.Rules{})).from(0)
		s.asks(0, 9)
		s.want("1 active 900 out [threshold=9 behavior=1]")
	})
	t.Run("cooldown may pass while the windows bring the replicas down to one before", func(t *testing.T) {
		t.Parallel()
		s := tell(t, behaves(scaling.Rules{}, window(time.Minute)))
		s.asks(0, 4)
		s.asks(60*time.Second, 0)
		s.want("1 inactive 0 in [activation=0 cooldown=1]")
		s.asks(240*time.Second, 0)
		s.want("0 inactive 0 in [activation=0 cooldown=0]")
	})
	t.Run("a lowered maximum holds at once, whatever the windows say", func(t *testing.T) {
		t.Parallel()
		s := tell(t, behaves(scaling.Rules{}, frozen)).from(9)
		maximum(3)(&s.policy)
		s.asks(time.Second, 9)
		s.want("3 active 900 in [threshold=9 clamp=3]")
	})
	t.Run("a raised minimum holds at once, whatever the policies say", func(t *testing.T) {
		t.Parallel()
		s := tell(t, behaves(rates(pods(1, time.Minute)), scaling.Rules{})).from(1)
		minimum(7)(&s.policy)
		s.asks(time.Second, 1)
		s.want("7 active 100 out [threshold=1 clamp=7]")
	})
	t.Run("fewer partitions hold at once", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(0, repeat(100, 8)...)
		s.lags(time.Second, repeat(100, 4)...)
		s.want("4 active 400 in [threshold=4 behavior=8 clamp=4]")
	})
	t.Run("without any earlier activity there is nothing to cool down from, and the reason says so", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy(minimum(3)))
		s.asks(0, 0)
		minimum(0)(&s.policy)
		s.asks(time.Second, 0)
		s.want("0 inactive 0 in [activation=0 cooldown=0]")
	})
}

// TestWhatIsNoRecommendation: the windows of step 9 remember only what was measured.
func TestWhatIsNoRecommendation(t *testing.T) {
	t.Parallel()
	const second, minute = time.Second, time.Minute
	const unknown = -1
	down := func(change ...func(*scaling.Policy)) scaling.Policy {
		p := behaves(scaling.Rules{}, window(5*minute))
		p.Fallback.FailureThreshold = 100
		for _, c := range change {
			c(&p)
		}
		return p
	}
	t.Run("an incomplete poll that holds does not restart the window down", func(t *testing.T) {
		t.Parallel()
		s := tell(t, down())
		s.lags(0, 300, 0, 0)
		s.lags(100*second, 300, unknown, 0)
		s.lags(100*second, 300, unknown, 0)
		s.memory.Recommendations[0].Time = start // earlier recommendations do not matter here
		s.lags(99*second, 10, unknown, 0)
		s.want("3 active 300 none [threshold=1 incomplete=3]")
		s.lags(second, 10, 0, 0)
		s.want("1 active 10 in [threshold=1]")
	})
	t.Run("one that scales out is a recommendation, as with an HPA of which some metrics are there", func(t *testing.T) {
		t.Parallel()
		s := tell(t, down())
		s.lags(0, 10, 0, 0)
		s.lags(minute, 250, unknown, 0)
		s.want("3 active 250 out [threshold=3]")
		s.lags(299*second, 10, 0, 0)
		s.want("3 active 10 none [threshold=1 behavior=3]")
		s.lags(second, 10, 0, 0)
		s.want("1 active 10 in [threshold=1]")
	})
	t.Run("so is one that asks for what there is, within the tolerance", func(t *testing.T) {
		t.Parallel()
		s := tell(t, down(func(p *scaling.Policy) { p.Behavior.ScaleDown.Tolerance = 0.1 })).from(10)
		s.lags(0, append(repeat(0, 20), 900, unknown)...)
		s.want("10 active 900 none [threshold=9 incomplete=10]")
		s.asks(299*second, 5)
		s.want("10 active 500 none [threshold=5 behavior=10]")
		s.asks(second, 5)
		s.want("5 active 500 in [threshold=5]")
	})
	up := behaves(window(minute), scaling.Rules{})
	up.Fallback.FailureThreshold = 100
	for name, unmeasured := range map[string]func(*story){
		"failed": func(s *story) { s.poll(30*second, failed) },
		"incomplete": func(s *story) {
			s.healthy = nil // the partition becomes unknown
			s.lags(30*second, 10, unknown, 0)
		},
	} {
		t.Run("a poll that is "+name+" does not delay a scale-out", func(t *testing.T) {
			t.Parallel()
			s := tell(t, up)
			s.lags(0, 10, 0, 0)
			s.lags(15*second, 300, 0, 0)
			unmeasured(s)
			s.lags(15*second, 300, 0, 0)
			s.want("3 active 300 out [threshold=3]")
		})
	}
	t.Run("a window of schedules asks without a measurement", func(t *testing.T) {
		t.Parallel()
		s := tell(t, down(func(p *scaling.Policy) { p.Schedules = schedules(t, floor{"UTC", "0 * * * *", "30 * * * *", 3}) })).from(1)
		s.poll(29*minute, failed)
		s.want("3 active 0 out [failure=1 schedules=3]")
		s.lags(4*minute, 10, 0, 0)
		s.want("3 active 10 none [threshold=1 behavior=3]")
		s.lags(minute, 10, 0, 0)
		s.want("1 active 10 in [threshold=1]")
	})
	t.Run("zero replicas: an idle processor recommends nothing, and forgets nothing", func(t *testing.T) {
		t.Parallel()
		p := behaves(window(minute), scaling.Rules{})
		p.Cooldown = 10 * second
		s := tell(t, p)
		s.lags(0, 10, 0, 0)
		s.lags(20*second, 0, 0, 0)
		s.want("0 inactive 0 in [activation=0 cooldown=0]")
		s.lags(20*second, 300, 0, 0)
		s.want("1 active 300 out [threshold=3 behavior=1]")
		s.lags(minute, 0, 0, 0)
		s.want("0 inactive 0 in [activation=0 cooldown=0]")
		s.lags(2*minute, 300, 0, 0)
		s.want("3 active 300 out [threshold=3]")
	})
}
