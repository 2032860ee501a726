package processors

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

// RouteSimulation replays what was recorded of a processor against a policy. No function.json
// declares it: a Functions host answers 404, since what it costs is processor time of the app.
const RouteSimulation = "/api/processors/{name}/simulation"

// maxSimulated bounds a replay, in seconds of all partitions: a second or two of work at most.
const maxSimulated = 2_000_000

// maxReplayed is the most samples that are read for a replay: those of a week, and some to spare.
const maxReplayed = 50_000

// simulation is what a policy would have made of what was recorded.
type simulation struct {
	Processor            string           `json:"processor"`
	Policy               string           `json:"policy"`
	Since                time.Time        `json:"since"` // first sample that is complete
	Seconds              int64            `json:"seconds"`
	GuessedSeconds       int64            `json:"guessedSeconds"` // without a recorded arrival rate
	Partitions           int              `json:"partitions"`
	ThroughputPerReplica float64          `json:"throughputPerReplica"` // transactions per second
	ThroughputMeasured   bool             `json:"throughputMeasured"`   // whether that was recorded, or is a default
	ReplicaHours         float64          `json:"replicaHours"`
	MaxLag               int64            `json:"maxLag"`
	MaxAgeSeconds        int64            `json:"maxAgeSeconds"`
	P99AgeSeconds        int64            `json:"p99AgeSeconds"`
	Actions              int              `json:"actions"`
	Left                 int64            `json:"left"` // pending at the end
	Series               []simulatedPoint `json:"series"`
}

// simulatedPoint has the greatest of each value from its time to the next.
type simulatedPoint struct {
	Time     time.Time `json:"time"`
	Lag      int64     `json:"lag"`
	Age      int64     `json:"changeAgeSeconds"`
	Replicas int       `json:"desiredReplicas"`
}

// simulate answers with what a policy would have made of the samples with since <= time < until. One
// replay runs at a time.
func (h *Handler) simulate(r *http.Request) (any, error) {
	name := r.PathValue("name")
	since, until, err := h.between(r)
	if err != nil {
		return nil, err
	}
	policies := h.Policies(name)
	if len(policies) == 0 {
		return nil, refused("%s is a group; allowed are processors", name)
	}
	policy, err := chosen(policies, r.URL.Query().Get("policy"))
	if err != nil {
		return nil, err
	}
	samples, err := h.read(r.Context(), name, since, until, 0, maxReplayed, true)
	switch {
	case errors.Is(err, errTooMany):
		return nil, refused("there are more than %d samples: ask for less time, as in ?since=168h%s", maxReplayed, noLimit(name))
	case err != nil:
		return nil, err
	}
	recording, err := recorded(name, samples)
	if err != nil {
		return nil, refused("%w", err)
	}
	return replay(recording, policy), nil
}

// chosen is the policy of a name, the first one if there is no name.
func chosen(policies []simulate.Scaler, name string) (simulate.Scaler, error) {
	var names []string
	for _, p := range policies {
		if name == "" || p.Name() == name {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, refused("policy is %q; allowed are %s", name, strings.Join(names, ", "))
}

// noLimit says who replays more.
func noLimit(name string) string {
	return "; the command line has no such limit: feedscale simulate --trace history:" + name
}

// recorded makes a trace of samples. It refuses what takes long to replay.
func recorded(name string, samples []state.Sample) (simulate.Recording, error) {
	if len(samples) > 0 {
		seconds := int64(samples[len(samples)-1].Time.Sub(samples[0].Time) / time.Second)
		partitions := 1
		for _, s := range samples {
			if s.PartitionCount != nil {
				partitions = max(partitions, *s.PartitionCount)
			}
		}
		if seconds*int64(partitions) > maxSimulated {
			return simulate.Recording{}, fmt.Errorf("%d partitions over %s are too much to replay here: ask for at most the last %s%s",
				partitions, time.Duration(seconds)*time.Second, (time.Duration(maxSimulated/partitions) * time.Second).Truncate(time.Minute), noLimit(name))
		}
	}
	return simulate.FromSamples(name, samples, 0)
}

func replay(recording simulate.Recording, policy simulate.Scaler) simulation {
	workers := simulate.DefaultWorkers()
	if recording.Drain != nil {
		workers.Throughput = *recording.Drain
	}
	result := simulate.Run(recording.Trace, workers, policy, simulate.Conditions{Seed: 1}, simulate.Objective{})
	answer := simulation{
		Processor: recording.Name, Policy: result.Scaler, Since: recording.Start, Seconds: int64(recording.Duration() / time.Second),
		GuessedSeconds: int64(recording.Guessed / time.Second), Partitions: recording.Partitions,
		ThroughputPerReplica: workers.Throughput, ThroughputMeasured: recording.Drain != nil,
		ReplicaHours: result.ReplicaHours, MaxLag: result.MaxLag, MaxAgeSeconds: int64(result.MaxAge / time.Second),
		P99AgeSeconds: int64(result.P99Age / time.Second), Actions: result.Actions(), Left: result.Left,
		Series: make([]simulatedPoint, len(result.Series)),
	}
	for i, p := range result.Series {
		answer.Series[i] = simulatedPoint{recording.Start.Add(p.At), p.Lag, int64(p.Age / time.Second), p.Desired}
	}
	return answer
}
