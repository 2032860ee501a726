package main

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

func TestASeedDrawsTheSameShapeEveryTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2 * len(families)) {
		a, b := draw(seed, 3600, 16), draw(seed, 3600, 16)
		if a.Family != families[seed/2].name || !reflect.DeepEqual(a.rates, b.rates) || a.Workers != b.Workers {
			t.Errorf("seed %d: two draws of %s differ, or are no %s", seed, a.Family, families[seed/2].name)
		}
		if other := draw(seed+uint64(2*len(families)), 3600, 16); other.Family != a.Family || reflect.DeepEqual(a.rates, other.rates) {
			t.Errorf("seed %d: the next of %s is the same, or is %s", seed, a.Family, other.Family)
		}
	}
}

func TestADrawnShapeNeedsSomeReplicasOnAverage(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2 * len(families)) {
		for _, partitions := range []int{4, 16} {
			d := draw(seed, 3600, partitions)
			tr := d.arrivals(partitions, 1)
			replicas := float64(tr.Transactions()) / 3600 / d.Workers.Throughput
			scale := math.Sqrt(float64(partitions) / 4)
			if replicas < 0.55*scale || replicas > 2.3*scale {
				t.Errorf("seed %d, %s, %d partitions: %.2f replicas on average", seed, d.Family, partitions, replicas)
			}
			for second := range 3600 {
				if d.rates[second] < 0 {
					t.Fatalf("seed %d, %s: %v arrive in second %d", seed, d.Family, d.rates[second], second)
				}
			}
		}
	}
}

func TestDominatedIsWorseInBoth(t *testing.T) {
	t.Parallel()
	keda := simulate.Result{ReplicaHours: 10, Over: 1000 * time.Second}
	for _, c := range []struct {
		rule  string
		hours float64
		over  time.Duration
		want  bool
	}{
		{"more of both", 10.2, 1020 * time.Second, true},
		{"fewer hours", 9.9, 2000 * time.Second, false},
		{"less time over", 12, 999 * time.Second, false},
		{"as good within a hundredth", 10.09, 1500 * time.Second, false},
		{"as long within a hundredth", 12, 1010 * time.Second, false},
	} {
		if got := dominated(simulate.Result{ReplicaHours: c.hours, Over: c.over}, keda); got != c.want {
			t.Errorf("%s: %v", c.rule, got)
		}
	}
}

func TestTheCommandJudgesOnUnseenShapes(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	args := strings.Fields("-unseen 1-5 -duration 20m -seeds 1 -partitions 4 -startups 5s -polls 15s,60s -java")
	if err := run(t.Context(), args, &out, &progress); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "| flash |") || !strings.Contains(text, "| all |") || !strings.Contains(progress.String(), "3 of 3") {
		t.Errorf("%s\n%s", text, progress.String())
	}
	if err := run(t.Context(), []string{"-unseen", "5-1"}, &out, &progress); err == nil {
		t.Error("-unseen 5-1 is taken")
	}
}
