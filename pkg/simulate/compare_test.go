package simulate_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

var small = simulate.Matrix{
	Traces: []string{"burst", "hot"}, Options: simulate.Options{Seed: 3, Duration: time.Hour, Partitions: 4, Rate: 40}, Seeds: 2,
	Workers: simulate.Workers{Throughput: 25, PollDelay: 5 * time.Second}, Conditions: simulate.Conditions{FailedPolls: 0.02},
	Objective: simulate.Objective{Lag: 500, Age: time.Minute},
	StartUps:  []time.Duration{5 * time.Second, time.Minute}, Delays: []time.Duration{0, 30 * time.Second},
	Policies: []simulate.Scaler{simulate.Feedscale("default", policy(nil), simulate.DefaultEvery)},
}

// TestTheSameWhateverRunsBesideIt changes GOMAXPROCS, and so is not parallel.
func TestTheSameWhateverRunsBesideIt(t *testing.T) {
	var all [][]simulate.Cell
	for _, procs := range []int{1, 2, 7} {
		before := runtime.GOMAXPROCS(procs)
		cells, err := small.Run(context.Background(), nil)
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cells)
	}
	if !reflect.DeepEqual(all[0], all[1]) || !reflect.DeepEqual(all[0], all[2]) {
		t.Error("the cells depend on how many replays run at once")
	}
}

func TestAMatrixHasEveryCell(t *testing.T) {
	t.Parallel()
	var told []int
	cells, err := small.Run(t.Context(), func(done, all int) {
		if told = append(told, done); all != 2*2*2*(2*5+3+1) {
			t.Errorf("%d replays", all)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 112 || told[0] != 1 || told[111] != 112 {
		t.Errorf("told of %d replays: %v", len(told), told)
	}
	if want := 2 * 2 * 2 * (4 + 1 + 2); len(cells) != want {
		t.Fatalf("%d cells, want %d", len(cells), want)
	}
	var rows []string
	for _, c := range cells[7:14] {
		if c.Trace != "burst" || c.StartUp != 5*time.Second || c.Delay != 30*time.Second {
			t.Errorf("%s, %s, %s", c.Trace, c.StartUp, c.Delay)
		}
		rows = append(rows, string(c.Acting)+" "+c.Result.Scaler)
	}
	if want := []string{"consumer default", "metrics-api default", "metric-value default", "external-push default", "keda keda", " fixed", " bound"}; !reflect.DeepEqual(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	// A cell is the mean of what single replays give.
	var hours float64
	for seed := range uint64(2) {
		o := small.Options
		o.Seed += seed
		w := small.Workers
		w.StartUp = time.Minute
		c := simulate.Conditions{Acting: simulate.MetricsAPI, Delay: 30 * time.Second, FailedPolls: 0.02, Seed: o.Seed}
		hours += simulate.Run(generate(t, "burst", o), w, small.Policies[0], c, small.Objective).ReplicaHours / 2
	}
	if got := cells[3*7+1].Result.ReplicaHours; got != hours {
		t.Errorf("%v replica-hours, want %v", got, hours)
	}
}

func TestAComparisonEndsWithItsYardsticks(t *testing.T) {
	t.Parallel()
	var asked sync.Map
	c := simulate.Comparison{
		Trace: func(seed uint64) simulate.Trace {
			if _, again := asked.LoadOrStore(seed, true); again {
				t.Errorf("the trace of seed %d is made twice", seed)
			}
			return generate(t, "steady", simulate.Options{Seed: seed, Duration: time.Hour, Partitions: 8, Rate: 30})
		},
		Seeds: 3, Workers: simulate.Workers{Throughput: 25}, Conditions: simulate.Conditions{Seed: 5},
		Objective: simulate.Objective{Lag: 500, Age: time.Minute}, Scalers: scalers()[:2], Yardsticks: true,
	}
	results, err := c.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 4 || results[0].Scaler != "default" || results[1].Scaler != "age" {
		t.Fatalf("%d results", len(results))
	}
	// 30/s over 8 leases: two replicas of 25/s do it.
	if fixed := results[2]; fixed.Fixed != 2 || fixed.ReplicaHours != 2 {
		t.Errorf("the best fixed count is %d for %v hours, want 2", fixed.Fixed, fixed.ReplicaHours)
	}
	if bound := results[3]; !bound.Bound || bound.ReplicaHours < 1.15 || bound.ReplicaHours > 1.25 {
		t.Errorf("a bound of %v hours, want about 30/25", bound.ReplicaHours)
	}
}

func TestTheBestFixedCountIsTheLowestThatIsNearlyAsGood(t *testing.T) {
	t.Parallel()
	at := func(count int, over time.Duration, left int64) simulate.Result {
		return simulate.Result{Fixed: count, OverLag: over / 2, OverAge: over - over/2, Left: left}
	}
	for _, c := range []struct {
		rule    string
		results []simulate.Result
		want    int
	}{
		{"no worse than the best", []simulate.Result{at(1, time.Hour, 0), at(2, 0, 0), at(4, 0, 0)}, 2},
		{"a thousandth of the time is nothing", []simulate.Result{at(1, 87*time.Second, 0), at(2, 86*time.Second, 0), at(4, 0, 0)}, 2},
		{"where no count keeps the objectives, the one that falls behind no further", []simulate.Result{at(1, 10*time.Hour, 5_000_000), at(2, 10*time.Hour, 1_000_000), at(4, 10*time.Hour, 999_100)}, 2},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := simulate.BestFixed(c.results, 24*time.Hour, simulate.Objective{Lag: 100}).Fixed; got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
	if got, want := simulate.FixedCounts(8), []int{1, 2, 3, 4, 8}; !reflect.DeepEqual(got, want) {
		t.Errorf("of 8 partitions %v, want %v", got, want)
	}
}

func TestTheMeanOfWholeNumbersAddsUp(t *testing.T) {
	t.Parallel()
	m := simulate.Mean([]simulate.Result{
		{ReplicaHours: 1, OverLag: time.Second, Out: 1, MaxAge: 3 * time.Second, Arrived: 10, Processed: 5, Left: 5},
		{ReplicaHours: 2, OverLag: 4 * time.Second, Out: 2, MaxAge: 4 * time.Second, Arrived: 11, Processed: 9, Left: 2},
	})
	if m.ReplicaHours != 1.5 || m.OverLag != 3*time.Second || m.Out != 2 || m.MaxAge != 4*time.Second || m.Arrived != 11 || m.Arrived != m.Processed+m.Left {
		t.Errorf("%+v", m)
	}
}

func TestAComparisonStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := small.Run(ctx, func(int, int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
