package changefeed_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

func TestALeaseThatFlapsCountsWhoHadIt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	released := func(written time.Time, kind changefeed.StallKind, owners ...string) changefeed.Partition {
		return changefeed.Partition{LeaseTime: written, Stall: &changefeed.Stall{Kind: kind, Owners: owners}}
	}
	live := changefeed.Partition{Owner: "a", LeaseTime: at}
	for _, c := range []struct {
		rule       string
		partitions []changefeed.Partition
		want       int
	}{
		{"who had it works still", []changefeed.Partition{released(at, changefeed.StallFlapping, "b")}, 1},
		{"who had two counts once", []changefeed.Partition{released(at, changefeed.StallFlapping, "b"), released(at, changefeed.StallFlapping, "c", "b")}, 1},
		{"the last of those who had it counts", []changefeed.Partition{live, released(at, changefeed.StallFlapping, "a", "b")}, 2},
		{"a live owner counts once", []changefeed.Partition{live, released(at, changefeed.StallFlapping, "b", "a")}, 1},
		{"another one counts beside it", []changefeed.Partition{live, released(at, changefeed.StallFlapping, "b")}, 2},
		{"nobody has written the lease for long", []changefeed.Partition{released(at.Add(-time.Hour), changefeed.StallFlapping, "b")}, 0},
		{"a handler that hangs releases nothing", []changefeed.Partition{released(at, changefeed.StallHung, "b")}, 0},
	} {
		lag := changefeed.ProcessorLag{Partitions: c.partitions}
		if got := *lag.LiveOwners(at, time.Minute, true); got != c.want {
			t.Errorf("%s: %d owners, want %d", c.rule, got, c.want)
		}
	}
	if unread := (&changefeed.ProcessorLag{Error: "no role"}).LiveOwners(at, time.Minute, true); unread != nil {
		t.Errorf("unread leases have %d owners", *unread)
	}
}
