package health_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// TestAClockAheadStopsNothingForGood: one poll by a clock that is ten years ahead, between polls by
// the right one, delays what is to come by no more than as if it had been made at the right time.
func TestAClockAheadStopsNothingForGood(t *testing.T) {
	t.Parallel()
	const ahead = 10 * 365 * 24 * time.Hour
	const m = time.Minute
	for _, c := range []struct {
		status string
		x      sight
	}{
		{"stalled/hung", sight{lag: 5, position: "1", owner: "w"}},
		{"unclaimed", sight{lag: 5, position: "1", written: -time.Hour}},
	} {
		t.Run(c.status, func(t *testing.T) {
			t.Parallel()
			s := tell(t, policy())
			c.x.at = ahead
			if c.x.owner != "" {
				c.x.written = ahead
			}
			s.see(c.x)
			for at := time.Duration(0); at <= 6*m; at += 15 * time.Second {
				if c.x.at = at; c.x.owner != "" {
					c.x.written = at
				}
				s.see(c.x)
				if got := s.shown(); (got == c.status) != (at >= 5*m) {
					t.Errorf("at %s: %s", at, got)
				}
			}
		})
	}
	t.Run("rewound", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		see := func(at time.Duration, checkpoint int64) bool {
			s.see(sight{at: at, lag: 5, position: fmt.Sprint(checkpoint), owner: "w"}, func(l *changefeed.ProcessorLag) {
				l.Partitions[0].CheckpointLSN = &checkpoint
			})
			return s.lag.Partitions[0].Rewound != nil
		}
		if see(0, 100) || !see(ahead, 50) || !see(m, 50) || !see(m+59*m, 50) || see(m+time.Hour, 50) {
			t.Errorf("shown as %+v", s.lag.Partitions[0].Rewound)
		}
	})
}

// TestAClockAheadMakesNoStall: one poll by a clock that is an hour ahead does not count as an hour
// during which a handler got no further. The owners' clocks, by which they renew their leases, are
// right.
func TestAClockAheadMakesNoStall(t *testing.T) {
	t.Parallel()
	const s, m, h = time.Second, time.Minute, time.Hour
	for name, ahead := range map[string]time.Duration{"an hour": h, "a year": 365 * 24 * h} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := tell(t, policy())
			for at := time.Duration(0); at <= 8*m; at += 15 * s {
				x := sight{at: at, lag: 5, position: "1", owner: "w", written: at}
				if at == 45*s {
					x.at += ahead
				}
				st.see(x)
				if got := st.shown(); at < 4*m && got != "lagging" || at >= 5*m+15*s && got != "stalled/hung" {
					t.Errorf("at %s: %s", at, got)
				}
			}
		})
	}
}
