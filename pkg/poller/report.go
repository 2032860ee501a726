package poller

import (
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Report is the projection of a processor that `poll --output json` and the HTTP API show
// (docs/act.md, HTTP). Every field is always present; null means unknown.
type Report struct {
	Name              string             `json:"name"`
	Lag               *int64             `json:"lag"`
	ChangeAgeSeconds  *int64             `json:"changeAgeSeconds"`
	MetricValue       *int64             `json:"metricValue"`
	Active            *bool              `json:"active"`
	DesiredReplicas   *int               `json:"desiredReplicas"`
	Direction         *scaling.Direction `json:"direction"`
	Complete          bool               `json:"complete"`
	Status            changefeed.Status  `json:"status"`
	PartitionCount    *int               `json:"partitionCount"`
	PartitionsWithLag *int               `json:"partitionsWithLag"`
	RequestCharge     float64            `json:"requestCharge"`
	Requests          int                `json:"requests"`
	Error             *string            `json:"error"`
	Reasons           []scaling.Reason   `json:"reasons"`
	Partitions        []PartitionReport  `json:"partitions"`
}

// PartitionReport is the projection of one lease.
type PartitionReport struct {
	Lease            string            `json:"lease"`
	Range            *changefeed.Range `json:"range"` // null where it was not needed
	Owner            *string           `json:"owner"` // null where nobody owns the lease
	Lag              *int64            `json:"lag"`
	ChangeAgeSeconds *int64            `json:"changeAgeSeconds"`
	Status           changefeed.Status `json:"status"`
	Approximate      bool              `json:"approximate"`
	Error            *string           `json:"error"`
}

// StoredReport is a Report of what the store holds, with the fields that only the store knows.
type StoredReport struct {
	Report
	PolledAt *time.Time `json:"polledAt"` // last poll that measured something
	Sequence int64      `json:"sequence"` // of the last scale event, 0 where there was none
	Paused   bool       `json:"paused"`
}

// NewReport reports the last poll of a processor. For a State that was never polled everything is
// unknown.
func NewReport(s state.State) Report {
	r := Report{
		Name:             s.Processor,
		Lag:              s.Lag.Lag(),
		ChangeAgeSeconds: s.Lag.Age(),
		Complete:         s.Lag.Complete(),
		Status:           changefeed.StatusUnknown,
		RequestCharge:    math.Round(s.Lag.Charge*100) / 100, // the service's own precision, which sums do not keep
		Requests:         s.Lag.Requests,
		Error:            optional(s.Lag.Problem()),
		Reasons:          []scaling.Reason{},
		Partitions:       make([]PartitionReport, 0, len(s.Lag.Partitions)),
	}
	if s.AttemptedAt.IsZero() {
		return r
	}
	r.Status = s.Lag.Status()
	if s.Lag.Error == "" {
		partitions, lagging := s.Lag.PartitionCount(), s.Lag.PartitionsWithLag()
		r.PartitionCount = &partitions
		if s.Lag.Known() {
			r.PartitionsWithLag = &lagging
		}
	}
	if d := s.Decision; d != nil {
		r.MetricValue, r.Active, r.DesiredReplicas, r.Direction = &d.MetricValue, &d.Active, &d.Replicas, &d.Direction
		r.Reasons = append(r.Reasons, d.Reasons...)
	}
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		r.Partitions = append(r.Partitions, PartitionReport{
			Lease: p.Lease, Range: p.Range, Owner: optional(p.Owner), Lag: p.Lag, ChangeAgeSeconds: p.Age,
			Status: p.Status, Approximate: p.Approximate, Error: optional(p.Error),
		})
	}
	return r
}

// NewStoredReport reports a State as the store holds it.
func NewStoredReport(s state.State) StoredReport {
	r := StoredReport{Report: NewReport(s), Sequence: s.Sequence, Paused: s.Paused}
	if !s.PolledAt.IsZero() {
		r.PolledAt = &s.PolledAt
	}
	return r
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
