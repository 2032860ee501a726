package scaling

import "time"

// Direction is where a decision moves the replicas.
type Direction string

// The directions of a decision.
const (
	Out  Direction = "out"
	In   Direction = "in"
	None Direction = "none"
)

// Reason is one step of a decision: which rule, what it made of the replicas,
// and why, as an operator would be told.
type Reason struct {
	Step     string `json:"step"`
	Replicas int    `json:"replicas"`
	Why      string `json:"why"`
}

// Decision is how many replicas a processor needs, and why.
type Decision struct {
	Time        time.Time `json:"time"`
	Replicas    int       `json:"replicas"`
	Previous    *int      `json:"previous"` // nil for the first decision of a processor
	Direction   Direction `json:"direction"`
	Active      bool      `json:"active"`      // whether KEDA should keep the processor above zero
	MetricValue int64     `json:"metricValue"` // lag, capped, for a scaler with the threshold as its target
	Reasons     []Reason  `json:"reasons"`     // every step that had a say, in order
}
