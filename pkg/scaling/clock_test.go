package scaling_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// TestAClockAheadStopsNothingForGood: one poll by a clock that is ten years ahead delays later
// steps no more than a poll at the right time would have done.
func TestAClockAheadStopsNothingForGood(t *testing.T) {
	t.Parallel()
	const ahead = 10 * 365 * 24 * time.Hour
	const m = time.Minute
	// back returns to the right time, one second after the last poll by the right clock.
	back := func(s *story) { s.now = s.now.Add(time.Second - ahead) }
	t.Run("cooldown", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(ahead, 10, 0)
		back(s)
		s.lags(0, 0, 0)
		s.want("1 inactive 0 none [activation=0 cooldown=1]")
		s.lags(5*m, 0, 0)
		s.want("0 inactive 0 in [activation=0 cooldown=0]")
	})
	t.Run("the scale-down window", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		s.lags(ahead, 300, 0, 0)
		back(s)
		s.lags(0, 10, 0, 0)
		s.want("3 active 10 none [threshold=1 behavior=3]")
		s.lags(5*m, 10, 0, 0)
		s.want("1 active 10 in [threshold=1]")
	})
	t.Run("the scale-up window", func(t *testing.T) {
		t.Parallel()
		s := tell(t, behaves(window(m), scaling.Rules{}))
		s.lags(ahead, 10, 0, 0)
		back(s)
		s.lags(0, 300, 0, 0)
		s.want("1 active 300 none [threshold=3 behavior=1]")
		s.lags(m, 300, 0, 0)
		s.want("3 active 300 out [threshold=3]")
	})
	t.Run("the rate policies", func(t *testing.T) {
		t.Parallel()
		s := tell(t, behaves(rates(pods(1, m)), scaling.Rules{}))
		s.lags(ahead, 300, 0, 0)
		s.want("2 active 300 out [threshold=3 behavior=2]")
		back(s)
		s.lags(0, 300, 0, 0)
		s.want("2 active 300 none [threshold=3 behavior=2]")
		s.lags(m, 300, 0, 0)
		s.want("3 active 300 out [threshold=3]")
	})
	t.Run("the rates", func(t *testing.T) {
		t.Parallel()
		s := tell(t, policy())
		poll := func(after time.Duration, session int64) {
			s.poll(after, func(at time.Time) changefeed.ProcessorLag { return readings(at, []reading{{session, session, "a", 0}}) })
		}
		poll(ahead, 1000)
		back(s)
		poll(0, 1010)
		poll(time.Second, 1020)
		if a := s.memory.Arrival; a == nil || *a != 10 {
			t.Errorf("%v a second arrive", a)
		}
	})
}

// TestAClockSetBackStopsNothingForGood: a clock that was an hour ahead wrote the memory, and is
// then corrected. Later steps come no later than for a new processor.
func TestAClockSetBackStopsNothingForGood(t *testing.T) {
	t.Parallel()
	const m, h = time.Minute, time.Hour
	for _, c := range []struct {
		what   string
		policy scaling.Policy
		before []int64 // one a minute, by the clock that is ahead
		lags   []int64 // by the corrected clock
		after  time.Duration
		want   string
	}{
		{"cooldown", policy(), []int64{10, 10, 10}, []int64{0}, 5 * m, "0 inactive 0 in [activation=0 cooldown=0]"},
		{"the scale-down window", policy(), []int64{300, 300, 300}, []int64{10}, 5 * m, "1 active 10 in [threshold=1]"},
		{"the scale-up window", behaves(window(m), scaling.Rules{}), []int64{10, 10, 10}, []int64{300}, m, "3 active 300 out [threshold=3]"},
		{"the policies up", behaves(rates(pods(1, m)), scaling.Rules{}), []int64{10, 150, 300}, []int64{400}, m, "4 active 400 out [threshold=4]"},
		{"the policies down", behaves(scaling.Rules{}, rates(pods(1, m))), []int64{300, 300, 200}, []int64{10}, m, "1 active 10 in [threshold=1]"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			s := tell(t, c.policy)
			s.now = s.now.Add(h)
			for _, lag := range c.before {
				s.lags(m, lag, 0, 0, 0)
			}
			s.lags(m-h, c.lags[0], 0, 0, 0)
			s.lags(c.after, c.lags[0], 0, 0, 0)
			s.want(c.want)
		})
	}
}
