package scaling_test

import (
	"math"
	"testing"

	"github.com/feedscale/feedscale/pkg/scaling"
)

func TestCatchUp(t *testing.T) {
	t.Parallel()
	rate := func(r float64) *float64 { return &r }
	count := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		rule     string
		memory   scaling.Memory
		lag      *int64
		replicas int
		want     float64
		known    bool
	}{
		{"the lag over what is drained beyond what arrives", scaling.Memory{DrainPerReplica: 10, Arrival: rate(5)}, count(300), 2, 20, true},
		{"nothing arrives", scaling.Memory{DrainPerReplica: 10, Arrival: rate(0)}, count(300), 3, 10, true},
		{"more arrives than is drained: never", scaling.Memory{DrainPerReplica: 10, Arrival: rate(21)}, count(300), 2, math.Inf(1), true},
		{"as much arrives as is drained: never", scaling.Memory{DrainPerReplica: 10, Arrival: rate(20)}, count(300), 2, math.Inf(1), true},
		{"no replica drains nothing: never", scaling.Memory{DrainPerReplica: 10, Arrival: rate(0)}, count(300), 0, math.Inf(1), true},
		{"nothing is pending", scaling.Memory{DrainPerReplica: 10, Arrival: rate(5)}, count(0), 2, 0, false},
		{"what is pending is unknown", scaling.Memory{DrainPerReplica: 10, Arrival: rate(5)}, nil, 2, 0, false},
		{"no drain was measured yet", scaling.Memory{Arrival: rate(5)}, count(300), 2, 0, false},
		{"the arrival was not measured", scaling.Memory{DrainPerReplica: 10}, count(300), 2, 0, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got, known := c.memory.CatchUp(c.lag, c.replicas); got != c.want || known != c.known {
				t.Errorf("got %g, %v; want %g, %v", got, known, c.want, c.known)
			}
		})
	}
}
