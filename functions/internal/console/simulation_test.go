package console_test

import (
	"io"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// simulation is a minute of two transactions a second in two partitions, replayed against two
// policies.
func simulation() console.Simulation {
	result := func(name string, lag int64, replicas int, over time.Duration, left int64) simulate.Result {
		r := simulate.Result{
			Scaler: name, ReplicaHours: 1.25, OverLag: over, OverAge: 2 * over, Out: replicas, In: 1,
			MaxLag: lag, MaxAge: 90 * time.Second, P99Age: time.Minute, Arrived: 120, Processed: 120 - left, Left: left,
		}
		for n := range 6 {
			at := simulate.Point{At: time.Duration(10*n) * time.Second, Lag: lag * int64(n) / 5, Desired: replicas, Working: replicas}
			at.Age = time.Duration(at.Lag) * time.Second
			r.Series = append(r.Series, at)
		}
		return r
	}
	arrivals := make([]int64, 2*60)
	for i := range arrivals {
		arrivals[i] = 1
	}
	return console.Simulation{
		Trace:     simulate.Trace{Name: "steady", Start: noon, Partitions: 2, Arrivals: arrivals},
		Seed:      new(uint64(7)),
		Workers:   simulate.Workers{Throughput: 25, StartUp: 30 * time.Second},
		Objective: simulate.Objective{Lag: 20, Age: time.Minute},
		Results:   []simulate.Result{result("default", 16, 2, 0, 0), result("slow", 64, 1, 75*time.Second, 60)},
	}
}

func TestASimulationIsATableAndChartsOnOneScale(t *testing.T) {
	t.Parallel()
	golden(t, "simulation", func(w io.Writer, style console.Style) error { return simulation().Write(w, style) })
}

func TestOfOnePolicyTheChartsAreTaller(t *testing.T) {
	t.Parallel()
	golden(t, "simulation-of-one", func(w io.Writer, style console.Style) error {
		s := simulation()
		s.Results = s.Results[1:]
		return s.Write(w, style)
	})
}

func TestARecordedTraceSaysFromWhenAndWhatWasGuessed(t *testing.T) {
	t.Parallel()
	golden(t, "simulation-recorded", func(w io.Writer, style console.Style) error {
		s := simulation()
		s.Trace.Name, s.Seed, s.Guessed = "orders", nil, 90*time.Minute
		return s.Write(w, style)
	})
}

func TestASimulationForOtherProgramsHasEveryField(t *testing.T) {
	t.Parallel()
	golden(t, "simulation-json", func(w io.Writer, _ console.Style) error { return console.WriteJSON(w, simulation().Report()) })
}
