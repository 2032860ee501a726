package estimator

import (
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// TestWhatTwoPartsOfASplitShareIsTakenFromOneOfThem has two leases behind 292, of a range that was split at
// 336. The lag of the second is the sum of several ranges where its range was split again.
func TestWhatTwoPartsOfASplitShareIsTakenFromOneOfThem(t *testing.T) {
	t.Parallel()
	split := &changefeed.Split{From: "0", LSN: 336}
	for _, c := range []struct {
		rule        string
		lag         int64 // of the second
		first       *int64
		wantA, want int64
	}{
		{"parts that have the same to share keep it in one", 58, nil, 58, 14},
		{"a part with less to share gives that up", 57, nil, 58, 14},
		{"a part that was split again gives up no more than lies behind its first change", 65, new(int64(294)), 58, 22},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			parts := []changefeed.Partition{
				{Lease: "1", Lag: new(int64(58)), SessionLSN: new(int64(350)), Split: split},
				{Lease: "2", Lag: new(c.lag), SessionLSN: new(int64(350)), Split: split},
			}
			countOnce(parts, []*int64{nil, c.first})
			if a, b := *parts[0].Lag, *parts[1].Lag; a != c.wantA || b != c.want {
				t.Errorf("got %d and %d, want %d and %d", a, b, c.wantA, c.want)
			}
			if whole := parts[1].Whole; whole == nil || *whole != c.lag {
				t.Errorf("the whole of the second is %v", whole)
			}
		})
	}
}
