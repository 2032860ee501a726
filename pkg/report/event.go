package report

import (
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/state"
)

// NewEvent is the scale event of what a State decided. The State's Published is still that of the
// event before; its Decision is not nil.
func NewEvent(s state.State, target map[string]string) events.ScaleEvent {
	d, totals := s.Decision, s.Lag.Totals()
	data := events.Data{
		Processor:         s.Processor,
		Epoch:             s.Epoch,
		Sequence:          s.Sequence,
		DesiredReplicas:   d.Replicas,
		Active:            d.Active,
		Direction:         string(d.Direction),
		MetricValue:       d.MetricValue,
		Lag:               totals.Lag,
		ChangeAgeSeconds:  totals.Age,
		PartitionCount:    totals.Partitions,
		PartitionsWithLag: totals.PartitionsWithLag,
		Complete:          totals.Complete,
		Status:            string(totals.Status),
		Target:            target,
	}
	if s.Published != nil {
		data.PreviousReplicas = &s.Published.Replicas
	}
	for _, r := range d.Reasons {
		data.Reasons = append(data.Reasons, events.Reason(r))
	}
	return events.ScaleEvent{Time: d.Time, Data: data}
}
