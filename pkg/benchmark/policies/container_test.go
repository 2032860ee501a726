package main

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// on replays a trace on a container with so many RU/s. A worker processes 25 transactions a second,
// and each takes 20 RU.
func on(t simulate.Trace, ruPerSecond int, follow *scaling.ThroughputPolicy, s simulate.Scaler, o simulate.Objective) (simulate.Result, *meter) {
	w := simulate.Workers{Throughput: 25, StartUp: 10 * time.Second, Rebalance: time.Second, PollDelay: 5 * time.Second, Batch: 10}
	m := newMeter(s, Container{20, ruPerSecond, follow}, t, w)
	return simulate.Run(t, w, m, simulate.Conditions{Seed: 1}, o), m
}

// backlog is a trace with so many transactions in each partition at the start and none later.
func backlog(partitions, each int, start time.Time, replay time.Duration) simulate.Trace {
	t := simulate.Trace{
		Name: "backlog", Start: start, Partitions: partitions, Backlog: 1,
		Arrivals: make([]int64, partitions*(1+int(replay/time.Second))),
	}
	for p := range partitions {
		t.Arrivals[p] = int64(each)
	}
	return t
}

// TestAContainerHoldsBackWhatItHasNoRequestUnitsFor counts what one replica for each partition
// processes.
func TestAContainerHoldsBackWhatItHasNoRequestUnitsFor(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		rule        string
		ruPerSecond int
		partitions  int
		least, most int64 // transactions in ten minutes
	}{
		{"with enough each does its 25 a second", 1000, 2, 27_000, 30_000},
		{"half as much halves it", 500, 2, 13_500, 15_000},
		{"each partition has its even share alone", 1000, 4, 27_000, 30_000},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r, _ := on(backlog(c.partitions, 100_000, noon, 10*time.Minute), c.ruPerSecond, nil, simulate.FixedCount(c.partitions), simulate.Objective{})
			if r.Processed < c.least || r.Processed > c.most {
				t.Errorf("%d were processed; want %d to %d", r.Processed, c.least, c.most)
			}
		})
	}
}

func TestAnHourIsBilledByItsHighestThroughput(t *testing.T) {
	t.Parallel()
	// The 150 minutes from 12:45 touch four hours.
	quarter := time.Date(2026, 1, 1, 12, 45, 0, 0, time.UTC)
	if _, m := on(backlog(2, 0, quarter, 150*time.Minute), 700, nil, simulate.FixedCount(1), simulate.Objective{}); m.ruHours() != 4*700 || m.peak != 700 {
		t.Errorf("%g RU/s-hours at most %d RU/s, want 2800 and 700", m.ruHours(), m.peak)
	}
	// A backlog that is gone within the first quarter hour costs its hour, and the hour of
	// scaleDownAfter.
	follow := &scaling.ThroughputPolicy{Max: 10_000, ScaleDownAfter: 30 * time.Minute}
	policy := simulate.Feedscale("follows", config.DefaultPolicy(), time.Second)
	r, m := on(backlog(2, 2000, quarter, 150*time.Minute), 700, follow, policy, simulate.Objective{})
	if want := float64(2*1000 + 2*700); m.ruHours() != want || m.peak != 1000 || r.Left != 0 {
		t.Errorf("%g RU/s-hours at most %d RU/s, %d left; want %g and 1000", m.ruHours(), m.peak, r.Left, want)
	}
}

// TestThroughputThatFollowsKeepsTheObjectiveAndCostsLessThanThePeak replays traces that need more
// than one replica, or more than the initial throughput.
func TestThroughputThatFollowsKeepsTheObjectiveAndCostsLessThanThePeak(t *testing.T) {
	t.Parallel()
	objective := simulate.Objective{Lag: 2000, Age: 2 * time.Minute}
	for _, shape := range shapesNamed([]string{"daily", "workday", "burst"}) {
		t.Run(shape.Name, func(t *testing.T) {
			t.Parallel()
			tr := arrivals(t, shape, 1, Load{Duration: 24 * time.Hour, Partitions: 8, Rate: 50})
			policy := simulate.Feedscale("as it is", config.DefaultPolicy(), 15*time.Second)
			stays, without := on(tr, 600, nil, policy, objective)
			follows, with := on(tr, 600, &scaling.ThroughputPolicy{Max: 10_000, ScaleDownAfter: time.Hour}, policy, objective)
			highest, peak := on(tr, with.peak, nil, policy, objective)
			if follows.OverAge > highest.OverAge+10*time.Minute || stays.OverAge < follows.OverAge+time.Hour {
				t.Errorf("over the objective for %s, without for %s, at the peak for %s", follows.OverAge, stays.OverAge, highest.OverAge)
			}
			if with.ruHours() >= peak.ruHours() || with.peak <= 600 || without.ruHours() != 24*600 {
				t.Errorf("%g RU/s-hours with a peak of %d, without %g, at the peak %g", with.ruHours(), with.peak, without.ruHours(), peak.ruHours())
			}
		})
	}
}

// TestAContainerAtItsLimitHoldsScaleOutInAReplay has more arrivals than max allows to process.
func TestAContainerAtItsLimitHoldsScaleOutInAReplay(t *testing.T) {
	t.Parallel()
	tr := arrivals(t, shapesNamed([]string{"ramp"})[0], 1, Load{Duration: 2 * time.Hour, Partitions: 8, Rate: 100})
	// The threshold asks for replicas even if they do not help; sizing by rates would stop by
	// itself.
	policy := config.DefaultPolicy()
	policy.Sizing, policy.CatchUpWithin = scaling.SizingThreshold, 0
	base := simulate.Feedscale("p", policy, 15*time.Second)
	upTo := func(most int) (simulate.Result, *meter) {
		return on(tr, 600, &scaling.ThroughputPolicy{Max: most, ScaleDownAfter: time.Hour}, base, simulate.Objective{})
	}
	held, holds := upTo(800)
	free, allows := upTo(10_000)
	unheld, _ := on(tr, 800, nil, base, simulate.Objective{})
	if holds.peak != 800 || held.ReplicaHours > unheld.ReplicaHours/2 {
		t.Errorf("held: %g replica-hours at %d RU/s, and %g where nothing holds it", held.ReplicaHours, holds.peak, unheld.ReplicaHours)
	}
	if free.Left > 1000 || allows.peak <= 800 {
		t.Errorf("free: %d left at %d RU/s", free.Left, allows.peak)
	}
}
