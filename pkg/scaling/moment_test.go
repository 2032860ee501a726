package scaling_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

func TestAMomentIsStoredAsTheTimeThatItIs(t *testing.T) {
	t.Parallel()
	type stored[T any] struct {
		At T `json:"at,omitzero"`
	}
	last := time.Unix(0, math.MaxInt64).UTC()
	for name, c := range map[string]struct{ at, want time.Time }{
		"none":                       {},
		"a time":                     {at: time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)},
		"a time of another zone":     {at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)), want: time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)},
		"before the first":           {at: time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), want: time.Unix(0, 1).UTC()},
		"the beginning of Unix time": {at: time.Unix(0, 0), want: time.Unix(0, 1).UTC()},
		"the last":                   {at: last},
		"after the last":             {at: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), want: last},
	} {
		if c.want.IsZero() {
			c.want = c.at
		}
		m := scaling.MomentOf(c.at)
		if m.IsZero() != c.at.IsZero() || !m.Time().Equal(c.want) {
			t.Errorf("%s: got %s, want %s", name, m.Time(), c.want)
		}
		want, err := json.Marshal(stored[time.Time]{c.want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(stored[scaling.Moment]{m})
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: stored as %s, want %s: %v", name, got, want, err)
		}
		var back stored[scaling.Moment]
		if err := json.Unmarshal(want, &back); err != nil || back.At != m {
			t.Errorf("%s: %s is read as %s: %v", name, want, back.At.Time(), err)
		}
	}
}

func TestMomentsAreApartAsTheirTimesAre(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, d := range []time.Duration{0, 1, -time.Hour} {
		if got := scaling.MomentOf(at.Add(d)).Sub(scaling.MomentOf(at)); got != d {
			t.Errorf("got %s, want %s", got, d)
		}
	}
}
