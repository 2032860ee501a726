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

// Reason is one step of a decision: the name that docs/decide.md gives the step, the replicas after
// it, and a sentence for the operator.
type Reason struct {
	Step     string `json:"step"`
	Replicas int    `json:"replicas"`
	Why      string `json:"why"`
}

// Decision says how many replicas a processor needs, and why.
type Decision struct {
	Time        time.Time `json:"time"`
	Replicas    int       `json:"replicas"`
	Previous    *int      `json:"previous"` // nil for the first decision of a processor
	Direction   Direction `json:"direction"`
	Active      bool      `json:"active"`      // whether the processor has work, which keeps it above zero replicas; docs/decide.md, step 1
	MetricValue int64     `json:"metricValue"` // the capped lag, in transactions, for a scaler whose target is the threshold
	Reasons     []Reason  `json:"reasons"`     // every step that had a say, in order
}
