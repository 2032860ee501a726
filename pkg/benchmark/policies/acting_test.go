package main

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// changesUnder returns the seconds at which the desired replicas changed, with the new value. The
// replay must be short enough to have one point per second.
func changesUnder(tr simulate.Trace, w simulate.Workers, s simulate.Scaler, c simulate.Conditions) (all changes) {
	last := 0
	for second, p := range simulate.Run(tr, w, s, c, simulate.Objective{}).Series {
		if p.Desired != last {
			last = p.Desired
			all = append(all, [2]int{second, last})
		}
	}
	return all
}

type changes [][2]int

var aligned = simulate.Conditions{Aligned: true}

func TestTheWaysOfActing(t *testing.T) {
	t.Parallel()
	// 650 are pending in 8 partitions from the first second, and nobody processes them. feedscale
	// polls at 0, 20, 40 ... and asks for 7 from second 20.
	rows := append([][]int64{{650, 0, 0, 0, 0, 0, 0, 0}}, quiet(8, 200)...)
	idle := simulate.Workers{Throughput: 1, StartUp: time.Hour}
	s := simulate.Feedscale("", policy(nil), 20*time.Second)
	bounds := policy(func(p *scaling.Policy) { p.MinReplicas, p.MaxReplicas = 2, new(6) })
	for _, c := range []struct {
		rule      string
		contender Contender
		want      changes
	}{
		{"a consumer follows at once", Contender{s, Consumer, 0}, changes{{20, 7}}},
		{"a delay comes on top", Contender{s, Consumer, 7 * time.Second}, changes{{27, 7}}},
		{"with KEDA's own trigger, too", Contender{simulate.KEDA(), KEDATrigger, 7 * time.Second}, changes{{37, 1}}},
		{
			"metrics-api: KEDA wakes it at its poll, the HPA has all at its next round",
			Contender{s, MetricsAPI, 0}, changes{{20, 1}, {30, 7}},
		},
		{
			"metric-value: KEDA's own waits, and the HPA has 4 at most and then twice as many",
			Contender{s, MetricValue, 0}, changes{{30, 1}, {45, 4}, {60, 7}},
		},
		{"external-push: KEDA is told at the decision", Contender{s, ExternalPush, 0}, changes{{20, 1}, {30, 7}}},
		{
			"minReplicaCount wakes as many, maxReplicaCount holds",
			Contender{simulate.Feedscale("", bounds, 20*time.Second), MetricsAPI, 0}, changes{{0, 2}, {30, 6}},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := changesUnder(trace(8, rows...), idle, c.contender, aligned); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestKEDACoolsDownOnTopOfKEDAsArithmeticAlone(t *testing.T) {
	t.Parallel()
	// Everything is processed in the second after the poll. feedscale decides zero 60 s after its
	// last active poll, at 75. The sample's ScaledObject has no cooldown of its own.
	rows := append([][]int64{{50}}, quiet(1, 400)...)
	s := simulate.Feedscale("", policy(func(p *scaling.Policy) { p.Cooldown = time.Minute }), 15*time.Second)
	fast := simulate.Workers{Throughput: 100}
	if got, want := changesUnder(trace(1, rows...), fast, Contender{s, MetricsAPI, 0}, aligned), (changes{{15, 1}, {75, 0}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// MetricValue goes to zero with the lag.
	if got, want := changesUnder(trace(1, rows...), fast, Contender{s, MetricValue, 0}, aligned), (changes{{30, 1}, {90, 0}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEveryLoopBeginsAtRandom(t *testing.T) {
	t.Parallel()
	rows := append([][]int64{{650, 0, 0, 0, 0, 0, 0, 0}}, quiet(8, 200)...)
	idle := simulate.Workers{Throughput: 1, StartUp: time.Hour}
	for _, c := range []struct {
		scaler     simulate.Scaler
		acting     Acting
		first, end int // the first replica must come between these seconds
	}{
		{simulate.Feedscale("", policy(nil), 15*time.Second), Consumer, 3, 18},
		{simulate.Feedscale("", policy(nil), 15*time.Second), MetricsAPI, 1, 44},
		{simulate.KEDA(), KEDATrigger, 1, 31},
	} {
		seen := make(map[string]bool)
		for seed := range uint64(60) {
			got := changesUnder(trace(8, rows...), idle, Contender{c.scaler, c.acting, 0}, simulate.Conditions{Seed: seed})
			if len(got) == 0 || got[0][0] < c.first || got[0][0] > c.end {
				t.Errorf("%s, %s, seed %d: %v, want the first from %d to %d", c.scaler.Name(), c.acting, seed, got, c.first, c.end)
			}
			seen[fmt.Sprint(got)] = true
		}
		if len(seen) < 10 {
			t.Errorf("%s, %s: 60 seeds give %d courses", c.scaler.Name(), c.acting, len(seen))
		}
	}
}
