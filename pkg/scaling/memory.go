package scaling

import (
	"math"
	"time"
)

// Memory is what a decision leaves for the next one. It is bounded: by the
// longest window of the policy, and by the number of partitions.
type Memory struct {
	Replicas        *int                `json:"replicas,omitempty"`        // the last decision that was asked for; nil where none was
	Active          bool                `json:"active,omitempty"`          // whether it was active
	MetricValue     int64               `json:"metricValue,omitempty"`     // and its metric
	LastActive      time.Time           `json:"lastActive,omitzero"`       // last poll that was active; zero where none was
	Failures        int                 `json:"failures,omitempty"`        // polls in a row without a known partition
	Partitions      int                 `json:"partitions,omitempty"`      // as known last; 0 where no poll ever measured something
	Arrival         *float64            `json:"arrival,omitempty"`         // LSNs that arrive per second; nil where not measured at the last poll
	DrainPerReplica float64             `json:"drainPerReplica,omitempty"` // LSNs one live owner can work off per second, as far as was seen; 0 where never measured
	DrainOwners     int                 `json:"drainOwners,omitempty"`     // how many live owners showed that, at least; 0 where it is all they can do
	Recommendations []Recommendation    `json:"recommendations,omitempty"` // within the longer stabilization window
	Changes         []Change            `json:"changes,omitempty"`         // within the longest policy period
	Progress        map[string]Progress `json:"progress,omitempty"`        // by lease token
}

// Recommendation is what the steps before `behavior` asked for at one poll.
type Recommendation struct {
	Time     time.Time `json:"time"`
	Replicas int       `json:"replicas"`
}

// Change is one past change of replicas; negative where they went down.
type Change struct {
	Time  time.Time `json:"time"`
	Delta int       `json:"delta"`
}

// Progress is how far a partition had come when it was last measured.
type Progress struct {
	Position      string    `json:"position"`        // the checkpoint
	Since         time.Time `json:"since"`           // first poll that found changes pending and owned at this checkpoint; zero where none were
	Polls         int       `json:"polls,omitempty"` // that found so, in a row
	Time          time.Time `json:"time"`            // when the LSNs were measured
	SessionLSN    int64     `json:"sessionLSN"`      // newest LSN
	CheckpointLSN int64     `json:"checkpointLSN"`   // LSN the processor was done with
	Pending       bool      `json:"pending,omitempty"`
	Owner         string    `json:"owner,omitempty"`   // of the lease
	Stalled       bool      `json:"stalled,omitempty"` // it was reported as stalled at this checkpoint
}

// CatchUp returns how many seconds a number of replicas needs to drain a lag,
// at the rates that were measured last: +Inf where as many changes arrive as
// they drain, or more. known is false where nothing is pending or a rate is
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
