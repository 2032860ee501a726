package report_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// TestAStateIsShownUntilTimeChangesWhatItSays has a processor that is polled every minute.
func TestAStateIsShownUntilTimeChangesWhatItSays(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, c := range []struct {
		rule            string
		polled, decided time.Time
		now, until      int // seconds
	}{
		{rule: "its next poll has settled", polled: start, now: 1, until: 65},
		{rule: "its next poll is late", polled: start, now: 100, until: 105},
		{rule: "it is stale from then on", polled: start, now: 178, until: 180},
		{rule: "it has been stale for long", polled: start, now: 1000, until: 1005},
		{rule: "its event is overdue from then on", polled: at(90), decided: start, now: 91, until: 120},
		{rule: "it was never polled", now: 1, until: 6},
	} {
		asked := report.Asked{State: state.State{AttemptedAt: c.polled}, Next: func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }}
		if got := asked.Until(c.decided, at(c.now)); !got.Equal(at(c.until)) {
			t.Errorf("%s: until %s, want %s", c.rule, got, at(c.until))
		}
	}
}
