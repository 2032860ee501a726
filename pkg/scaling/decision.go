package scaling

import (
	"time"

	"github.com/feedscale/feedscale/pkg/scaling/sizing"
)

// Direction says in which direction a decision changes the replicas.
type Direction string

// The directions of a decision.
const (
	Out  Direction = "out"
	In   Direction = "in"
	None Direction = "none"
)

// Reason is one step of a decision. Package sizing defines it, since sizing has reasons, too.
type Reason = sizing.Reason

// Decision says how many replicas a processor needs, and why.
type Decision struct {
	Time      time.Time `json:"time"`
	Replicas  int       `json:"replicas"`
	Previous  *int      `json:"previous"` // nil for the first decision of a processor
	Direction Direction `json:"direction"`
	Active    bool      `json:"active"` // the processor has work, so it stays above zero replicas; docs/decide.md, step 1
	// the capped lag, in transactions, for a scaler whose target is the threshold
	MetricValue int64    `json:"metricValue"`
	Reasons     []Reason `json:"reasons"` // of every step that changed the count, in order
}
