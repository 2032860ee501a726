package overview

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// TestAStateIsShownUntilTimeChangesWhatItSays has a processor that is polled every minute.
func TestAStateIsShownUntilTimeChangesWhatItSays(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, c := range []struct {
		rule       string
		polled     time.Time
		now, until int // seconds
	}{
		{rule: "its next poll has settled", polled: start, now: 1, until: 65},
		{rule: "its next poll is late", polled: start, now: 100, until: 105},
		{rule: "it has been stale for long", polled: start, now: 1000, until: 1005},
		{rule: "it was never polled", now: 1, until: 6},
	} {
		found := report.Lookup{State: state.State{AttemptedAt: c.polled}}
		s := Subject{Next: func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }}
		if got := s.shownUntil(found, at(c.now)); !got.Equal(at(c.until)) {
			t.Errorf("%s: until %s, want %s", c.rule, got, at(c.until))
		}
	}
}

// waiting is an outbox with an event of a time.
func waiting(t *testing.T, decided time.Time) []state.Event {
	t.Helper()
	of := state.State{Processor: "orders", Epoch: 1, Sequence: 1, Lag: changefeed.ProcessorLag{Time: decided, Partitions: []changefeed.Partition{{Status: changefeed.StatusOK, Lag: new(int64)}}}, Decision: &scaling.Decision{Time: decided, Direction: scaling.None}}
	body, err := report.NewEvent(of, nil).Encode()
	testworld.Must(t, err)
	return []state.Event{{Processor: "orders", Sequence: 1, Body: body}}
}

func TestAnEventIsOverdueAfterTwoPolls(t *testing.T) {
	t.Parallel()
	decided := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := Subject{Next: func(_ state.State, t time.Time) time.Time { return t.Add(15 * time.Second) }}
	for since, want := range map[time.Duration]bool{30 * time.Second: false, 31 * time.Second: true} {
		if got := s.overdue(report.Lookup{Waiting: waiting(t, decided)}, decided.Add(since)); got != want {
			t.Errorf("after %s: %v", since, got)
		}
	}
}
