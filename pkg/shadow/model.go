package shadow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

// Model is what policies would have run for the recorded arrivals. It is computed, not measured.
type Model struct {
	Since              time.Time     `json:"since"` // first complete sample
	Seconds            int64         `json:"seconds"`
	GuessedSeconds     int64         `json:"guessedSeconds"`       // of them, without a recorded arrival rate
	Throughput         float64       `json:"throughputPerReplica"` // transactions per second
	ThroughputMeasured bool          `json:"throughputMeasured"`   // false = it is a default
	StartUpSeconds     float64       `json:"startUpSeconds"`       // of a replica
	StartUpMeasured    bool          `json:"startUpMeasured"`      // false = it is a default
	MeasuredReplicas   *float64      `json:"measuredReplicas"`     // mean of live owners; null if never known
	Policies           []ModelResult `json:"policies"`
	Ran                *string       `json:"ran"`          // the policy that scaled, as the user says; null = no check
	ErrorPercent       *float64      `json:"errorPercent"` // of ran's mean replicas against measuredReplicas
	Error              *string       `json:"error"`        // why nothing is modelled
}

// ModelResult is what one policy would have run.
type ModelResult struct {
	Policy        string  `json:"policy"`
	ReplicaHours  float64 `json:"replicaHours"`
	ScaleActions  int     `json:"scaleActions"`
	OverObjective int64   `json:"secondsOverObjective"`
	WorstAge      int64   `json:"worstAgeSeconds"`
}

// defaultObjective is the age objective of a processor without maxChangeAge (docs/monitor.md).
const defaultObjective = time.Minute

// Question is the input of a Model.
type Question struct {
	Name      string
	Samples   []state.Sample // oldest first
	Policies  []simulate.Scaler
	Objective time.Duration   // greatest age of a change to keep; 0 = 60 s
	Ran       simulate.Scaler // the policy that did scale; nil = unknown
}

// NewModel replays the recorded arrivals against policies.
func NewModel(q Question) *Model {
	workers := simulate.DefaultWorkers()
	m := &Model{StartUpSeconds: workers.StartUp.Seconds(), Policies: []ModelResult{}}
	recording, err := simulate.FromSamples(q.Name, q.Samples, 0)
	if err != nil {
		m.Error = new(err.Error())
		return m
	}
	workers.Throughput, m.ThroughputMeasured = cmp.Or(recording.Drain, workers.Throughput), recording.Drain > 0
	if q.Ran != nil && q.Ran.Name() == "own" { // only then did the replicas follow these decisions
		if seen := startUp(q.Samples); seen > 0 {
			workers.StartUp, m.StartUpSeconds, m.StartUpMeasured = seen, seen.Seconds(), true
		}
	}
	m.Since, m.Seconds, m.Throughput = recording.Start, int64(recording.Duration()/time.Second), workers.Throughput
	m.GuessedSeconds, m.MeasuredReplicas = int64(recording.Guessed/time.Second), meanOwners(q.Samples, recording.Start)
	objective := simulate.Objective{Age: cmp.Or(q.Objective, defaultObjective)}
	replay := func(s simulate.Scaler) simulate.Result {
		return simulate.Run(recording.Trace, workers, s, simulate.Conditions{Seed: 1}, objective)
	}
	for _, policy := range q.Policies {
		r := replay(policy)
		m.Policies = append(m.Policies, ModelResult{policy.Name(), r.ReplicaHours, r.Actions(), int64(r.OverAge / time.Second), int64(r.MaxAge / time.Second)})
	}
	if q.Ran == nil {
		return m
	}
	m.Ran = new(q.Ran.Name())
	// replicas without a lease are not visible in the leases
	if fixed, ok := q.Ran.(simulate.FixedCount); ok {
		*m.Ran = fmt.Sprintf("fixed:%d", fixed)
		q.Ran = min(fixed, simulate.FixedCount(recording.Partitions))
	}
	if m.MeasuredReplicas != nil && *m.MeasuredReplicas > 0 {
		mean := replay(q.Ran).ReplicaHours / recording.Duration().Hours()
		m.ErrorPercent = new(100 * (mean / *m.MeasuredReplicas - 1))
	}
	return m
}

const (
	leastStarts    = 3                // fewest scale-outs from which a start-up time is taken
	longestStartUp = 10 * time.Minute // a longer time is no start-up
)

// startUp returns the median time from a scale-out until the leases show the decided number of
// owners; 0 if there are too few scale-outs. A scale-out that a later decision overtakes does not
// count.
func startUp(samples []state.Sample) time.Duration {
	var seen []time.Duration
	var decided *state.Sample // the scale-out whose owners are awaited
	for i := range samples {
		s := &samples[i]
		if s.LiveOwners != nil && decided != nil && *s.LiveOwners >= *decided.Replicas && s.Time.After(decided.Time) {
			seen, decided = append(seen, s.Time.Sub(decided.Time)), nil
		}
		if s.Changed() || decided != nil && s.Time.Sub(decided.Time) > longestStartUp {
			decided = nil
		}
		if s.Changed() && s.Previous != nil && *s.Replicas > *s.Previous && s.LiveOwners != nil && *s.LiveOwners < *s.Replicas {
			decided = s
		}
	}
	if len(seen) < leastStarts {
		return 0
	}
	slices.Sort(seen)
	return seen[len(seen)/2]
}

// meanOwners returns the mean of live owners since a time; nil if they were never known.
func meanOwners(samples []state.Sample, since time.Time) *float64 {
	seconds, replicaSeconds := 0.0, 0.0
	for _, s := range samples {
		if s.LiveOwners == nil || s.Time.Before(since) {
			continue
		}
		for _, of := range s.StatusSeconds {
			seconds += of
			replicaSeconds += of * float64(*s.LiveOwners)
		}
	}
	if seconds == 0 {
		return nil
	}
	return new(replicaSeconds / seconds)
}
