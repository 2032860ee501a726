package scaling

import (
	"math"
	"time"
)

// Memory is what a decision leaves for the next one. Its size is bounded by the longest window of
// the policy and by the number of partitions. It is stored as JSON in the State of the processor.
type Memory struct {
	Replicas        *int                `json:"replicas,omitempty"`        // of the last decision made while not paused; nil where there was none
	Active          bool                `json:"active,omitempty"`          // of that decision
	MetricValue     int64               `json:"metricValue,omitempty"`     // of that decision, in transactions
	LastActive      time.Time           `json:"lastActive,omitzero"`       // of the last poll that was active; zero where none was
	Failures        int                 `json:"failures,omitempty"`        // polls in a row in which no partition was known
	Partitions      int                 `json:"partitions,omitempty"`      // number of partitions known last; 0 where no poll ever measured anything
	Arrival         *float64            `json:"arrival,omitempty"`         // LSNs that arrive per second, over all partitions; nil where the last poll could not tell
	DrainPerReplica float64             `json:"drainPerReplica,omitempty"` // LSNs that one live owner processes per second; 0 where never measured
	DrainOwners     int                 `json:"drainOwners,omitempty"`     // owners that DrainPerReplica was measured over where it is a lower bound; 0 where it is exact
	Recommendations []Recommendation    `json:"recommendations,omitempty"` // not older than the longer stabilization window
	Changes         []Change            `json:"changes,omitempty"`         // not older than the longest policy period
	Progress        map[string]Progress `json:"progress,omitempty"`        // by lease token
}

// Recommendation is what steps 1 to 8 asked for at one poll, after the tolerance of step 9.
type Recommendation struct {
	Time     time.Time `json:"time"`
	Replicas int       `json:"replicas"`
}

// Change is one past change of replicas; Delta is negative where they went down.
type Change struct {
	Time  time.Time `json:"time"`
	Delta int       `json:"delta"`
}

// Progress is the state of a partition when it was last measured.
type Progress struct {
	Position      string    `json:"position"`        // the lease's continuation
	Since         time.Time `json:"since"`           // first poll that found changes pending and the lease owned at this position; zero where none did
	Polls         int       `json:"polls,omitempty"` // polls that found that at this position
	Time          time.Time `json:"time"`            // when the LSNs were measured
	SessionLSN    int64     `json:"sessionLSN"`      // newest LSN
	CheckpointLSN int64     `json:"checkpointLSN"`   // LSN up to which changes are processed
	Pending       bool      `json:"pending,omitempty"`
	Owner         string    `json:"owner,omitempty"`   // of the lease
	Stalled       bool      `json:"stalled,omitempty"` // whether it was reported as stalled at this position
}

// CatchUp returns how many seconds a number of replicas needs to drain a lag (transactions) at the
// rates measured last: lag / (replicas x drain rate - arrival rate), +Inf where changes arrive at
// least as fast as they are drained. known is false where nothing is pending, or where a rate is
// not known.
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
