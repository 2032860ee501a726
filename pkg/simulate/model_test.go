package simulate_test

import (
	"cmp"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// standard are the workers of most tests: 10 transactions per second each.
var standard = simulate.Workers{Throughput: 10, StartUp: 20 * time.Second, Rebalance: 5 * time.Second}

// policy is the policy of a processor that sets little.
func policy(change func(*scaling.Policy)) scaling.Policy {
	p := scaling.Policy{
		Threshold: 100, Cooldown: 300 * time.Second, Health: health.Policy{LeaseExpiration: time.Minute, StalledAfter: 5 * time.Minute, StalledPolls: 2},
		Behavior: scaling.Behavior{ScaleDown: scaling.Rules{StabilizationWindow: 300 * time.Second}},
		Fallback: scaling.Fallback{FailureThreshold: 1, Behavior: scaling.FallbackMax},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// run replays a trace under conditions that are known to the second, in steps of one, with a handler that checkpoints
// after each transaction unless the workers say otherwise.
func run(t simulate.Trace, w simulate.Workers, s simulate.Scaler, o simulate.Objective) simulate.Result {
	w.Batch = cmp.Or(w.Batch, 1)
	return simulate.Run(t, w, s, simulate.Conditions{Aligned: true, Steps: 1}, o)
}

// fixed always asks for the same number of replicas.
func fixed(n int) simulate.Scaler {
	return simulate.Feedscale("fixed", policy(func(p *scaling.Policy) { p.MinReplicas, p.MaxReplicas = n, &n }), time.Hour)
}

// trace is a trace whose rows are written out: transactions by second, and within a second by
// partition.
func trace(partitions int, rows ...[]int64) simulate.Trace {
	t := simulate.Trace{Name: "written out", Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), Partitions: partitions}
	for _, row := range rows {
		t.Arrivals = append(t.Arrivals, row...)
	}
	return t
}

// quiet is a number of seconds in which nothing arrives.
func quiet(partitions, seconds int) [][]int64 {
	rows := make([][]int64, seconds)
	for i := range rows {
		rows[i] = make([]int64, partitions)
	}
	return rows
}

// lags returns the lag of each second of a series that has a point per second.
func lags(r simulate.Result) []int64 {
	var all []int64
	for _, p := range r.Series {
		all = append(all, p.Lag)
	}
	return all
}

// changes are the seconds in which the desired replicas changed, and to what.
type changes [][2]int

// changesOf finds the changes in a series that has a point per second.
func changesOf(r simulate.Result) (all changes) {
	last := 0
	for second, p := range r.Series {
		if p.Desired != last {
			last = p.Desired
			all = append(all, [2]int{second, last})
		}
	}
	return all
}

func TestTheModelOfTheWorkers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		trace    simulate.Trace
		workers  simulate.Workers
		replicas int
		want     []int64 // lag at the end of each second
	}{
		{
			"a replica works once it has started and the leases have moved",
			trace(1, append([][]int64{{100}}, quiet(1, 7)...)...),
			simulate.Workers{Throughput: 10, StartUp: 3 * time.Second, Rebalance: 2 * time.Second}, 1,
			[]int64{100, 100, 100, 100, 100, 90, 80, 70},
		},
		{
			"times below a second are rounded up",
			trace(1, append([][]int64{{100}}, quiet(1, 3)...)...),
			simulate.Workers{Throughput: 10, StartUp: time.Millisecond, Rebalance: time.Millisecond}, 1,
			[]int64{100, 100, 90, 80},
		},
		{
			"a partition is worked off by one replica alone",
			trace(2, append([][]int64{{100, 0}}, quiet(2, 2)...)...),
			simulate.Workers{Throughput: 10}, 2,
			[]int64{100, 90, 80},
		},
		{
			"replicas beyond the partitions are idle",
			trace(2, append([][]int64{{50, 50}}, quiet(2, 2)...)...),
			simulate.Workers{Throughput: 10}, 5,
			[]int64{100, 80, 60},
		},
		{
			"a replica spends what one partition does not need on its others",
			trace(3, append([][]int64{{1, 100, 3}}, quiet(3, 2)...)...),
			simulate.Workers{Throughput: 30}, 1,
			[]int64{104, 74, 44},
		},
		{
			"fractions of a transaction add up",
			trace(1, append([][]int64{{3}}, quiet(1, 6)...)...),
			simulate.Workers{Throughput: 0.4}, 1,
			[]int64{3, 3, 3, 2, 2, 1, 1},
		},
		{
			"idle time is not saved up",
			trace(1, []int64{0}, []int64{0}, []int64{0}, []int64{2}, []int64{0}, []int64{0}),
			simulate.Workers{Throughput: 0.5}, 1,
			[]int64{0, 0, 0, 2, 2, 1},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := run(c.trace, c.workers, fixed(c.replicas), simulate.Objective{})
			if got := lags(r); !reflect.DeepEqual(got, c.want) {
				t.Errorf("lag is %v, want %v", got, c.want)
			}
		})
	}
}

func TestASlowReplicaServesItsPartitionsInTurn(t *testing.T) {
	t.Parallel()
	// One partition alone keeps the replica busy, one change waits in another.
	rows := [][]int64{{1, 1}}
	for range 60 {
		rows = append(rows, []int64{1, 0})
	}
	r := run(trace(2, rows...), simulate.Workers{Throughput: 1}, fixed(1), simulate.Objective{})
	if r.MaxAge > 3*time.Second || r.Left != 2 {
		t.Errorf("the oldest change waited for %s, %d are left", r.MaxAge, r.Left)
	}
}

func TestStartingReplicasCost(t *testing.T) {
	t.Parallel()
	r := run(trace(1, quiet(1, 10)...), simulate.Workers{Throughput: 1, StartUp: 5 * time.Second}, fixed(3), simulate.Objective{})
	for i, p := range r.Series {
		want := 0
		if i >= 5 {
			want = 3
		}
		if p.Desired != 3 || p.Working != want {
			t.Errorf("second %d: %d desired, %d working; want 3 and %d", i, p.Desired, p.Working, want)
		}
	}
	if r.ReplicaHours != 30.0/3600 {
		t.Errorf("%v replica-hours, want 30 seconds' worth", r.ReplicaHours)
	}
}

func TestScaleInStopsStartingReplicasFirstAndThenNothingPauses(t *testing.T) {
	t.Parallel()
	rows := append(quiet(3, 30), []int64{30, 0, 0})
	rows = append(rows, quiet(3, 9)...)
	p := policy(func(p *scaling.Policy) {
		p.MinReplicas, p.Threshold = 1, 10
		p.Behavior.ScaleDown.StabilizationWindow = 0
	})
	w := simulate.Workers{Throughput: 5, StartUp: 20 * time.Second, Rebalance: 5 * time.Second}
	r := run(trace(3, rows...), w, simulate.Feedscale("", p, time.Second), simulate.Objective{})
	if want := []int64{30, 25, 20, 15, 10, 5, 0, 0, 0, 0}; !reflect.DeepEqual(lags(r)[30:], want) {
		t.Errorf("lag is %v, want %v", lags(r)[30:], want)
	}
	if want := (changes{{0, 1}, {31, 3}, {33, 2}, {35, 1}}); !reflect.DeepEqual(changesOf(r), want) {
		t.Errorf("desired replicas %v, want %v", changesOf(r), want)
	}
}

func TestALeaseThatMovesIsLeftAloneForTheRebalanceAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	// Polled every 10 s, one more replica at second 10, which takes the first lease. The first one ends
	// the change that it has in hand, for nothing.
	rows := append([][]int64{{150, 0}}, quiet(2, 8)...)
	rows = append(rows, []int64{0, 150})
	rows = append(rows, quiet(2, 8)...)
	p := policy(func(p *scaling.Policy) { p.MinReplicas = 1 })
	r := run(trace(2, rows...), simulate.Workers{Throughput: 10, Rebalance: 3 * time.Second}, simulate.Feedscale("", p, 10*time.Second), simulate.Objective{})
	want := []int64{150, 150, 150, 140, 130, 120, 110, 100, 90, 230, 221, 211, 201, 181, 161, 141, 121, 101}
	if got := lags(r); !reflect.DeepEqual(got, want) {
		t.Errorf("lag is %v, want %v", got, want)
	}
	if r.Out != 2 || r.In != 0 {
		t.Errorf("%d out, %d in; want 2 and 0", r.Out, r.In)
	}
}

func TestTheAgeIsThatOfTheOldestPendingChange(t *testing.T) {
	t.Parallel()
	rows := [][]int64{{0}, {15}, {0}, {10}, {0}, {0}, {0}}
	r := run(trace(1, rows...), simulate.Workers{Throughput: 5}, fixed(1), simulate.Objective{Lag: 9, Age: 2 * time.Second})
	var ages []int
	for _, p := range r.Series {
		ages = append(ages, int(p.Age/time.Second))
	}
	// The last 5 of second 1 are done in second 4; then 10 of second 3 are left.
	if want := []int{0, 1, 2, 3, 2, 3, 0}; !reflect.DeepEqual(ages, want) {
		t.Errorf("ages %v, want %v", ages, want)
	}
	if want := []int64{0, 15, 10, 15, 10, 5, 0}; !reflect.DeepEqual(lags(r), want) {
		t.Errorf("lags %v, want %v", lags(r), want)
	}
	if r.OverLag != 4*time.Second || r.OverAge != 2*time.Second || r.MaxAge != 3*time.Second || r.MaxLag != 15 {
		t.Errorf("over lag %s, over age %s, oldest %s, most %d", r.OverLag, r.OverAge, r.MaxAge, r.MaxLag)
	}
}

func TestTheOldestOfAllPartitionsCounts(t *testing.T) {
	t.Parallel()
	r := run(trace(3, []int64{0, 0, 0}, []int64{0, 0, 0}, []int64{0, 5, 0}, []int64{5, 0, 5}), standard, fixed(0), simulate.Objective{})
	if r.MaxAge != 2*time.Second || r.MaxLag != 15 {
		t.Errorf("oldest %s, most %d; want 2s and 15", r.MaxAge, r.MaxLag)
	}
}

func TestTheDecisionMeetsTheOwnersOfTheLeases(t *testing.T) {
	t.Parallel()
	// 15 s old where 10 s are allowed: 1.5 times the live owners.
	p := policy(func(p *scaling.Policy) { p.Threshold, p.MaxChangeAge, p.MinReplicas = 1000, 10*time.Second, 2 })
	rows := append([][]int64{{9, 9, 9, 9}}, quiet(4, 19)...)
	r := run(trace(4, rows...), simulate.Workers{Throughput: 0.01}, simulate.Feedscale("", p, 15*time.Second), simulate.Objective{})
	if want := (changes{{0, 2}, {15, 3}}); !reflect.DeepEqual(changesOf(r), want) {
		t.Errorf("desired replicas %v, want %v", changesOf(r), want)
	}
}

func TestWhatIsPendingAtTheStartIsAsOldAsItIs(t *testing.T) {
	t.Parallel()
	tr := trace(1, []int64{4}, []int64{4}, []int64{0}, []int64{0})
	tr.Backlog = 2
	r := run(tr, simulate.Workers{Throughput: 4}, fixed(1), simulate.Objective{})
	if tr.Duration() != 2*time.Second || r.Arrived != 8 || r.MaxAge != 2*time.Second || !reflect.DeepEqual(lags(r), []int64{4, 0}) {
		t.Errorf("%s, %d arrived, oldest %s, lags %v", tr.Duration(), r.Arrived, r.MaxAge, lags(r))
	}
}

func TestP99AgeIsNotExceededFor99PercentOfTheTime(t *testing.T) {
	t.Parallel()
	// Three seconds end with something pending, 1, 2 and 3 s old.
	for _, c := range []struct {
		seconds int
		want    time.Duration
	}{{300, 0}, {299, time.Second}, {150, 2 * time.Second}} {
		t.Run(fmt.Sprint(c.seconds), func(t *testing.T) {
			t.Parallel()
			rows := append([][]int64{{3}}, quiet(1, c.seconds-1)...)
			r := run(trace(1, rows...), simulate.Workers{Throughput: 1}, fixed(1), simulate.Objective{})
			if r.P99Age != c.want || r.MaxAge != 3*time.Second {
				t.Errorf("p99 %s, most %s; want %s and 3s", r.P99Age, r.MaxAge, c.want)
			}
		})
	}
}

func TestASeriesHasAThousandPointsAtMostAndKeepsThePeaks(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{1, 999, 1000, 1001, 86_401} {
		rows := quiet(1, seconds)
		rows[seconds-1][0] = 500
		r := run(trace(1, rows...), simulate.Workers{Throughput: 1}, fixed(1), simulate.Objective{})
		last := r.Series[len(r.Series)-1]
		if len(r.Series) > 1000 || len(r.Series) < min(seconds, 500) || last.Lag != r.MaxLag || r.MaxLag != 500 {
			t.Errorf("%d seconds: %d points, the last with a lag of %d of %d", seconds, len(r.Series), last.Lag, r.MaxLag)
		}
	}
}

func TestAPausedPolicyChangesNothing(t *testing.T) {
	t.Parallel()
	p := policy(func(p *scaling.Policy) { p.Paused, p.MinReplicas = true, 2 })
	r := run(trace(1, quiet(1, 100)...), standard, simulate.Feedscale("paused", p, time.Second), simulate.Objective{})
	if r.Actions() != 0 || r.ReplicaHours != 0 {
		t.Errorf("%d actions, %v replica-hours", r.Actions(), r.ReplicaHours)
	}
}

// every parses a cron expression of five fields.
func every(t *testing.T, expression string) cron.Schedule {
	t.Helper()
	schedule, err := cron.ParseStandard(expression)
	if err != nil {
		t.Fatal(err)
	}
	return schedule
}

func TestAScheduleFollowsTheTimeOfTheTrace(t *testing.T) {
	t.Parallel()
	p := policy(func(p *scaling.Policy) {
		p.Schedules = []scaling.Schedule{{Location: time.UTC, Start: every(t, "0 0 * * *"), End: every(t, "30 0 * * *"), DesiredReplicas: 1}}
		p.Cooldown = 0
	})
	r := run(trace(1, quiet(1, 3600)...), standard, simulate.Feedscale("scheduled", p, 30*time.Second), simulate.Objective{})
	if r.ReplicaHours != 0.5 || r.Out != 1 || r.In != 1 {
		t.Errorf("%v replica-hours, %d out, %d in; want half an hour once", r.ReplicaHours, r.Out, r.In)
	}
}

func TestAReplicaThatFoundNothingLooksAgainAfterThePollDelay(t *testing.T) {
	t.Parallel()
	arriving := func(at ...int) simulate.Trace {
		rows := quiet(1, 12)
		for _, second := range at {
			rows[second][0] = 3
		}
		return trace(1, rows...)
	}
	workers := simulate.Workers{Throughput: 10, PollDelay: 5 * time.Second}
	for _, c := range []struct {
		rule  string
		trace simulate.Trace
		want  []int64 // lag at the end of each second
	}{
		{"what comes meanwhile waits", arriving(1), []int64{0, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0}},
		{"after it has worked, too", arriving(1, 6, 8), []int64{0, 3, 3, 3, 3, 0, 3, 3, 6, 6, 0, 0}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := lags(run(c.trace, workers, fixed(1), simulate.Objective{})); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestWhatHappensToTheWorkers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		happens func(r *simulate.Replay, second int)
		want    []int64 // lag at the end of each second
	}{
		{"nothing", func(*simulate.Replay, int) {}, []int64{60, 50, 40, 30, 20, 10}},
		{"a replica does half as much", func(r *simulate.Replay, second int) {
			if second == 2 {
				r.SetThroughput(5)
			}
		}, []int64{60, 50, 45, 40, 35, 30}},
		{"all replicas share a limit", func(r *simulate.Replay, second int) {
			if second == 2 {
				r.SetSharedLimit(6)
			}
		}, []int64{60, 50, 44, 38, 32, 26}},
		{"the positions are set back", func(r *simulate.Replay, second int) {
			if second == 4 {
				r.Rewind(4)
			}
		}, []int64{60, 50, 40, 30, 50, 40}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			tr := trace(1, append([][]int64{{60}}, quiet(1, 5)...)...)
			if got := lags(run(tr, simulate.Workers{Throughput: 10}, happening{fixed(1), c.happens}, simulate.Objective{})); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// happening is a Scaler to whose workers something happens.
type happening struct {
	simulate.Scaler
	happens func(r *simulate.Replay, second int)
}

func (h happening) Begin(r *simulate.Replay) func(second int) int {
	act := h.Scaler.Begin(r)
	return func(second int) int {
		h.happens(r, second)
		return act(second)
	}
}
