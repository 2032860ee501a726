package scaling

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Memory is what a decision leaves for the next one. Its size is bounded by the longest window of
// the policy and by the number of partitions. It is stored as JSON in the State of the processor.
type Memory struct {
	Replicas        *int                `json:"replicas,omitempty"`        // of the last decision made while not paused; nil where there was none
	Asked           time.Time           `json:"asked,omitzero"`            // since when decisions have asked for replicas; zero where the last one did not
	Active          bool                `json:"active,omitempty"`          // of that decision
	MetricValue     int64               `json:"metricValue,omitempty"`     // of that decision, in transactions
	LastActive      time.Time           `json:"lastActive,omitzero"`       // of the last poll that was active; zero where none was
	Failures        int                 `json:"failures,omitempty"`        // polls in a row in which no partition was known
	Partitions      int                 `json:"partitions,omitempty"`      // of the last complete poll, or the most that an incomplete one found since; 0 where no poll ever measured anything
	Arrival         *float64            `json:"arrival,omitempty"`         // LSNs that arrive per second, over all partitions; nil where the last poll could not tell
	DrainPerReplica float64             `json:"drainPerReplica,omitempty"` // LSNs that one live owner can process per second, as far as it was seen; 0 where never measured
	Rates           Rates               `json:"rates,omitzero"`            // of all partitions together
	Recommendations []Recommendation    `json:"recommendations,omitempty"` // not older than the longer stabilization window
	Changes         []Change            `json:"changes,omitempty"`         // not older than the longest policy period
	Progress        map[string]Progress `json:"progress,omitempty"`        // by lease token
}

// Recommendation is what steps 1 to 8 asked for at one poll, after the tolerance of step 9.
type Recommendation struct {
	Time     time.Time `json:"time"`
	Replicas int       `json:"replicas"`
	AtLeast  bool      `json:"atLeast,omitempty"` // of an incomplete poll: no more is known than that fewer are not enough
}

// Change is one past change of replicas; Delta is negative where they went down.
type Change struct {
	Time  time.Time `json:"time"`
	Delta int       `json:"delta"`
}

// until returns the memory with each time that is after now, by a clock that was ahead, set to now:
// it would otherwise hold a window open, a cooldown off or a status back for as long as the clock
// was ahead.
func (m Memory) until(now time.Time) Memory {
	m.LastActive, m.Asked = earlier(m.LastActive, now), earlier(m.Asked, now)
	m.Rates = m.Rates.until(now)
	m.Recommendations, m.Changes = slices.Clone(m.Recommendations), slices.Clone(m.Changes)
	for i, r := range m.Recommendations {
		m.Recommendations[i].Time = earlier(r.Time, now)
	}
	for i, c := range m.Changes {
		m.Changes[i].Time = earlier(c.Time, now)
	}
	cloned, latest := false, MomentOf(now) // there may be thousands, and hardly ever is one to be changed
	for lease, p := range m.Progress {
		if !p.after(latest) {
			continue
		}
		if !cloned {
			m.Progress, cloned = maps.Clone(m.Progress), true
		}
		p.Time, p.Since, p.Touched = min(p.Time, latest), min(p.Since, latest), min(p.Touched, latest)
		p.HeldSince, p.Quiet = min(p.HeldSince, latest), min(p.Quiet, latest)
		if r := p.Rewound; r != nil {
			p.Rewound = &changefeed.Rewound{From: r.From, To: r.To, Time: earlier(r.Time, now)}
		}
		p.Flow.Since, p.Flow.Moved = min(p.Flow.Since, latest), min(p.Flow.Moved, latest)
		m.Progress[lease] = p
	}
	return m
}

// after reports whether any time of it is after now.
func (p *Progress) after(now Moment) bool {
	return max(p.Time, p.Since, p.Touched, p.HeldSince, p.Quiet, p.Flow.Since, p.Flow.Moved) > now || p.Rewound != nil && MomentOf(p.Rewound.Time) > now
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// Drain returns how many LSNs one live owner processes per second, to be shown: what was measured over
// several polls, else over the last two. 0 where never measured.
func (m Memory) Drain() float64 { return cmp.Or(m.DrainPerReplica, m.Rates.Glimpse) }

// CatchUp returns how many seconds a number of replicas needs to drain a lag (transactions) at the
// rates measured last: lag / (replicas x drain rate - arrival rate), +Inf where changes arrive at
// least as fast as they are drained. known is false where nothing is pending, or where a rate is
// not known.
func (m Memory) CatchUp(lag *int64, replicas int) (seconds float64, known bool) {
	drain := m.Drain()
	if lag == nil || *lag <= 0 || m.Arrival == nil || drain <= 0 {
		return 0, false
	}
	gain := drain*float64(replicas) - *m.Arrival
	if gain <= 0 {
		return math.Inf(1), true
	}
	return float64(*lag) / gain, true
}
