package poller

import (
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/state"
)

// newEvent returns the scale event of a State's decision. State.Published must still be that of the
// event before, whose replicas become previousReplicas.
func newEvent(s state.State, target map[string]string) events.ScaleEvent {
	d := s.Decision
	data := events.Data{
		Processor:        s.Processor,
		Sequence:         s.Sequence,
		DesiredReplicas:  d.Replicas,
		Active:           d.Active,
		Direction:        string(d.Direction),
		MetricValue:      d.MetricValue,
		Lag:              s.Lag.Lag(),
		ChangeAgeSeconds: s.Lag.Age(),
		Complete:         s.Lag.Complete(),
		Status:           string(s.Lag.Status()),
		Target:           target,
	}
	if s.Published != nil {
		data.PreviousReplicas = &s.Published.Replicas
	}
	if s.Lag.Error == "" {
		partitions, lagging := s.Lag.PartitionCount(), s.Lag.PartitionsWithLag()
		data.PartitionCount = &partitions
		if s.Lag.Known() {
			data.PartitionsWithLag = &lagging
		}
	}
	for _, r := range d.Reasons {
		data.Reasons = append(data.Reasons, events.Reason(r))
	}
	return events.ScaleEvent{Time: d.Time, Data: data}
}
