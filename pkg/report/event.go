package report

import (
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/state"
)

// NewEvent returns the scale event for the decision of a processor or a group. s.Decision must not
// be nil, and s.Published must still be the event before.
func NewEvent(s state.State, target map[string]string) events.ScaleEvent {
	d, totals := s.Decision, s.Totals()
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
	if len(s.Members) > 0 {
		data.Processor, data.Group, data.Members = "", s.Processor, members(s)
	}
	for _, t := range throughputOf(s) {
		data.Throughput = append(data.Throughput, t.Throughput)
	}
	for _, r := range d.Reasons {
		data.Reasons = append(data.Reasons, events.Reason(r))
	}
	for _, f := range Findings(Lookup{State: s}) {
		data.Findings = append(data.Findings, events.Finding{Code: f.Code, Severity: string(f.Severity), Sentence: f.Sentence, Remedy: f.Remedy})
	}
	return events.ScaleEvent{Time: d.Time, Data: data}
}
