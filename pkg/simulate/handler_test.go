package simulate_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

func TestAHandlerCheckpointsOncePerBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		row      []int64 // arrives in the first second
		workers  simulate.Workers
		replicas int
		want     []int64 // lag at the end of each second
	}{
		{
			"nothing of a batch counts before its end",
			[]int64{25}, simulate.Workers{Throughput: 5, Batch: 10}, 1,
			[]int64{25, 25, 15, 15, 5, 0},
		},
		{
			"the last batch is what is left, and takes as much less time",
			[]int64{12}, simulate.Workers{Throughput: 5, Batch: 10}, 1,
			[]int64{12, 12, 2, 0, 0, 0},
		},
		{
			"the leases of a replica share it",
			[]int64{10, 10}, simulate.Workers{Throughput: 10, Batch: 10}, 1,
			[]int64{20, 20, 0, 0, 0, 0},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			tr := trace(len(c.row), append([][]int64{c.row}, quiet(len(c.row), 5)...)...)
			if got := lags(run(tr, c.workers, fixed(c.replicas), simulate.Objective{})); !reflect.DeepEqual(got, c.want) {
				t.Errorf("lag is %v, want %v", got, c.want)
			}
		})
	}
}

// TestTheOwnerOfAStolenLeaseEndsItsBatch: one host has a batch of 10 s in each of two leases. A second
// host steals one after 5 s. Until the first has ended that batch, for nothing, it works at half its
// speed on the other one.
func TestTheOwnerOfAStolenLeaseEndsItsBatch(t *testing.T) {
	t.Parallel()
	f := simulate.NewFleet(trace(2, append([][]int64{{20, 20}}, quiet(2, 60)...)...), simulate.Workers{Throughput: 4, Batch: 20}, 1)
	f.Scale(1)
	for range 6 {
		f.Second()
	}
	f.Scale(2)
	for f.Row < 12 {
		f.Second()
		if _, processed, _ := f.Counts(); f.Row <= 10 && processed > 0 {
			t.Fatalf("%d processed after %d s: the batch in hand is not at its end", processed, f.Row)
		}
	}
	if _, processed, _ := f.Counts(); processed != 40 {
		t.Errorf("%d processed after 12 s, want 40", processed)
	}
}

func TestABatchTakesItsTimeWhateverTheThroughput(t *testing.T) {
	t.Parallel()
	w := simulate.Workers{Throughput: 100, Batch: 10, BatchTime: 3 * time.Second}
	tr := trace(1, append([][]int64{{25}}, quiet(1, 11)...)...)
	want := []int64{25, 25, 25, 25, 15, 15, 15, 5, 5, 5, 0, 0}
	if got := lags(run(tr, w, fixed(1), simulate.Objective{})); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestABatchIsLostWithItsLease(t *testing.T) {
	t.Parallel()
	// One host takes both leases and a batch of 10 seconds; a second host steals the first lease after
	// 5 s, and begins that batch anew.
	f := simulate.NewFleet(trace(2, append([][]int64{{20, 0}}, quiet(2, 60)...)...), simulate.Workers{Throughput: 2, Batch: 20}, 1)
	f.Scale(1)
	for range 6 {
		f.Second()
	}
	f.Scale(2)
	for second := range 11 {
		if _, processed, _ := f.Counts(); processed != 0 && second < 10 {
			t.Fatalf("%d processed %d s after the lease moved: the batch takes 10 s", processed, second)
		}
		f.Second()
	}
	if _, processed, pending := f.Counts(); processed != 20 || pending != 0 {
		t.Errorf("%d processed and %d pending, want 20 and 0", processed, pending)
	}
}
