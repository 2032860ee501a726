package report

import (
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// History is the record of a processor, as the API answers it and `feedscale history` prints it.
type History struct {
	Processor string         `json:"processor"`
	Samples   []state.Sample `json:"samples"` // oldest first
}

// Thin returns the last sample of each step of time, and all that changed the replicas. A step of 0
// keeps all samples.
func Thin(samples []state.Sample, step time.Duration) (kept []state.Sample) {
	for i, s := range samples {
		last := i+1 == len(samples) || step == 0 || !samples[i+1].Time.Truncate(step).Equal(s.Time.Truncate(step))
		if last || s.Changed() {
			kept = append(kept, s)
		}
	}
	return kept
}
