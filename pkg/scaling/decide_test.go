package scaling_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// policy is a policy with a threshold of 100.
func policy(change ...func(*scaling.Policy)) scaling.Policy {
	p := scaling.Policy{
		Threshold: 100,
		Cooldown:  300 * time.Second,
		Health:    health.Policy{StalledAfter: 5 * time.Minute, StalledPolls: 2, LeaseExpiration: time.Minute},
		Behavior:  scaling.Behavior{ScaleDown: scaling.Rules{StabilizationWindow: 300 * time.Second}},
		Fallback:  scaling.Fallback{Behavior: scaling.FallbackMax},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

// measured is a measurement with one partition for each lag; -1 means unknown.
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

func failed(at time.Time) changefeed.ProcessorLag {
	return changefeed.ProcessorLag{Time: at, Error: "the leases cannot be read"}
}

func bootstrap(at time.Time) changefeed.ProcessorLag {
	return changefeed.ProcessorLag{Time: at, Bootstrap: true}
}

// story is one processor over several polls.
type story struct {
	t       *testing.T
	policy  scaling.Policy
	memory  scaling.Memory
	healthy health.Memory
	now     time.Time
	polled  time.Time
	last    *scaling.Decision
	lag     changefeed.ProcessorLag
}

func tell(t *testing.T, p scaling.Policy) *story {
	return &story{t: t, policy: p, now: start}
}

// poll decides at the given time after the last poll.
func (s *story) poll(after time.Duration, measure func(time.Time) changefeed.ProcessorLag) *scaling.Decision {
	s.now = s.now.Add(after)
	if s.polled.After(s.now) {
		s.memory, s.healthy = s.memory.Until(s.now), s.healthy.Until(s.now)
	}
	s.lag, s.healthy = health.Assess(health.Input{Now: s.now, Lag: measure(s.now), Policy: s.policy.Health, Asked: s.memory.Asked, Memory: s.healthy})
	o := scaling.Decide(scaling.Input{Now: s.now, Lag: s.lag, Policy: s.policy, Memory: s.memory})
	s.memory, s.last, s.polled = o.Memory, o.Decision, s.now
	return o.Decision
}

func (s *story) lags(after time.Duration, lags ...int64) *scaling.Decision {
	return s.poll(after, func(at time.Time) changefeed.ProcessorLag { return measured(at, lags...) })
}

// describe renders a decision as "replicas active metric direction steps".
func describe(d *scaling.Decision) string {
	if d == nil {
		return "undecided"
	}
	var steps []string
	for _, r := range d.Reasons {
		steps = append(steps, fmt.Sprintf("%s=%d", r.Step, r.Replicas))
	}
	active := "inactive"
	if d.Active {
		active = "active"
	}
	return fmt.Sprintf("%d %s %d %s [%s]", d.Replicas, active, d.MetricValue, d.Direction, strings.Join(steps, " "))
}

func (s *story) want(want string) {
	s.t.Helper()
	if got := describe(s.last); got != want {
		s.t.Errorf("at %s: got  %s\nwant %s", s.now.Sub(start), got, want)
	}
}

func repeat(lag int64, n int) []int64 {
	lags := make([]int64, n)
	for i := range lags {
		lags[i] = lag
	}
	return lags
}

func maximum(n int) func(*scaling.Policy) { return func(p *scaling.Policy) { p.MaxReplicas = &n } }
func minimum(n int) func(*scaling.Policy) { return func(p *scaling.Policy) { p.MinReplicas = n } }

// first is a decision without memory.
type first struct {
	rule   string
	policy scaling.Policy
	lag    changefeed.ProcessorLag
	want   string
}

func decideFirst(t *testing.T, cases []first) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got := scaling.Decide(scaling.Input{Now: start, Lag: c.lag, Policy: c.policy})
			if got := describe(got.Decision); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestThreshold is steps 1 and 2.
func TestThreshold(t *testing.T) {
	t.Parallel()
	decideFirst(t, []first{
		{"one replica for each threshold of lag, rounded up", policy(), measured(start, 250, 162, 0, 0, 0, 0, 0, 0), "5 active 412 out [threshold=5]"},
		{"exactly the threshold is one replica", policy(), measured(start, 100, 0), "1 active 100 out [threshold=1]"},
		{"the metric is capped by partitions times threshold", policy(), measured(start, 5000, 0, 0), "3 active 300 out [threshold=3]"},
		{
			"limitToPartitionsWithLag caps by partitions with lag",
			policy(func(p *scaling.Policy) { p.LimitToPartitionsWithLag = true }), measured(start, 5000, 0, 0), "1 active 100 out [threshold=1]",
		},
		{"lag above the activation threshold is active", policy(func(p *scaling.Policy) { p.Activation = 10 }), measured(start, 11), "1 active 11 out [threshold=1]"},
		{"lag at the activation threshold is not", policy(func(p *scaling.Policy) { p.Activation = 10 }), measured(start, 10), "0 inactive 10 none [activation=0]"},
		{"bootstrap wakes", policy(), bootstrap(start), "1 active 1 out [threshold=1 bootstrap=1]"},
		{
			"bootstrap wakes whatever the activation threshold, with a metric above it",
			policy(func(p *scaling.Policy) { p.Activation = 10 }), bootstrap(start), "1 active 11 out [threshold=1 bootstrap=1]",
		},
		{
			"a split wakes, and its children count as partitions", policy(func(p *scaling.Policy) { p.Activation = 10 }),
			func() changefeed.ProcessorLag {
				l := measured(start, 1, 0)
				l.Partitions[0].Status, l.Partitions[0].Ranges = changefeed.StatusSplitting, 2
				return l
			}(), "1 active 11 out [threshold=1 splitting=1]",
		},
		{
			"an uncheckpointed lease wakes, even where limitToPartitionsWithLag counts",
			policy(func(p *scaling.Policy) { p.LimitToPartitionsWithLag = true }),
			func() changefeed.ProcessorLag {
				l := measured(start, 0, 0)
				l.Partitions[0].Status = changefeed.StatusUncheckpointed
				return l
			}(), "1 active 1 out [threshold=1 uncheckpointed=1]",
		},
		{"inactive is zero", policy(), measured(start, 0, 0), "0 inactive 0 none [activation=0]"},
	})
}

// TestClamp is step 10.
func TestClamp(t *testing.T) {
	t.Parallel()
	decideFirst(t, []first{
		{"maxReplicaCount holds", policy(maximum(2)), measured(start, repeat(500, 8)...), "2 active 800 out [threshold=8 clamp=2]"},
		{"minReplicaCount holds, also while inactive", policy(minimum(3)), measured(start, 0, 0), "3 inactive 0 out [activation=0 clamp=3]"},
		{"minReplicaCount holds above the number of partitions", policy(minimum(3)), measured(start, 50), "3 active 50 out [threshold=1 clamp=3]"},
		{
			"more replicas than partitions have nothing to do", policy(func(p *scaling.Policy) {
				p.Schedules = schedules(t, floor{"UTC", "0 * * * *", "59 * * * *", 9})
			}), measured(start, 50, 0, 0), "3 active 50 out [threshold=1 schedules=9 clamp=3]",
		},
		{"bounds beyond both: the maximum is below the partitions, and holds", policy(minimum(2), maximum(2)), measured(start, repeat(500, 8)...), "2 active 800 out [threshold=8 clamp=2]"},
	})
}

func TestReasonsSayWhy(t *testing.T) {
	t.Parallel()
	s := tell(t, policy())
	d := s.lags(0, 412, 0, 0, 0, 0)
	want := []scaling.Reason{{Step: "threshold", Replicas: 5, Why: "lag 412 at 100 per replica"}}
	if !reflect.DeepEqual(d.Reasons, want) {
		t.Errorf("got %+v, want %+v", d.Reasons, want)
	}
}

func TestTheReasonOfABootstrapNamesWhatIsNear(t *testing.T) {
	t.Parallel()
	const why = "no lease exists yet: a processor has to run once to create them"
	for nearest, want := range map[string]string{
		"": why,
		"The container holds leases of another: did you mean processorName order-projection?": why + ". The container holds leases of another: did you mean processorName order-projection?",
	} {
		lag := bootstrap(start)
		lag.Nearest = nearest
		reasons := scaling.Decide(scaling.Input{Now: start, Lag: lag, Policy: policy()}).Decision.Reasons
		if got := reasons[len(reasons)-1].Why; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestIncomplete is step 7.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	decideFirst(t, []first{
		{"known partitions may scale out beside unknown ones", policy(), measured(start, 150, -1), "2 active 150 out [threshold=2]"},
		{"where nothing known is pending beside an unknown partition, nothing is decided", policy(), measured(start, 0, -1), "undecided"},
	})
	t.Run("scale-in is refused, in replicas, activity and metric, for as long as it lasts", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(0, 300, 300, 0)
		s.want("3 active 300 out [threshold=3]")
		s.lags(time.Minute, 0, -1, 0)
		s.want("3 active 300 none [threshold=3]") // its last reading counts for two polls
		s.lags(time.Minute, 0, -1, 0)
		s.lags(10*time.Minute, 0, -1, 0)
		s.want("3 active 300 none [activation=0 incomplete=3]")
		s.lags(10*time.Minute, 50, -1, 0)
		s.want("3 active 300 none [threshold=1 incomplete=3]")
		s.lags(time.Minute, 0, 0, 0)
		s.want("1 inactive 0 in [activation=0 cooldown=1]")
	})
	t.Run("the metric is held where the replicas need not be, and says so", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(0, 40, 0)
		s.healthy = nil // the partition becomes unknown
		s.lags(time.Minute, 30, -1)
		s.want("1 active 40 none [threshold=1 incomplete=1]")
	})
	t.Run("scale-out is not", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(0, 150, 0, 0, 0)
		s.lags(time.Minute, 390, -1, 0, 0)
		s.want("4 active 390 out [threshold=4]")
	})
	t.Run("what was at zero stays there", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(0, 0, 0)
		s.lags(time.Minute, 0, -1)
		s.want("0 inactive 0 none [activation=0]")
	})
}

// TestIncompletePartitions: while anything is unknown, the partitions count as no fewer than at the
// last complete poll, and no step lowers the replicas, clamp included.
func TestIncompletePartitions(t *testing.T) {
	t.Parallel()
	type found struct {
		lags []int64 // nil: nothing could be read
		want string
	}
	const unknown = -1
	static := policy(func(p *scaling.Policy) { p.Fallback.Behavior, p.Fallback.Replicas = scaling.FallbackStatic, 6 })
	for _, c := range []struct {
		rule   string
		policy scaling.Policy
		polls  []found
	}{
		{"fewer leases beside an unknown one do not lower the cap", unlimited(), []found{
			{[]int64{500, 500, 500, 500}, "4 active 400 out [threshold=4]"},
			{[]int64{500, unknown}, "4 active 400 none [threshold=4]"},
			{[]int64{500, 500}, "2 active 200 in [threshold=2]"},
		}},
		{"nor does a second such poll", unlimited(), []found{
			{[]int64{500, 500, 500, 500}, "4 active 400 out [threshold=4]"},
			{[]int64{500, 500, unknown}, "4 active 400 none [threshold=4]"},
			{[]int64{500, unknown}, "4 active 400 none [threshold=4]"},
		}},
		{"more leases raise it, until a complete poll counts fewer", unlimited(), []found{
			{[]int64{500, 500}, "2 active 200 out [threshold=2]"},
			{[]int64{500, 500, 500, unknown}, "4 active 400 out [threshold=4]"},
			{[]int64{500, 500, unknown}, "4 active 400 none [threshold=4]"},
			{[]int64{500, 500, 500}, "3 active 300 in [threshold=3]"},
		}},
		{"a poll that failed altogether does not lower it", unlimited(), []found{
			{[]int64{500, 500, 500, 500}, "4 active 400 out [threshold=4]"},
			{[]int64{unknown, unknown}, "4 active 400 none [fallback=4]"},
			{nil, "4 active 400 none [fallback=4]"},
		}},
		{"a fallback beyond the leases is not taken back by the clamp", static, []found{
			{nil, "6 active 600 out [fallback=6]"},
			{[]int64{10, unknown}, "6 active 600 none [threshold=1 incomplete=6]"},
			{[]int64{10, 10}, "2 active 20 in [threshold=1 behavior=6 clamp=2]"},
		}},
		{"maxReplicaCount always holds", policy(maximum(3)), []found{
			{[]int64{500, 500, 500, 500}, "3 active 400 out [threshold=4 clamp=3]"},
			{[]int64{500, unknown}, "3 active 400 none [threshold=4 clamp=3]"},
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := tell(t, c.policy)
			for _, f := range c.polls {
				if f.lags == nil {
					s.poll(time.Minute, failed)
				} else {
					s.lags(time.Minute, f.lags...)
				}
				s.want(f.want)
			}
		})
	}
}

// TestCarried: a reading of an earlier tick counts with its value; one that is too old counts as
// unknown.
func TestCarried(t *testing.T) {
	t.Parallel()
	window := func(d time.Duration) func(*scaling.Policy) {
		return func(p *scaling.Policy) { p.Behavior.ScaleDown.StabilizationWindow = d }
	}
	const s, m = time.Second, time.Minute
	for _, c := range []struct {
		rule   string
		policy scaling.Policy
		age    time.Duration // of the reading of the second of three partitions; its lag is 0
		want   string        // from 3 replicas, 10 minutes later
	}{
		{"no older than the scale-down window: it counts", policy(), 5 * m, "1 active 10 in [threshold=1]"},
		{"older: no scale-in", policy(), 5*m + s, "3 active 300 none [threshold=1 incomplete=3]"},
		{"with a shorter window a minute counts", policy(window(0)), m, "1 active 10 in [threshold=1]"},
		{"and no more", policy(window(0)), m + s, "3 active 300 none [threshold=1 incomplete=3]"},
		{"with a longer one that", policy(window(10 * m)), 10 * m, "1 active 10 in [threshold=1]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			st := tell(t, c.policy)
			st.lags(0, 300, 0, 0)
			st.poll(10*m, func(at time.Time) changefeed.ProcessorLag {
				l := measured(at, 10, 0, 0)
				l.Partitions[1].Measured = at.Add(-c.age)
				return l
			})
			st.want(c.want)
		})
	}
	old := func(lags ...int64) func(time.Time) changefeed.ProcessorLag {
		return func(at time.Time) changefeed.ProcessorLag {
			l := measured(at, lags...)
			l.Partitions[0].Measured = at.Add(-time.Hour)
			return l
		}
	}
	t.Run("one that is too old may scale out, and holds the step to zero", func(t *testing.T) {
		t.Parallel()
		st := tell(t, policy())
		st.poll(0, old(0, 0))
		st.want("undecided")
		st.poll(0, old(150, 0))
		st.want("2 active 150 out [threshold=2]")
		st.poll(time.Hour, old(0, 0))
		st.want("2 active 150 none [activation=0 incomplete=2]")
	})
	t.Run("the reason says so", func(t *testing.T) {
		t.Parallel()
		for want, lags := range map[string][]int64{
			"1 of 3 partitions were last read more than 5m0s ago: no scale-in from 3": {0, 0, 0},
			"1 of 4 partitions are unknown: no scale-in from 3":                       {0, 0, 0, -1},
		} {
			st := tell(t, policy())
			st.lags(0, 300, 0, 0)
			st.poll(time.Hour, old(lags...))
			if got := st.last.Reasons[1].Why; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	})
}

// TestFailure is step 8.
func TestFailure(t *testing.T) {
	t.Parallel()
	decideFirst(t, []first{
		{"a first poll that fails decides nothing", policy(), failed(start), "undecided"},
		{"nor does one in which every partition is unknown", policy(), measured(start, -1, -1), "undecided"},
		{
			"static replicas count without an earlier poll", policy(func(p *scaling.Policy) {
				p.Fallback = scaling.Fallback{Behavior: scaling.FallbackStatic, Replicas: 4}
			}, maximum(10)), failed(start), "4 active 400 out [fallback=4]",
		},
	})
	with := func(threshold int, behavior scaling.FallbackBehavior, replicas int) scaling.Policy {
		return policy(func(p *scaling.Policy) {
			p.Fallback = scaling.Fallback{FailureThreshold: threshold, Behavior: behavior, Replicas: replicas}
		})
	}
	t.Run("up to failureThreshold the last decision holds", func(t *testing.T) {
		t.Parallel()
		s := tell(t, with(2, scaling.FallbackMax, 0))
		s.lags(0, 150, 0, 0, 0)
		s.poll(time.Minute, failed)
		s.want("2 active 150 none [failure=2]")
		s.poll(10*time.Minute, failed)
		s.want("2 active 150 none [failure=2]")
		s.poll(time.Minute, failed)
		s.want("4 active 400 out [fallback=4]")
	})
	t.Run("a poll that succeeds starts the count anew", func(t *testing.T) {
		t.Parallel()
		s := tell(t, with(1, scaling.FallbackMax, 0))
		s.lags(0, 150, 0, 0, 0)
		s.poll(time.Minute, failed)
		s.lags(time.Minute, 150, 0, 0, 0)
		s.poll(time.Minute, failed)
		s.want("2 active 150 none [failure=2]")
	})
	t.Run("max holds the bounds", func(t *testing.T) {
		t.Parallel()
		p := with(0, scaling.FallbackMax, 0)
		maximum(3)(&p)
		s := tell(t, p)
		s.lags(0, 0, 0, 0, 0)
		s.poll(time.Minute, failed)
		s.want("3 active 400 out [fallback=4 clamp=3]")
	})
	for _, c := range []struct {
		behavior scaling.FallbackBehavior
		replicas int
		want     string
	}{
		{scaling.FallbackStatic, 3, "3 active 300 out [fallback=3]"},
		{scaling.FallbackCurrent, 0, "2 active 200 none [fallback=2]"},
		{scaling.FallbackCurrentIfHigher, 1, "2 active 200 none [fallback=2]"},
		{scaling.FallbackCurrentIfHigher, 4, "4 active 400 out [fallback=4]"},
		{scaling.FallbackCurrentIfLower, 4, "2 active 200 none [fallback=2]"},
	} {
		t.Run(fmt.Sprintf("%s with %d, from 2", c.behavior, c.replicas), func(t *testing.T) {
			t.Parallel()
			s := tell(t, with(0, c.behavior, c.replicas))
			s.lags(0, 150, 0, 0, 0)
			s.poll(time.Minute, failed)
			s.want(c.want)
		})
	}
	// The counts and replicas are KEDA's: GetMetricsWithFallback and doFallback of
	// pkg/fallback/fallback.go, v2.21.0. KEDA falls back at the first poll beyond failureThreshold
	// failures in a row. Until then the HPA has no metric and does nothing.
	for _, c := range []struct {
		behavior                     scaling.FallbackBehavior
		replicas, fromOne, fromThree int
	}{
		{scaling.FallbackStatic, 2, 2, 2},
		{scaling.FallbackStatic, 0, 1, 1}, // an HPA has at least one
		{scaling.FallbackCurrent, 2, 1, 3},
		{scaling.FallbackCurrent, 0, 1, 3},
		{scaling.FallbackCurrentIfHigher, 2, 2, 3},
		{scaling.FallbackCurrentIfHigher, 0, 1, 3},
		{scaling.FallbackCurrentIfLower, 2, 1, 2},
		{scaling.FallbackCurrentIfLower, 9, 1, 3},
		{scaling.FallbackMax, 2, 4, 4}, // not in KEDA
	} {
		for _, threshold := range []int{0, 1, 3} {
			for from, want := range map[int]int{1: c.fromOne, 3: c.fromThree} {
				t.Run(fmt.Sprintf("KEDA: %s with %d, from %d, after %d failed polls", c.behavior, c.replicas, from, threshold), func(t *testing.T) {
					t.Parallel()
					p := with(threshold, c.behavior, c.replicas)
					p.Behavior = scaling.Behavior{}
					s := tell(t, p)
					for range 2 { // a poll that succeeds starts the count again
						s.lags(15*time.Second, int64(from)*100, 0, 0, 0)
						for range threshold {
							if got := s.poll(15*time.Second, failed).Replicas; got != from {
								t.Fatalf("%d failed polls: %d, want the %d that it was", s.memory.Failures, got, from)
							}
						}
					}
					for range 3 {
						got := s.poll(15*time.Second, failed).Replicas
						if got == 0 {
							t.Fatal("zero, without a measurement")
						}
						if got != want {
							t.Errorf("%d failed polls: %d, want %d", s.memory.Failures, got, want)
						}
					}
				})
			}
		}
	}
	t.Run("failed polls up to the threshold wake nobody", func(t *testing.T) {
		t.Parallel()
		s := tell(t, with(3, scaling.FallbackMax, 0))
		s.lags(0, 10, 0, 0, 0)
		s.lags(300*time.Second, 0, 0, 0, 0)
		for range 100 {
			for range 3 {
				s.poll(15*time.Second, failed)
				s.want("0 inactive 0 none [failure=0]")
			}
			s.lags(15*time.Second, 0, 0, 0, 0)
			s.want("0 inactive 0 none [activation=0]")
		}
	})
	unread := func(leases int) func(time.Time) changefeed.ProcessorLag {
		return func(at time.Time) changefeed.ProcessorLag { return measured(at, repeat(-1, leases)...) }
	}
	t.Run("the leases that were read are the partitions, though none could be measured", func(t *testing.T) {
		t.Parallel()
		s := tell(t, with(0, scaling.FallbackStatic, 9))
		s.poll(0, unread(4))
		s.want("4 active 900 out [fallback=9 clamp=4]")
		s = tell(t, with(0, scaling.FallbackMax, 0))
		s.poll(0, bootstrap)
		s.poll(time.Minute, unread(4))
		s.want("4 active 400 out [fallback=4]")
		s.poll(time.Minute, failed)
		s.want("4 active 400 none [fallback=4]")
	})
	t.Run("a metric that no integer holds is the greatest there is", func(t *testing.T) {
		t.Parallel()
		p := with(0, scaling.FallbackStatic, math.MaxInt32)
		p.Threshold = 1_000_000_000_000_000
		s := tell(t, p)
		if d := s.poll(0, failed); d.MetricValue < math.MaxInt64-p.Threshold {
			t.Errorf("metricValue %d", d.MetricValue)
		}
	})
	t.Run("what is held is no recommendation", func(t *testing.T) {
		t.Parallel()
		s := tell(t, with(100, scaling.FallbackMax, 0))
		s.lags(0, 300, 0, 0)
		s.poll(299*time.Second, failed)
		s.want("3 active 300 none [failure=3]")
		s.lags(time.Second, 10, 0, 0)
		s.want("1 active 10 in [threshold=1]")
	})
	t.Run("nor is a fallback, though the windows hold it, too", func(t *testing.T) {
		t.Parallel()
		s := tell(t, with(0, scaling.FallbackStatic, 2))
		s.lags(0, 300, 0, 0)
		s.poll(299*time.Second, failed)
		s.want("3 active 200 none [fallback=2 behavior=3]")
		s.poll(time.Second, failed)
		s.want("2 active 200 in [fallback=2]")
		s.lags(time.Second, 10, 0, 0)
		s.want("1 active 10 in [threshold=1]")
	})
	t.Run("the first decision is the first recommendation, also where it is a fallback", func(t *testing.T) {
		t.Parallel()
		s := tell(t, with(0, scaling.FallbackStatic, 3))
		s.poll(0, failed)
		s.want("3 active 300 out [fallback=3]")
		s.lags(time.Minute, 10, 0, 0)
		s.want("3 active 10 none [threshold=1 behavior=3]")
	})
	t.Run("currentReplicas without any decides nothing", func(t *testing.T) {
		t.Parallel()
		s := tell(t, with(0, scaling.FallbackCurrent, 0))
		s.poll(0, failed)
		s.want("undecided")
	})
}

// TestCooldown is the part of step 9 that takes the step to zero.
func TestCooldown(t *testing.T) {
	t.Parallel()
	t.Run("one replica stays until cooldownPeriod has passed since the last active poll, whatever the windows say", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(0, 300, 0, 0)
		s.lags(30*time.Second, 0, 0, 0)
		s.want("3 inactive 0 none [activation=0 behavior=3 cooldown=3]")
		s.lags(269*time.Second, 0, 0, 0)
		s.want("3 inactive 0 none [activation=0 behavior=3 cooldown=3]")
		s.lags(time.Second, 0, 0, 0)
		s.want("0 inactive 0 in [activation=0 cooldown=0]")
		s.lags(time.Second, 0, 0, 0)
		s.want("0 inactive 0 none [activation=0]")
	})
	t.Run("an active poll starts it anew", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(0, 10)
		s.lags(299*time.Second, 10)
		s.lags(299*time.Second, 0)
		s.want("1 inactive 0 none [activation=0 cooldown=1]")
		s.lags(time.Second, 0)
		s.want("0 inactive 0 in [activation=0 cooldown=0]")
	})
	t.Run("with minReplicaCount above zero there is none", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy(minimum(1)))
		s.lags(0, 10, 0)
		s.lags(time.Hour, 0, 0)
		s.want("1 inactive 0 none [activation=0 clamp=1]")
	})
	t.Run("no step to zero while the truth is not known", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy(func(p *scaling.Policy) { p.Fallback.FailureThreshold = 100 }))
		s.lags(0, 10, 0)
		s.lags(time.Minute, 0, 0)
		s.want("1 inactive 0 none [activation=0 cooldown=1]")
		s.poll(time.Hour, failed)
		s.want("1 inactive 0 none [failure=1]")
		s.lags(time.Hour, 0, -1)
		s.want("1 inactive 0 none [activation=0 incomplete=1]")
		s.lags(time.Hour, 0, 0)
		s.want("0 inactive 0 in [activation=0 cooldown=0]")
	})
}

func TestPausedIsShownAndNotRemembered(t *testing.T) {
	t.Parallel()
	s := tell(t, policy())
	s.lags(0, 150, 0, 0)
	s.policy.Paused = true
	s.lags(time.Minute, 300, 0, 0)
	s.want("3 active 300 out [threshold=3 paused=3]")
	s.lags(time.Minute, 300, 0, 0)
	s.want("3 active 300 out [threshold=3 paused=3]")
	s.policy.Paused = false
	s.lags(time.Minute, 300, 0, 0)
	s.want("3 active 300 out [threshold=3]")
}

func TestDecideLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	s := tell(t, policy())
	s.lags(0, 300, 0, 5)
	lag := measured(s.now, 300, 0, 5)
	lag.Partitions[0].Owner = ""
	in := scaling.Input{Now: s.now.Add(time.Minute), Lag: lag, Policy: s.policy, Memory: s.memory}
	before := fmt.Sprintf("%+v %+v", in.Lag.Partitions[0].Status, in.Memory.Sizing)
	first, second := scaling.Decide(in), scaling.Decide(in)
	if after := fmt.Sprintf("%+v %+v", in.Lag.Partitions[0].Status, in.Memory.Sizing); after != before {
		t.Errorf("the input changed from %s to %s", before, after)
	}
	if !reflect.DeepEqual(first, second) {
		t.Error("the same input gave two outcomes")
	}
}

// TestUncheckpointed: if a lease has no continuation, only its owner knows the position.
func TestUncheckpointed(t *testing.T) {
	t.Parallel()
	t.Run("the first checkpoint ends it", func(t *testing.T) {
		t.Parallel()
		st := tell(t, policy())
		st.poll(0, func(at time.Time) changefeed.ProcessorLag {
			l := measured(at, 0)
			uncheckpointedPartition(&l.Partitions[0], 500)
			return l
		})
		st.lags(time.Minute, 0)
		st.want("1 inactive 0 none [activation=0 cooldown=1]")
	})
	for _, n := range []int{1, 3, 300} {
		t.Run(fmt.Sprintf("%d idle ones ask for one replica in all, for ever", n), func(t *testing.T) {
			t.Parallel()
			st := tell(t, policy(func(p *scaling.Policy) { p.Threshold = 1 }))
			for range 3 {
				st.poll(time.Hour, func(at time.Time) changefeed.ProcessorLag {
					l := measured(at, repeat(0, n)...)
					for i := range l.Partitions {
						uncheckpointedPartition(&l.Partitions[i], 500)
					}
					return l
				})
			}
			st.want("1 active 1 none [threshold=1 uncheckpointed=1]")
			if lag := st.lag.Lag(); *lag != 1 {
				t.Errorf("a lag of %d", *lag)
			}
		})
	}
	t.Run("the reason says what is at stake, and what ends it", func(t *testing.T) {
		t.Parallel()
		st := tell(t, policy())
		st.poll(0, func(at time.Time) changefeed.ProcessorLag {
			l := measured(at, 0, 0, 0)
			uncheckpointedPartition(&l.Partitions[1], 500)
			return l
		})
		got := st.last.Reasons[len(st.last.Reasons)-1]
		want := "the position of 1 of 3 partitions is in the memory of their owners alone: at zero replicas, what is written meanwhile would be skipped for good, " +
			"so one replica stays until each of them has had its first change, or the processor starts from the beginning"
		if got.Step != "uncheckpointed" || got.Why != want {
			t.Errorf("got %+v", got)
		}
	})
}

func uncheckpointedPartition(p *changefeed.Partition, session int64) {
	p.Lag, p.SessionLSN, p.Approximate, p.Status = new(int64), &session, true, changefeed.StatusUncheckpointed
}

func TestAStatusThatWakesDoesSoWhereAnotherOneHidesIt(t *testing.T) {
	t.Parallel()
	lag := measured(start, 5)
	lag.Partitions[0].Status, lag.Partitions[0].Reading = changefeed.StatusStalled, changefeed.StatusSplitting
	got := scaling.Decide(scaling.Input{Now: start, Lag: lag, Policy: policy(func(p *scaling.Policy) { p.Activation = 50 })})
	if got, want := describe(got.Decision), "1 active 51 out [threshold=1 splitting=1]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
