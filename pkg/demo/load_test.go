package demo_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/demo"
)

func TestASteadyLoadIsTheSameEverySecond(t *testing.T) {
	t.Parallel()
	for elapsed, want := range map[time.Duration]int64{0: 0, 500 * time.Millisecond: 45, time.Second: 90, time.Minute: 5400} {
		if got := demo.SteadyTotal(90, elapsed); got != want {
			t.Errorf("after %s: got %d documents, want %d", elapsed, got, want)
		}
	}
}

func TestABurstyLoadIsSilentBetweenBursts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		elapsed time.Duration
		want    int64
	}{
		{"nothing before the first", 4 * time.Second, 0},
		{"nothing as it begins", 5 * time.Second, 0},
		{"at its rate during it", 6 * time.Second, 300},
		{"its size at its end", 8 * time.Second, 900},
		{"no more behind it", 44 * time.Second, 900},
		{"the second at its rate", 47 * time.Second, 1500},
		{"both at the end", 84 * time.Second, 1800},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := demo.BurstyTotal(900, 300, 5*time.Second, 40*time.Second, c.elapsed); got != c.want {
				t.Errorf("got %d documents, want %d", got, c.want)
			}
		})
	}
}
