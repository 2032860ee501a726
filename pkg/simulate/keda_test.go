package simulate_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

func TestKEDAAndTheHPAScaleByTheirDefaults(t *testing.T) {
	t.Parallel()
	many := func(partitions int, n int64) []int64 {
		row := make([]int64, partitions)
		for p := range row {
			row[p] = n
		}
		return row
	}
	// What arrives in second 0 is found by the second poll, at second 30.
	arriving := func(row []int64, seconds int) simulate.Trace {
		rows := append([][]int64{row}, quiet(len(row), seconds-1)...)
		return trace(len(row), rows...)
	}
	idle := simulate.Workers{Throughput: 1, StartUp: time.Hour}
	for _, c := range []struct {
		rule    string
		trace   simulate.Trace
		workers simulate.Workers
		want    changes
	}{
		{"nothing pending: nothing happens", arriving(many(4, 0), 400), idle, nil},
		{"KEDA makes one at its poll; the HPA at most doubles it at each sync, or makes it 4", arriving(many(20, 1000), 120), idle, changes{{30, 1}, {45, 4}, {60, 8}, {75, 16}, {90, 20}}},
		{"the metric is capped by the partitions with lag", arriving([]int64{100_000, 0, 0, 0}, 200), idle, changes{{30, 1}}},
		{"as many as the lag has thresholds", arriving([]int64{130, 130, 0, 0}, 200), idle, changes{{30, 1}, {45, 2}}},
		{"a lag rounded up", arriving([]int64{91, 91, 19, 0}, 200), idle, changes{{30, 1}, {45, 3}}},
		{"a lag a tenth above is tolerated", arriving([]int64{55, 55}, 200), idle, changes{{30, 1}}},
		{"one more is not", arriving([]int64{55, 56}, 200), idle, changes{{30, 1}, {45, 2}}},
		{"not above a hundred", arriving(many(120, 100), 400), idle, changes{{30, 1}, {45, 4}, {60, 8}, {75, 16}, {90, 32}, {105, 64}, {120, 100}}},
		{"zero 300 s after the last active poll", arriving(many(4, 150), 400), simulate.Workers{Throughput: 1000}, changes{{30, 1}, {330, 0}}},
		{"whatever the HPA still holds", arriving(many(4, 150), 500), simulate.Workers{Throughput: 1000, StartUp: time.Minute}, changes{{30, 1}, {45, 4}, {390, 0}}},
		{"the HPA scales in to the highest that it wanted in 300 s", arriving([]int64{10_000, 150, 150, 150}, 500), simulate.Workers{Throughput: 10}, changes{{30, 1}, {45, 4}, {360, 1}}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := run(c.trace, c.workers, simulate.KEDA(), simulate.Objective{})
			if got := changesOf(r); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAScalerBeginsEveryReplayAfresh(t *testing.T) {
	t.Parallel()
	tr := generate(t, "burst", simulate.Options{Seed: 3, Duration: time.Hour, Partitions: 4, Rate: 20})
	for _, s := range scalers() {
		if first, second := run(tr, standard, s, simulate.Objective{}), run(tr, standard, s, simulate.Objective{}); !reflect.DeepEqual(first, second) {
			t.Errorf("%s remembers the replay before", s.Name())
		}
	}
}

// TestAWholeSecondsStepTakesTooManyHoursOfKEDA: with steps of a second, what arrives in one counts as lag
// though it is worked off at once.
func TestAWholeSecondsStepTakesTooManyHoursOfKEDA(t *testing.T) {
	t.Parallel()
	tr := generate(t, "steady", simulate.Options{Seed: 1, Duration: 6 * time.Hour, Partitions: 8, Rate: 40})
	hours := func(steps int) float64 {
		return simulate.Run(tr, simulate.DefaultWorkers(), simulate.KEDA(), simulate.Conditions{Seed: 1, Steps: steps}, simulate.Objective{}).ReplicaHours
	}
	if whole, quarters := hours(1), hours(4); quarters > 0.97*whole {
		t.Errorf("%.1f hours with steps of a second, %.1f of a quarter", whole, quarters)
	}
}
