package report

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// List is all processors and groups, as the API answers it and `feedscale status` prints it.
type List struct {
	Time       time.Time         `json:"time"` // of the answer
	Processors []StoredProcessor `json:"processors"`
	Groups     []StoredGroup     `json:"groups"`
	// failures that they share; nil in an answer of a release without causes
	Causes []Cause `json:"causes"`
}

// NewList returns a List with the causes of its entries.
func NewList(now time.Time, processors []StoredProcessor, groups []StoredGroup) List {
	l := List{Time: now, Processors: processors, Groups: groups}
	l.Causes = Causes(l)
	return l
}

// Row is what the processors and groups of a List have in common.
type Row struct {
	Name  string
	Group bool
	Subject
	StoredFields
	Findings []Finding
}

// Rows returns the processors, then the groups.
func (l List) Rows() (rows []Row) {
	for _, p := range l.Processors {
		rows = append(rows, Row{p.Name, false, p.Subject, p.StoredFields, p.Findings})
	}
	for _, g := range l.Groups {
		rows = append(rows, Row{g.Name, true, g.Subject, g.StoredFields, g.Findings})
	}
	return rows
}

// ErrUnknownName is the error of a name that no processor and no group has. Its text says where to
// look.
var ErrUnknownName = errors.New("the processors file says which there are")

// UnknownName returns an error for a name that no processor and no group has. It wraps
// ErrUnknownName.
func UnknownName(name string) error {
	return fmt.Errorf("no processor or group is named %q: %w", name, ErrUnknownName)
}

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
