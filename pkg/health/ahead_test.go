package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// TestAhead has polls of a lease at a position in a range with a newest LSN.
func TestAhead(t *testing.T) {
	t.Parallel()
	type found struct {
		at              time.Duration
		position, feed  int64 // feed -1 = unknown
		lag             int64 // as measured; -1 = unknown
		wantAhead, lost bool  // lost: carried over from an earlier poll
	}
	const s = time.Second
	late := func() (polls []found) { // a replica that is 5 s late, of 10 writes a second that a worker keeps up with
		for i := range int64(40) {
			polls = append(polls, found{time.Duration(15*i) * s, 1000 + 150*i, 950 + 150*i, 0, false, false})
		}
		return polls
	}
	for _, c := range []struct {
		rule  string
		polls []found
	}{
		{"for 60 s and three polls", []found{{0, 500, 120, 0, false, false}, {30 * s, 500, 121, 0, false, false}, {59 * s, 500, 122, 0, false, false}, {60 * s, 500, 123, 0, true, false}}},
		{"not at the second poll", []found{{0, 500, 120, 0, false, false}, {300 * s, 500, 120, 0, false, false}, {301 * s, 500, 120, 0, true, false}}},
		{"a replica that is always 5 s late under constant writes never is", late()},
		{"it ends once the feed reaches the position", []found{{0, 500, 120, 0, false, false}, {30 * s, 500, 120, 0, false, false}, {60 * s, 500, 120, 0, true, false}, {75 * s, 500, 500, 0, false, false}, {90 * s, 500, 499, 0, false, false}}},
		{"a poll that fails is none", []found{{0, 500, 120, 0, false, false}, {30 * s, 500, 120, -1, false, false}, {60 * s, 500, 120, 0, false, false}, {75 * s, 500, 120, 0, true, false}}},
		{"nor is one while its range is being split, which tells no LSN", []found{{0, 500, 120, 0, false, false}, {30 * s, 500, -1, 1, false, false}, {45 * s, 500, 120, 0, false, false}, {60 * s, 500, 120, 0, true, false}}},
		{"a reading that is carried over stays so", []found{{0, 500, 120, 0, false, false}, {30 * s, 500, 120, 0, false, false}, {60 * s, 500, 120, 0, true, false}, {75 * s, 500, 120, 0, true, true}}},
		{"a change that is pending has been reached", []found{{0, 500, 120, 1, false, false}, {60 * s, 500, 120, 1, false, false}, {120 * s, 500, 120, 1, false, false}}},
		{"a position that was set back is not", []found{{0, 500, 120, 0, false, false}, {30 * s, 500, 120, 0, false, false}, {60 * s, 120, 120, 0, false, false}}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			st := tell(t, policy())
			for _, f := range c.polls {
				st.see(sight{at: f.at, lag: f.lag, owner: "w", written: f.at}, func(l *changefeed.ProcessorLag) {
					p := &l.Partitions[0]
					p.CheckpointLSN, p.SessionLSN = &f.position, &f.feed
					if f.feed < 0 {
						p.SessionLSN, p.Status = nil, changefeed.StatusSplitting
					}
					if f.lost {
						p.Measured = start
					}
				})
				p := st.lag.Partitions[0]
				if got := p.Ahead != nil; got != f.wantAhead || (p.Status == changefeed.StatusAhead) != f.wantAhead || st.lag.Ahead() != f.wantAhead {
					t.Fatalf("at %s: ahead %t, %s", f.at, got, p.Status)
				}
				switch {
				case f.wantAhead && (p.Lag != nil || st.lag.Complete() || *p.Ahead != changefeed.AheadPosition{Position: f.position, Feed: f.feed} || !strings.Contains(p.Error, "500") || !strings.Contains(p.Error, "12")):
					t.Errorf("at %s: %+v", f.at, p)
				case !f.wantAhead && f.lag >= 0 && *p.Lag != f.lag:
					t.Errorf("at %s: lag %d, want %d", f.at, *p.Lag, f.lag)
				}
			}
		})
	}
}
