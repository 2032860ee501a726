package scaling

import "time"

// Direction says in which direction a decision changes the replicas.
type Direction string

// The directions of a decision.
const (
	Out  Direction = "out"
	In   Direction = "in"
	None Direction = "none"
)

// Reason is one step of a decision: its name in docs/decide.md, the replicas after it, and a
// sentence for the operator.
type Reason struct {
	Step     string `json:"step"`
	Replicas int    `json:"replicas"`
	Why      string `json:"why"`
}

// Decision says how many replicas a processor needs, and why.
type Decision struct {
	Time      time.Time `json:"time"`
	Replicas  int       `json:"replicas"`
	Previous  *int      `json:"previous"` // nil for the first decision of a processor
	Direction Direction `json:"direction"`
	// the processor has work, so it stays above zero replicas; docs/decide.md, step 1
	Active bool `json:"active"`
	// the capped lag, in transactions, for a scaler whose target is the threshold
	MetricValue int64    `json:"metricValue"`
	Reasons     []Reason `json:"reasons"` // of every step that changed the count, in order
}
