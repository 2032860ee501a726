package scaling

import (
	"math"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling/sizing"
)

// Memory is the input that a decision leaves for the next one. It is stored as JSON in the State of
// the processor. The longest window of the policy and the number of partitions bound its size.
type Memory struct {
	Replicas *int `json:"replicas,omitempty"` // of the last decision while not paused; nil if there was none
	// since when decisions have asked for replicas; zero if the last one asked for none
	Asked       time.Time `json:"asked,omitzero"`
	Active      bool      `json:"active,omitempty"`      // of that decision
	MetricValue int64     `json:"metricValue,omitempty"` // of that decision, in transactions
	LastActive  time.Time `json:"lastActive,omitzero"`   // of the last poll that was active; zero if none was
	Failures    int       `json:"failures,omitempty"`    // polls in a row in which no partition was known
	// of the last complete poll, or the most that a later incomplete one found; 0 if none ever measured it
	Partitions int `json:"partitions,omitempty"`
	// LSNs that arrive per second, over all partitions; nil if the last poll could not measure it
	Arrival *float64 `json:"arrival,omitempty"`
	// LSNs per second that one live owner can process, or a lower bound; 0 = never measured
	DrainPerReplica float64       `json:"drainPerReplica,omitempty"`
	Sizing          sizing.Memory `json:"sizing,omitzero"` // of step 3
	// none older than the longer stabilization window
	Recommendations []Recommendation `json:"recommendations,omitempty"`
	Changes         []Change         `json:"changes,omitempty"` // none older than the longest policy period
}

// Recommendation is the result of steps 1 to 8 at one poll, after the tolerance of step 9.
type Recommendation struct {
	Time     time.Time `json:"time"`
	Replicas int       `json:"replicas"`
	AtLeast  bool      `json:"atLeast,omitempty"` // the poll was incomplete: fewer are not enough, more may be needed
}

// Change is one past change of replicas; Delta is negative if they went down.
type Change struct {
	Time  time.Time `json:"time"`
	Delta int       `json:"delta"`
}

// Until returns the memory with each time after now set to now. Otherwise a clock that was ahead
// would hold a window open, or delay a cooldown, until that time comes. The rates are measured anew,
// since the spans between their times are wrong; what a replica does is kept as a lower bound.
func (m Memory) Until(now time.Time) Memory {
	m.Recommendations, m.Changes = slices.Clone(m.Recommendations), slices.Clone(m.Changes)
	until := func(t *time.Time) {
		if t.After(now) {
			*t = now
		}
	}
	until(&m.LastActive)
	until(&m.Asked)
	for i := range m.Recommendations {
		until(&m.Recommendations[i].Time)
	}
	for i := range m.Changes {
		until(&m.Changes[i].Time)
	}
	if m.Sizing.Time.After(now) {
		m.Sizing = sizing.Memory{}
	}
	return m
}

// CatchUp returns how many seconds so many replicas need to drain lag (transactions) at the rates
// measured last: lag / (replicas x drain rate - arrival rate). It is +Inf if changes arrive at
// least as fast as they are drained. known is false if nothing is pending or a rate is unknown.
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
