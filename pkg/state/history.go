package state

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf16"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// SampleInterval is how often the history of a processor keeps a sample at
// most, from the full hour on: 240 an hour.
const SampleInterval = 15 * time.Second

// maxSample bounds the JSON of a sample, in UTF-16 code units: those of an hour
// together have to fit into one row of a table (1 MiB, two bytes a unit).
const maxSample = 2_000

// Sample is one poll of a processor as the history keeps it. Its JSON has the
// names of DESIGN 11 and always every field; null, and nil, is unknown.
type Sample struct {
	Time              time.Time         `json:"time"` // of the poll, UTC
	Lag               *int64            `json:"lag"`
	Age               *int64            `json:"changeAgeSeconds"` // nil also where nothing is pending
	Complete          bool              `json:"complete"`
	Status            changefeed.Status `json:"status"`
	PartitionCount    *int              `json:"partitionCount"`
	PartitionsWithLag *int              `json:"partitionsWithLag"`
	Arrival           *float64          `json:"arrivalPerSecond"` // LSNs, of the processor; nil where not measured at this poll
	DrainPerReplica   *float64          `json:"drainPerReplica"`  // LSNs per second, of one live owner; nil where never measured

	// Of the decision; nil, and no reasons, where nothing was decided.
	MetricValue *int64             `json:"metricValue"`
	Active      *bool              `json:"active"`
	Replicas    *int               `json:"desiredReplicas"`
	Previous    *int               `json:"previousReplicas"` // nil also for the first decision
	Direction   *scaling.Direction `json:"direction"`
	Reasons     []scaling.Reason   `json:"reasons"` // all where it is the first decision or changed the replicas, else the last; never nil
}

// Sample is what the history keeps of s.
func (s State) Sample() Sample {
	if s.Recorded != nil {
		return *s.Recorded
	}
	return s.sample()
}

// Record notes what the history keeps of s. before is what it keeps of the poll
// before, nil where there was none. Where both fall into one interval the later
// takes the place of the earlier, and takes over what that one changed.
func (s *State) Record(before *Sample) {
	sample := s.sample()
	if before != nil && before.Time.Truncate(SampleInterval).Equal(sample.Time.Truncate(SampleInterval)) && before.Changed() && sample.Replicas != nil {
		if !sample.Changed() {
			sample.Reasons = nil // what settled it again
		}
		sample.Previous = before.Previous
		sample.Direction = new(scaling.None)
		switch from := previous(before.Previous); {
		case *sample.Replicas > from:
			*sample.Direction = scaling.Out
		case *sample.Replicas < from:
			*sample.Direction = scaling.In
		}
		sample.Reasons = slices.Concat(before.Reasons, sample.Reasons)
	}
	s.Recorded = &sample
}

// previous is what a decision counts from: zero where there was none.
func previous(replicas *int) int {
	if replicas == nil {
		return 0
	}
	return *replicas
}

// Changed tells whether the decision is the first, or changed the replicas.
func (s Sample) Changed() bool {
	return s.Replicas != nil && (s.Previous == nil || *s.Previous != *s.Replicas)
}

func (s State) sample() Sample {
	totals := s.Lag.Totals()
	sample := Sample{
		Time:              s.AttemptedAt.UTC(),
		Lag:               totals.Lag,
		Age:               totals.Age,
		Complete:          totals.Complete,
		Status:            totals.Status,
		PartitionCount:    totals.Partitions,
		PartitionsWithLag: totals.PartitionsWithLag,
		Arrival:           s.Memory.Arrival,
		Reasons:           []scaling.Reason{},
	}
	if s.Memory.DrainPerReplica != 0 {
		sample.DrainPerReplica = new(s.Memory.DrainPerReplica)
	}
	if d := s.Decision; d != nil {
		sample.MetricValue, sample.Active, sample.Replicas, sample.Previous, sample.Direction = &d.MetricValue, &d.Active, &d.Replicas, d.Previous, &d.Direction
		reasons := d.Reasons
		if d.Previous != nil && *d.Previous == d.Replicas {
			reasons = reasons[max(0, len(reasons)-1):]
		}
		sample.Reasons = append(sample.Reasons, reasons...)
	}
	return sample
}

// Encode returns the JSON that a store keeps of s, of at most 2,000 UTF-16 code
// units. Where it is longer, the first reasons are left out, as many as it
// takes: the last one settles a decision.
func (s Sample) Encode() ([]byte, error) {
	for {
		text, err := json.Marshal(s)
		if err != nil || len(s.Reasons) == 0 || len(utf16.Encode([]rune(string(text)))) <= maxSample {
			return text, err
		}
		s.Reasons = s.Reasons[1:]
	}
}
