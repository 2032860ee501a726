package scaling

import (
	"math"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling/sizing"
)

// Memory is what a decision leaves for the next one. Its size is bounded by the longest window of
// the policy and by the number of partitions. It is stored as JSON in the State of the processor.
type Memory struct {
	Replicas        *int             `json:"replicas,omitempty"`        // of the last decision made while not paused; nil if there was none
	Asked           time.Time        `json:"asked,omitzero"`            // since when decisions have asked for replicas; zero if the last one did not
	Active          bool             `json:"active,omitempty"`          // of that decision
	MetricValue     int64            `json:"metricValue,omitempty"`     // of that decision, in transactions
	LastActive      time.Time        `json:"lastActive,omitzero"`       // of the last poll that was active; zero if none was
	Failures        int              `json:"failures,omitempty"`        // polls in a row in which no partition was known
	Partitions      int              `json:"partitions,omitempty"`      // of the last complete poll, or the most that an incomplete one found since; 0 if no poll ever measured anything
	Arrival         *float64         `json:"arrival,omitempty"`         // LSNs that arrive per second, over all partitions; nil if the last poll could not tell
	DrainPerReplica float64          `json:"drainPerReplica,omitempty"` // LSNs that one live owner can process per second, as far as it was seen; 0 = never measured
	Sizing          sizing.Memory    `json:"sizing,omitzero"`           // of step 3
	Recommendations []Recommendation `json:"recommendations,omitempty"` // not older than the longer stabilization window
	Changes         []Change         `json:"changes,omitempty"`         // not older than the longest policy period
}

// Recommendation is what steps 1 to 8 asked for at one poll, after the tolerance of step 9.
type Recommendation struct {
	Time     time.Time `json:"time"`
	Replicas int       `json:"replicas"`
	AtLeast  bool      `json:"atLeast,omitempty"` // of an incomplete poll: no more is known than that fewer are not enough
}

// Change is one past change of replicas; Delta is negative if they went down.
type Change struct {
	Time  time.Time `json:"time"`
	Delta int       `json:"delta"`
}

// Until returns the memory with each time that is after now, by a clock that was ahead, set to now:
// it would otherwise hold a window open or a cooldown off for as long as the clock was ahead.
func (m Memory) Until(now time.Time) Memory {
	m.Recommendations, m.Changes = slices.Clone(m.Recommendations), slices.Clone(m.Changes)
	times := []*time.Time{&m.LastActive, &m.Asked}
	for i := range m.Recommendations {
		times = append(times, &m.Recommendations[i].Time)
	}
	for i := range m.Changes {
		times = append(times, &m.Changes[i].Time)
	}
	for _, t := range times {
		if t.After(now) {
			*t = now
		}
	}
	m.Sizing = m.Sizing.Until(now)
	return m
}

// CatchUp returns how many seconds a number of replicas needs to drain a lag (transactions) at the
// rates measured last: lag / (replicas x drain rate - arrival rate), +Inf if changes arrive at least
// as fast as they are drained. known is false if nothing is pending, or if a rate is not known.
func (m Memory) CatchUp(lag *int64, replicas int) (seconds float64, known bool) {
	if lag == nil || *lag <= 0 || m.Arrival == nil || m.DrainPerReplica <= 0 {
		return 0, false
	}
	gain := m.DrainPerReplica*float64(replicas) - *m.Arrival
	if gain <= 0 {
		return math.Inf(1), true
	}
	return float64(*lag) / gain, true
}
