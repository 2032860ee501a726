package simulate_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// scalers are of both kinds, and together take every step that depends on
// what was measured.
func scalers() []simulate.Scaler {
	return []simulate.Scaler{
		simulate.Feedscale("default", policy(nil), simulate.DefaultEvery),
		simulate.Feedscale("age", policy(func(p *scaling.Policy) { p.MaxChangeAge, p.Threshold = 30*time.Second, 1000 }), 10*time.Second),
		simulate.Feedscale("rate", policy(func(p *scaling.Policy) {
			p.CatchUpWithin, p.Cooldown = time.Minute, 30*time.Second
			p.Behavior.ScaleDown.StabilizationWindow = 0
		}), 7*time.Second),
		simulate.KEDA(),
	}
}

func generate(t *testing.T, name string, o simulate.Options) simulate.Trace {
	t.Helper()
	tr, err := simulate.Generate(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestEveryReplayKeepsTheLaws(t *testing.T) { everyReplayKeepsTheLaws(t, time.Hour) }

func TestEveryReplayKeepsTheLaws_Long(t *testing.T) { everyReplayKeepsTheLaws(t, 8*time.Hour) }

// everyReplayKeepsTheLaws holds what is true of every trace, scaler and seed.
func everyReplayKeepsTheLaws(t *testing.T, duration time.Duration) {
	t.Helper()
	t.Parallel()
	for _, name := range simulate.Names() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				t.Parallel()
				o := simulate.Options{Seed: seed, Duration: duration, Partitions: 3 + int(seed)*5, Rate: 20 * float64(seed+1)}
				tr := generate(t, name, o)
				w := simulate.Workers{
					Throughput: 7.3 * float64(seed+1), StartUp: time.Duration(seed) * 17 * time.Second,
					Rebalance: time.Duration(seed) * 4 * time.Second, Batch: []int{10, 100, 1000}[seed],
				}
				for _, s := range append(scalers(), simulate.FixedCount(o.Partitions)) {
					r := simulate.Run(tr, w, s, simulate.Conditions{Seed: seed}, simulate.Objective{Lag: 500, Age: time.Minute})
					if r.Arrived != tr.Transactions() || r.Arrived != r.Processed+r.Left {
						t.Errorf("%s: %d in the trace, %d arrived, %d processed, %d left", s.Name(), tr.Transactions(), r.Arrived, r.Processed, r.Left)
					}
					if most := r.ReplicaHours * 3600 * w.Throughput; r.Processed == 0 || float64(r.Processed) > most {
						t.Errorf("%s: %d processed, more than nothing and at most %.0f is possible", s.Name(), r.Processed, most)
					}
					if r.P99Age > r.MaxAge || r.OverLag > tr.Duration() || r.OverAge > tr.Duration() {
						t.Errorf("%s: p99 %s of %s, over lag %s, over age %s of %s", s.Name(), r.P99Age, r.MaxAge, r.OverLag, r.OverAge, tr.Duration())
					}
					for _, p := range r.Series {
						if p.Working > p.Desired || p.Desired > o.Partitions {
							t.Fatalf("%s: %d of %d replicas work, for %d partitions", s.Name(), p.Working, p.Desired, o.Partitions)
						}
						if (p.Lag == 0) != (p.Age == 0) {
							t.Fatalf("%s: a lag of %d is %s old", s.Name(), p.Lag, p.Age)
						}
					}
				}
			})
		}
	}
}

func TestNoLeaseIsWorkedOffFasterThanItsHandlerAndItsReplicaAre(t *testing.T) {
	t.Parallel()
	const leases, seconds = 5, 600
	for _, w := range []simulate.Workers{
		{Throughput: 30, Batch: 100},
		{Throughput: 0.7, Batch: 1000},
	} {
		rows := quiet(leases, seconds)
		for p := range leases {
			rows[0][p] = 1_000_000
		}
		for hosts := 1; hosts <= 7; hosts++ {
			f := simulate.NewFleet(trace(leases, rows...), w, uint64(hosts))
			f.Scale(hosts)
			most := min(float64(hosts)*w.Throughput, leases*w.Throughput)
			for second := range seconds {
				f.Second()
				_, processed, _ := f.Counts()
				if limit := most * float64(second+1); float64(processed) > limit {
					t.Fatalf("%+v, %d hosts: %d processed in %d s, at most %.0f are possible", w, hosts, processed, second+1, limit)
				}
			}
			if _, processed, _ := f.Counts(); float64(processed) < most*seconds*0.6-float64(leases*w.Batch) {
				t.Errorf("%+v, %d hosts: %d processed, though %.0f are possible", w, hosts, processed, most*seconds)
			}
		}
	}
}

func TestTheSameSeedGivesTheSameReplay(t *testing.T) {
	t.Parallel()
	for _, name := range simulate.Names() {
		o := simulate.Options{Seed: 42, Duration: 40 * time.Minute, Partitions: 4, Rate: 30}
		first, second := generate(t, name, o), generate(t, name, o)
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: two traces of one seed differ", name)
		}
		o.Seed++
		if reflect.DeepEqual(first.Arrivals, generate(t, name, o).Arrivals) {
			t.Errorf("%s: another seed gives the same trace", name)
		}
		for _, s := range scalers() {
			c := simulate.Conditions{Seed: 42}
			a := simulate.Run(first, standard, s, c, simulate.Objective{Lag: 100})
			b := simulate.Run(second, standard, s, c, simulate.Objective{Lag: 100})
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s, %s: two replays differ", name, s.Name())
			}
		}
	}
}

func TestMoreThroughputNeverMeansMoreTimeOverTheObjectiveWhenSteady(t *testing.T) {
	t.Parallel()
	tr := generate(t, "steady", simulate.Options{Seed: 7, Duration: 3 * time.Hour, Partitions: 6, Rate: 40})
	for _, replicas := range []int{1, 4, 6} {
		before := tr.Duration() + 1
		for _, throughput := range []float64{1, 2.5, 5, 10, 11, 20, 40, 41, 80, 400} {
			w := standard
			w.Throughput = throughput
			r := run(tr, w, fixed(replicas), simulate.Objective{Lag: 200})
			if r.OverLag > before {
				t.Errorf("%d replicas: %s over the objective with %v a second, %s with less", replicas, r.OverLag, throughput, before)
			}
			before = r.OverLag
		}
		if replicas == 6 && before > time.Minute {
			t.Errorf("%s over the objective with far more than is needed", before)
		}
	}
}

func BenchmarkADay(b *testing.B) {
	tr, err := simulate.Generate("daily", simulate.Options{Seed: 1, Duration: 24 * time.Hour, Partitions: 8, Rate: 50})
	if err != nil {
		b.Fatal(err)
	}
	w := simulate.DefaultWorkers()
	for _, s := range append(scalers(), simulate.FixedCount(4)) {
		b.Run(s.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				simulate.Run(tr, w, s, simulate.Conditions{}, simulate.Objective{Lag: 1000, Age: time.Minute})
			}
		})
	}
}
