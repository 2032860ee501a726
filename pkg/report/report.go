// Package report is what is shown of a State: one projection for the HTTP API, the scale events and
// the terminal, so that what is null, and why, is said in one place. What the history keeps of a poll
// is [state.Sample], from the same totals.
//
// It is pure: it knows the domain, the State and the event, and neither a store nor a service. Start
// with [New].
//
// The package is internal to the program: its API may change in any release.
package report

import (
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Processor is what is said of a processor, in the terminal and over HTTP (docs/operate.md). Every
// field is always present in its JSON; null is unknown.
type Processor struct {
	Name              string             `json:"name"`
	Lag               *int64             `json:"lag"`              // pending transactions
	ChangeAgeSeconds  *int64             `json:"changeAgeSeconds"` // of the oldest pending change; null also where nothing is pending
	MetricValue       *int64             `json:"metricValue"`
	Active            *bool              `json:"active"`
	DesiredReplicas   *int               `json:"desiredReplicas"`
	Direction         *scaling.Direction `json:"direction"`
	Complete          bool               `json:"complete"` // no partition is unknown
	Status            changefeed.Status  `json:"status"`   // the worst of the partitions
	PartitionCount    *int               `json:"partitionCount"`
	PartitionsWithLag *int               `json:"partitionsWithLag"`
	RequestCharge     float64            `json:"requestCharge"` // request units of the last poll
	Requests          int                `json:"requests"`
	Error             *string            `json:"error"`
	Reasons           []scaling.Reason   `json:"reasons"`
	Partitions        []Partition        `json:"partitions"`
}

// Partition is what is said of one lease.
type Partition struct {
	Lease            string            `json:"lease"`
	Range            *changefeed.Range `json:"range"` // null where it was not needed
	Owner            *string           `json:"owner"` // null where nobody owns the lease
	Lag              *int64            `json:"lag"`
	ChangeAgeSeconds *int64            `json:"changeAgeSeconds"`
	Status           changefeed.Status `json:"status"`
	Approximate      bool              `json:"approximate"`
	Error            *string           `json:"error"`
}

// Stored is a Processor as the store holds it, with what only the store knows.
type Stored struct {
	Processor
	PolledAt *time.Time `json:"polledAt"` // last poll that measured something
	Sequence int64      `json:"sequence"` // of the last scale event, 0 where there was none
	Paused   bool       `json:"paused"`
}

// New reports the last poll of a processor. Of a State that was never polled everything is unknown.
func New(s state.State) Processor {
	totals := s.Lag.Totals()
	r := Processor{
		Name:             s.Processor,
		Lag:              totals.Lag,
		ChangeAgeSeconds: totals.Age,
		Complete:         totals.Complete,
		Status:           changefeed.StatusUnknown,
		RequestCharge:    math.Round(s.Lag.Charge*100) / 100, // the service's own precision, which sums do not keep
		Requests:         s.Lag.Requests,
		Error:            optional(s.Lag.Problem()),
		Reasons:          []scaling.Reason{},
		Partitions:       make([]Partition, 0, len(s.Lag.Partitions)),
	}
	if s.AttemptedAt.IsZero() {
		return r
	}
	r.Status, r.PartitionCount, r.PartitionsWithLag = totals.Status, totals.Partitions, totals.PartitionsWithLag
	if d := s.Decision; d != nil {
		r.MetricValue, r.Active, r.DesiredReplicas, r.Direction = &d.MetricValue, &d.Active, &d.Replicas, &d.Direction
		r.Reasons = append(r.Reasons, d.Reasons...)
	}
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		r.Partitions = append(r.Partitions, Partition{
			Lease: p.Lease, Range: p.Range, Owner: optional(p.Owner), Lag: p.Lag, ChangeAgeSeconds: p.Age,
			Status: p.Status, Approximate: p.Approximate, Error: optional(p.Error),
		})
	}
	return r
}

// NewStored reports a State as the store holds it.
func NewStored(s state.State) Stored {
	r := Stored{Processor: New(s), Sequence: s.Sequence, Paused: s.Paused}
	if !s.PolledAt.IsZero() {
		r.PolledAt = &s.PolledAt
	}
	return r
}

// Why is the reason that settled a decision, the last step that had a say; "" where there is none.
func Why(reasons []scaling.Reason) string {
	if len(reasons) == 0 {
		return ""
	}
	last := reasons[len(reasons)-1]
	return last.Step + ": " + last.Why
}

// CatchUpSeconds is how long the lag takes to drain with the replicas that were decided, at the
// measured rates: +Inf where it only grows; false where nothing is decided or a rate is not known.
func CatchUpSeconds(s state.State) (seconds float64, known bool) {
	if s.Decision == nil {
		return 0, false
	}
	return s.Memory.CatchUp(s.Lag.Lag(), s.Decision.Replicas)
}

// History is what is recorded of a processor, as the API answers and `feedscale history` prints it.
type History struct {
	Processor string         `json:"processor"`
	Samples   []state.Sample `json:"samples"` // oldest first
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
