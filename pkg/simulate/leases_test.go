package simulate_test

import (
	"fmt"
	"testing"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// even reports whether every lease is held, and no host has two more than another.
func even(f *simulate.Fleet, leases int) bool {
	sum, least, most := 0, leases, 0
	for _, n := range f.Held() {
		sum, least, most = sum+n, min(least, n), max(most, n)
	}
	return sum == leases && most-least <= 1
}

// settled has seconds pass until the leases are even, and returns how many.
func settled(t *testing.T, f *simulate.Fleet, leases int) int {
	t.Helper()
	for seconds := range 1000 {
		f.Second()
		if even(f, leases) {
			return seconds + 1
		}
	}
	t.Fatalf("after 1000 s the leases are held as %v", f.Held())
	return 0
}

// TestLeasesMoveAsTheSDKMovesThem holds the model to what Microsoft.Azure.Cosmos 3.64.0 was seen to
// do with 32 leases and its default settings. Each number was measured once; the model's is a mean.
func TestLeasesMoveAsTheSDKMovesThem(t *testing.T) {
	t.Parallel()
	const leases, seeds = 32, 40
	for _, c := range []struct {
		from, to int
		seconds  float64 // measured
		off      float64 // seconds that the mean may be off
	}{
		{0, 1, 0.9, 0.2},
		{1, 4, 105, 16},
		{0, 4, 132, 12},
		{0, 8, 109, 12},
		{4, 3, 13, 4},
	} {
		t.Run(fmt.Sprintf("%d to %d", c.from, c.to), func(t *testing.T) {
			t.Parallel()
			sum := 0
			for seed := range uint64(seeds) {
				f := simulate.NewFleet(trace(leases, quiet(leases, 3000)...), simulate.Workers{Throughput: 1}, seed)
				if c.from > 0 {
					f.Scale(c.from)
					settled(t, f, leases)
					for range 20 + seed%17 { // any moment of the hosts' own loops
						f.Second()
					}
				}
				f.Scale(c.to)
				sum += settled(t, f, leases)
			}
			if mean := float64(sum) / seeds; mean < c.seconds-c.off || mean > c.seconds+c.off {
				t.Errorf("even after %.1f s on average, the SDK after %.1f s", mean, c.seconds)
			}
		})
	}
}

func TestALeaseHasOneOwnerAtMost(t *testing.T) {
	t.Parallel()
	const leases = 13
	for seed := range uint64(20) {
		f := simulate.NewFleet(trace(leases, quiet(leases, 2000)...), simulate.Workers{Throughput: 1}, seed)
		for second := range 1500 {
			if second%(7+int(seed)) == 0 {
				f.Scale((second * 7 / (3 + int(seed))) % 16)
			}
			f.Second()
			if held, listed := f.Held(), f.Listed(); fmt.Sprint(held) != fmt.Sprint(listed) {
				t.Fatalf("seed %d, second %d: owned are %v, worked on %v", seed, second, held, listed)
			}
		}
	}
}

func TestJavaTakesOneFreeLeaseAtATimeWhileAnotherHostOwnsSome(t *testing.T) {
	t.Parallel()
	for _, java := range []bool{false, true} {
		f := simulate.NewFleet(trace(32, quiet(32, 3000)...), simulate.Workers{Throughput: 1, Java: java}, 1)
		f.Scale(4)
		settled(t, f, 32)
		f.Scale(2)
		seconds := settled(t, f, 32)
		if java && seconds < 6*13 || !java && seconds > 2*13+1 {
			t.Errorf("java %v: the 16 leases of two hosts that stopped were taken after %d s", java, seconds)
		}
	}
}
