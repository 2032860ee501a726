package state

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"
	"unicode/utf16"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// SampleInterval is the length of the intervals of which the history keeps one sample each, counted
// from the full hour: 240 per hour.
const SampleInterval = 15 * time.Second

// maxSampleUnits is the maximum length of a sample's JSON in UTF-16 code units. The 240 samples of
// an hour have to fit into one row of Azure Table storage: 1 MiB, two bytes per unit
// (https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model).
const maxSampleUnits = 2_000

// Sample is one poll of a processor in the history. Its JSON has the names of `poll --output json`
// (docs/http.md) and, but for those of throughput, always every field; null, which is nil, means
// unknown.
type Sample struct {
	Time              time.Time         `json:"time"` // of the poll, UTC
	Lag               *int64            `json:"lag"`
	Age               *int64            `json:"changeAgeSeconds"` // seconds; nil also if nothing is pending
	Complete          bool              `json:"complete"`
	Status            changefeed.Status `json:"status"`
	PartitionCount    *int              `json:"partitionCount"`
	PartitionsWithLag *int              `json:"partitionsWithLag"`
	Arrival           *float64          `json:"arrivalPerSecond"` // LSNs per second, of the processor; nil if this poll could not tell
	DrainPerReplica   *float64          `json:"drainPerReplica"`  // LSNs per second that one live owner processes; nil if never measured

	// Earlier releases did not record these: nil means not recorded, which is never the same as zero. Each
	// poll of the 15 s stands for the time since the poll before it, at most 15 s.
	LiveOwners    *int                          `json:"liveOwners"`           // of the leases, a lease that flaps counts its last owner; nil also if they could not be read, and of a group
	RequestCharge *float64                      `json:"requestCharge"`        // request units, summed; nil also of a group
	OverObjective *float64                      `json:"secondsOverObjective"` // in which the age was beyond maxChangeAge, or 60 s without one; nil also of a group
	StatusSeconds map[changefeed.Status]float64 `json:"statusSeconds"`        // of each status that there was

	// Sums over the containers whose throughput follows the replicas, in request units a second. They are
	// left out if there is none, or if one of them is unknown.
	ProvisionedRU *int `json:"provisionedRUPerSecond,omitempty"`
	DesiredRU     *int `json:"desiredRUPerSecond,omitempty"` // recommended, or to be provisioned

	// The decision; nil and without reasons if nothing was decided.
	MetricValue *int64             `json:"metricValue"`
	Active      *bool              `json:"active"`
	Replicas    *int               `json:"desiredReplicas"`
	Previous    *int               `json:"previousReplicas"` // nil also for the first decision
	Direction   *scaling.Direction `json:"direction"`
	Reasons     []scaling.Reason   `json:"reasons"` // all of a decision that is the first or changed the replicas, else the last one; never nil

	// The worst partitions of such a decision, at most mostSampled; empty in any other sample, and for a
	// group. nil in samples of earlier releases.
	Partitions []SampledPartition `json:"partitions"`
}

// At is the time of the poll.
func (s Sample) At() time.Time { return s.Time }

// HistoryEntry is a Sample or a Summary.
type HistoryEntry interface{ At() time.Time }

// SampledPartition is what a Sample keeps of a partition.
type SampledPartition struct {
	Lease  string            `json:"lease"` // lease token
	Lag    *int64            `json:"lag"`   // transactions; nil means unknown
	Status changefeed.Status `json:"status"`
}

// mostSampled bounds the partitions of a Sample, so that its reasons have room beside them.
const mostSampled = 8

// Observation is what a Sample needs besides the States.
type Observation struct {
	LeaseExpiration time.Duration // an owner is live while its lease was renewed within this time
	Objective       time.Duration // the greatest age that is wanted; 0 = 60 s
	Due             time.Time     // of this poll; zero = unknown
}

// secondsSince returns the time that a poll stands for: since the last one, at most a given time.
func (s *State) secondsSince(last *State, most time.Duration) float64 {
	if last.AttemptedAt.IsZero() {
		return 0
	}
	return min(max(0, s.AttemptedAt.Sub(last.AttemptedAt)), most).Round(time.Millisecond).Seconds()
}

// over returns as many seconds if an age is beyond the objective; 0 if it is not, or is unknown.
func (o Observation) over(age *int64, seconds float64) float64 {
	if age == nil || float64(*age) <= cmp.Or(o.Objective, objective).Seconds() {
		return 0
	}
	return seconds
}

// objective is that of a processor without maxChangeAge.
const objective = time.Minute

// longer returns the seconds of statuses with some more of one.
func longer(statuses map[changefeed.Status]float64, status changefeed.Status, seconds float64) map[changefeed.Status]float64 {
	sum := map[changefeed.Status]float64{status: seconds}
	for s, before := range statuses {
		sum[s] += before
	}
	return sum
}

// Record sets Since, Recorded, Hour and Finished, which are what the history keeps of s. last is the State of
// the poll before, the zero State if there was none. If both polls are in one interval, the later sample
// replaces the earlier one, adds to its sums and, if it changed nothing, takes over its decision.
func (s *State) Record(last *State, o Observation) {
	s.Recorded = nil
	sample, before := s.Sample(), last.Recorded
	var earlier Sample // of the same interval
	if before != nil && before.Time.Truncate(SampleInterval).Equal(sample.Time.Truncate(SampleInterval)) {
		earlier = *before
	}
	seconds := s.secondsSince(last, SampleInterval)
	sample.StatusSeconds = longer(earlier.StatusSeconds, sample.Status, seconds)
	if len(s.Members) == 0 {
		sample.LiveOwners = s.Lag.LiveOwners(s.AttemptedAt, o.LeaseExpiration, true)
		sample.OverObjective = new(*cmp.Or(earlier.OverObjective, new(0.0)) + o.over(sample.Age, seconds))
		sample.RequestCharge = new(*cmp.Or(earlier.RequestCharge, new(0.0)) + math.Round(s.Lag.Charge*100)/100)
		s.summarize(last, sample, o)
	}
	if earlier.Changed() && sample.Replicas != nil && !sample.Changed() {
		sample.Previous, sample.Direction = earlier.Previous, earlier.Direction
		sample.Reasons, sample.Partitions = earlier.Reasons, earlier.Partitions
	}
	if before == nil || before.Status != sample.Status {
		s.Since = s.AttemptedAt
	}
	s.Recorded = &sample
}

// Changed reports whether the decision is the first one, or changed the replicas.
func (s Sample) Changed() bool {
	return s.Replicas != nil && (s.Previous == nil || *s.Previous != *s.Replicas)
}

// Sample returns what the history keeps of s: Recorded or, without it, what the last poll alone says.
func (s State) Sample() Sample {
	if s.Recorded != nil {
		return *s.Recorded
	}
	totals := s.Totals()
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
		Partitions:        []SampledPartition{},
	}
	sample.ProvisionedRU, sample.DesiredRU = s.throughput()
	if drain := s.Memory.DrainPerReplica; drain != 0 {
		sample.DrainPerReplica = &drain
	}
	if d := s.Decision; d != nil {
		sample.MetricValue, sample.Active, sample.Replicas, sample.Previous, sample.Direction = &d.MetricValue, &d.Active, &d.Replicas, d.Previous, &d.Direction
		reasons := d.Reasons
		if d.Previous != nil && *d.Previous == d.Replicas {
			reasons = reasons[max(0, len(reasons)-1):]
		}
		sample.Reasons = append(sample.Reasons, reasons...)
	}
	if sample.Changed() {
		sample.Partitions = append(sample.Partitions, s.worst()...)
	}
	return sample
}

// worst returns the partitions of the last poll with the worst statuses and, of those, the greatest
// lags; an unknown one is greater than any.
func (s State) worst() []SampledPartition {
	partitions := make([]SampledPartition, len(s.Lag.Partitions))
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		partitions[i] = SampledPartition{p.Lease, p.Lag, p.Status}
	}
	statuses := changefeed.Statuses()
	lag := func(p SampledPartition) int64 {
		if p.Lag == nil {
			return math.MaxInt64
		}
		return *p.Lag
	}
	slices.SortStableFunc(partitions, func(a, b SampledPartition) int {
		return cmp.Or(cmp.Compare(slices.Index(statuses[:], a.Status), slices.Index(statuses[:], b.Status)), cmp.Compare(lag(b), lag(a)))
	})
	return partitions[:min(mostSampled, len(partitions))]
}

// Encode returns the JSON of s that a store keeps, of at most 2,000 UTF-16 code units. To fit, it leaves
// out the last partitions, and then the first reasons: the last reason settled the decision.
func (s Sample) Encode() ([]byte, error) {
	for {
		text, err := json.Marshal(s)
		switch {
		case err != nil || len(utf16.Encode([]rune(string(text)))) <= maxSampleUnits:
			return text, err
		case len(s.Partitions) > 0:
			s.Partitions = s.Partitions[:len(s.Partitions)-1]
		case len(s.Reasons) > 0:
			s.Reasons = s.Reasons[1:]
		default:
			return text, nil
		}
	}
}

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
func (s *State) summarize(last *State, sample Sample, o Observation) {
	hour := Summary{Hour: sample.Time.Truncate(time.Hour)}
	if before := last.Hour; before != nil {
		switch before.Hour.Sub(hour.Hour) {
		case 0, time.Hour: // a clock that goes back a little does not begin the hour before again
			hour = *before
		default:
			s.Finished, hour.Owners = before, before.Owners
		}
	}
	seconds := s.secondsSince(last, max(SampleInterval, o.Due.Add(SampleInterval).Sub(last.AttemptedAt)))
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
