package simulate_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// compared are two policies on two traces of an hour.
func compared(t *testing.T) simulate.Comparison {
	return simulate.Comparison{
		Trace: func(seed uint64) simulate.Trace {
			return generate(t, "steady", simulate.Options{Seed: seed, Duration: time.Hour, Partitions: 8, Rate: 30})
		},
		Seed: 5, Seeds: 3, Workers: simulate.Workers{Throughput: 25},
		Objective: simulate.Objective{Lag: 500, Age: time.Minute}, Scalers: scalers()[:2], BestFixed: true,
	}
}

// TestTheSameWhateverRunsBesideIt changes GOMAXPROCS, and so is not parallel.
func TestTheSameWhateverRunsBesideIt(t *testing.T) {
	var all [][]simulate.Result
	for _, procs := range []int{1, 2, 7} {
		before := runtime.GOMAXPROCS(procs)
		results, err := compared(t).Run(t.Context())
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, results)
	}
	if !reflect.DeepEqual(all[0], all[1]) || !reflect.DeepEqual(all[0], all[2]) {
		t.Error("the results depend on how many replays run at once")
	}
}

func TestAComparisonEndsWithTheBestFixedCount(t *testing.T) {
	t.Parallel()
	c, asked := compared(t), []uint64{}
	draw := c.Trace
	c.Trace = func(seed uint64) simulate.Trace {
		asked = append(asked, seed)
		return draw(seed)
	}
	results, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 3 || results[0].Scaler != "default" || results[1].Scaler != "age" {
		t.Fatalf("%d results", len(results))
	}
	// 30/s over 8 leases: two replicas of 25/s do it.
	if fixed := results[2]; fixed.Fixed != 2 || fixed.ReplicaHours != 2 {
		t.Errorf("the best fixed count is %d for %v hours, want 2", fixed.Fixed, fixed.ReplicaHours)
	}
	if want := []uint64{5, 6, 7}; !reflect.DeepEqual(asked, want) {
		t.Errorf("drawn are the traces of %v, want %v", asked, want)
	}
	// Each is the mean of what single replays give.
	hours := 0.0
	for seed := range uint64(3) {
		conditions := simulate.Conditions{Seed: 5 + seed}
		hours += simulate.Run(draw(5+seed), c.Workers, c.Scalers[1], conditions, c.Objective).ReplicaHours
	}
	if got := results[1].ReplicaHours; got != hours/3 {
		t.Errorf("%v replica-hours, want %v", got, hours/3)
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
	cancel()
	if _, err := compared(t).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAComparisonTellsHowFarItIsAndStopsWithinAReplay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	told := 0.0
	_, err := simulate.Comparison{
		Trace: func(uint64) simulate.Trace { return trace(1, quiet(1, 10*3600)...) }, Seeds: 1, Workers: standard, Scalers: []simulate.Scaler{fixed(1)},
		Told: func(done float64) {
			if told = done; done >= 0.3 {
				cancel()
			}
		},
	}.Run(ctx)
	if !errors.Is(err, context.Canceled) || told != 0.3 {
		t.Errorf("%v after %.0f %%", err, 100*told)
	}
}
