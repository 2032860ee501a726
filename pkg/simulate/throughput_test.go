package simulate_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// metered are workers of 25 transactions a second, each of which takes 20 RU, on a container.
func metered(ruPerSecond int) simulate.Workers {
	return simulate.Workers{
		Throughput: 25, StartUp: 10 * time.Second, Rebalance: time.Second, PollDelay: 5 * time.Second, Batch: 10,
		Container: simulate.Container{RUPerChange: 20, RUPerSecond: ruPerSecond},
	}
}

// backlog is a trace with so many transactions in each partition at the start, and nothing after them.
func backlog(partitions, each int, start time.Time, replay time.Duration) simulate.Trace {
	t := simulate.Trace{Name: "backlog", Start: start, Partitions: partitions, Backlog: 1, Arrivals: make([]int64, partitions*(1+int(replay/time.Second)))}
	for p := range partitions {
		t.Arrivals[p] = int64(each)
	}
	return t
}

// TestAContainerHoldsBackWhatItHasNoRequestUnitsFor counts what a replica for each partition works off.
func TestAContainerHoldsBackWhatItHasNoRequestUnitsFor(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		rule        string
		ruPerSecond int
		partitions  int
		least, most int64 // transactions in ten minutes
		throttled   bool
	}{
		{"without a limit each does its 25 a second", 0, 2, 27_000, 30_000, false},
		{"nor with enough", 1000, 2, 27_000, 30_000, false},
		{"half as much halves it", 500, 2, 13_500, 15_000, true},
		{"each partition has its even share alone", 1000, 4, 27_000, 30_000, true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := metered(c.ruPerSecond)
			if c.ruPerSecond == 0 {
				w.Container = simulate.Container{}
			}
			r := simulate.Run(backlog(c.partitions, 100_000, noon, 10*time.Minute), w, simulate.Fixed(c.partitions), simulate.Conditions{}, simulate.Objective{})
			if r.Processed < c.least || r.Processed > c.most || r.Throttled > 0 != c.throttled {
				t.Errorf("%d were processed, throttled for %s; want %d to %d", r.Processed, r.Throttled, c.least, c.most)
			}
		})
	}
}

func TestAnHourIsBilledByItsHighestThroughput(t *testing.T) {
	t.Parallel()
	// 150 minutes from 12:45 on are in four full hours.
	quarter := time.Date(2026, 1, 1, 12, 45, 0, 0, time.UTC)
	r := simulate.Run(backlog(2, 0, quarter, 150*time.Minute), metered(700), simulate.Fixed(1), simulate.Conditions{}, simulate.Objective{})
	if r.RUHours != 4*700 || r.PeakRU != 700 {
		t.Errorf("%g RU/s-hours at most %d RU/s, want 2800 and 700", r.RUHours, r.PeakRU)
	}
	// A backlog that is gone within the first quarter costs its hour, and that of scaleDownAfter.
	follows := simulate.WithThroughput(simulate.Feedscale("follows", config.DefaultPolicy(), time.Second), simulate.Provisioning{
		Policy: scaling.ThroughputPolicy{Max: 10_000, ScaleDownAfter: 30 * time.Minute},
	})
	r = simulate.Run(backlog(2, 2000, quarter, 150*time.Minute), metered(700), follows, simulate.Conditions{}, simulate.Objective{})
	if want := float64(2*1000 + 2*700); r.RUHours != want || r.PeakRU != 1000 || r.Left != 0 {
		t.Errorf("%g RU/s-hours at most %d RU/s, %d left; want %g and 1000", r.RUHours, r.PeakRU, r.Left, want)
	}
}

// TestThroughputThatFollowsKeepsTheObjectiveAndCostsLessThanThePeak replays traces that one replica, or the
// container as it is found, cannot hold.
func TestThroughputThatFollowsKeepsTheObjectiveAndCostsLessThanThePeak(t *testing.T) {
	t.Parallel()
	objective := simulate.Objective{Lag: 2000, Age: 2 * time.Minute}
	for _, name := range []string{"daily", "workday", "burst"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace, err := simulate.Generate(name, simulate.Options{Seed: 1, Duration: 24 * time.Hour, Partitions: 8, Rate: 50, Throughput: 25})
			if err != nil {
				t.Fatal(err)
			}
			base := simulate.Feedscale("as it is", config.DefaultPolicy(), 15*time.Second)
			policy := simulate.Provisioning{Policy: scaling.ThroughputPolicy{Max: 10_000, ScaleDownAfter: time.Hour}}
			conditions := simulate.Conditions{Acting: simulate.Consumer, Seed: 1}
			without := simulate.Run(trace, metered(600), base, conditions, objective)
			with := simulate.Run(trace, metered(600), simulate.WithThroughput(base, policy), conditions, objective)
			peak := simulate.Run(trace, metered(with.PeakRU), base, conditions, objective)
			t.Logf("without %g RU/s-hours, over for %s; with %g, %s; at the peak %g, %s", without.RUHours, without.OverAge, with.RUHours, with.OverAge, peak.RUHours, peak.OverAge)
			if with.OverAge > peak.OverAge+10*time.Minute || without.OverAge < with.OverAge+time.Hour {
				t.Errorf("over the objective for %s, without for %s, at the peak for %s", with.OverAge, without.OverAge, peak.OverAge)
			}
			if with.RUHours >= peak.RUHours || with.PeakRU <= 600 || without.RUHours != 24*600 {
				t.Errorf("%g RU/s-hours with a peak of %d, without %g, at the peak %g", with.RUHours, with.PeakRU, without.RUHours, peak.RUHours)
			}
		})
	}
}

// TestAContainerAtItsLimitHoldsScaleOutInAReplay has more arrive than max allows to be worked off.
func TestAContainerAtItsLimitHoldsScaleOutInAReplay(t *testing.T) {
	t.Parallel()
	trace, err := simulate.Generate("ramp", simulate.Options{Seed: 1, Duration: 2 * time.Hour, Partitions: 8, Rate: 100, Throughput: 25})
	if err != nil {
		t.Fatal(err)
	}
	// By the threshold, which asks for replicas however little they help; sizing by rates would stop by itself.
	policy := config.DefaultPolicy()
	policy.Sizing, policy.CatchUpWithin = scaling.SizingThreshold, 0
	base := simulate.Feedscale("p", policy, 15*time.Second)
	run := func(most int) simulate.Result {
		return simulate.Run(trace, metered(600), simulate.WithThroughput(base, simulate.Provisioning{Policy: scaling.ThroughputPolicy{Max: most, ScaleDownAfter: time.Hour}}), simulate.Conditions{}, simulate.Objective{})
	}
	held, free := run(800), run(10_000)
	unheld := simulate.Run(trace, metered(800), base, simulate.Conditions{}, simulate.Objective{})
	if held.PeakRU != 800 || held.ReplicaHours > unheld.ReplicaHours/2 {
		t.Errorf("held: %g replica-hours at %d RU/s, and %g where nothing holds it", held.ReplicaHours, held.PeakRU, unheld.ReplicaHours)
	}
	if free.Left > 1000 || free.PeakRU <= 800 {
		t.Errorf("free: %d left at %d RU/s", free.Left, free.PeakRU)
	}
}
