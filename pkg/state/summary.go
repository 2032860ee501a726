package state

import (
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Summary is an hour (UTC) of one processor, summed over its polls. A poll stands for the time since the
// poll before it, up to SampleInterval after it was due; the rest is a gap. A group has no Summary.
type Summary struct {
	Hour    time.Time `json:"hour"`
	Seconds float64   `json:"seconds,omitempty"` // that polls stand for

	OwnersKnown    float64 `json:"ownersKnown,omitempty"`    // seconds in which the leases could be read
	ReplicaSeconds float64 `json:"replicaSeconds,omitempty"` // seconds times live owners, of those seconds
	Changes        int     `json:"changes,omitempty"`        // of the number of live owners, between two polls
	Owners         *int    `json:"owners,omitempty"`         // of the last poll that knew them

	OverObjective float64 `json:"overObjective,omitempty"` // seconds in which the age was beyond the objective
	WorstAge      *int64  `json:"worstAge,omitempty"`      // seconds; nil if nothing was pending
	RequestCharge float64 `json:"requestCharge,omitempty"` // request units

	StatusSeconds map[changefeed.Status]float64 `json:"statusSeconds,omitempty"`
}

// At is the begin of the hour.
func (s Summary) At() time.Time { return s.Hour }

// summarize adds the poll of sample to its hour, and finishes the hour of the polls before if it is an
// earlier one.
func (s *State) summarize(sample Sample, o Observation) {
	hour := Summary{Hour: sample.Time.Truncate(time.Hour)}
	if before := o.Hour; before != nil {
		switch before.Hour.Sub(hour.Hour) {
		case 0, time.Hour: // a clock that goes back a little does not begin the hour before again
			hour = *before
		default:
			s.Finished, hour.Owners = before, before.Owners
		}
	}
	seconds := o.seconds(s.AttemptedAt, max(SampleInterval, o.Due.Add(SampleInterval).Sub(o.Since)))
	hour.Seconds += seconds
	if owners := sample.LiveOwners; owners != nil {
		hour.OwnersKnown += seconds
		hour.ReplicaSeconds += seconds * float64(*owners)
		if hour.Owners != nil && *hour.Owners != *owners {
			hour.Changes++
		}
		hour.Owners = owners
	}
	if age := sample.Age; age != nil && (hour.WorstAge == nil || *age > *hour.WorstAge) {
		hour.WorstAge = age
	}
	hour.OverObjective += o.over(sample.Age, seconds)
	hour.RequestCharge += s.Lag.Charge
	hour.StatusSeconds = longer(hour.StatusSeconds, sample.Status, seconds)
	s.Hour = &hour
}
