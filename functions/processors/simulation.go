package processors

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// RouteSimulation replays what was recorded of a processor against a policy. No function.json
// declares it: a Functions host answers 404, since what it costs is processor time of the app.
const RouteSimulation = "/api/processors/{name}/simulation"

// maxSimulated bounds a replay of one partition, and of more by so much less: a second or two of work at most.
const maxSimulated = 2_000_000 * time.Second

// maxReplayed is the most samples that are read for a replay: those of a week, and some to spare.
const maxReplayed = 50_000

// simulate answers with what a policy would have made of the samples with since <= time < until.
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
	if err != nil {
		return nil, err
	}
	if n := len(samples); n > 0 {
		span, partitions := samples[n-1].Time.Sub(samples[0].Time), 1
		for _, s := range samples {
			partitions = max(partitions, *cmp.Or(s.PartitionCount, new(int)))
		}
		if most := maxSimulated / time.Duration(partitions); span > most {
			return nil, refused("%d partitions over %s are too much to replay here: ask for at most the last %s; "+
				"the command line has no such limit: feedscale simulate --trace history:%s",
				partitions, span.Truncate(time.Second), most.Truncate(time.Minute), name)
		}
	}
	recording, err := simulate.FromSamples(name, samples, 0)
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

// object is a JSON object.
type object = map[string]any

// replay is what a policy would have made of a recording. since is its first complete sample, left
// is pending at the end, and a point of the series has the greatest values until the next one.
func replay(recording simulate.Recording, policy simulate.Scaler) object {
	workers := simulate.DefaultWorkers()
	workers.Throughput = cmp.Or(recording.Drain, workers.Throughput) // else it is a default
	result := simulate.Run(recording.Trace, workers, policy, simulate.Conditions{Seed: 1}, simulate.Objective{})
	series := make([]object, len(result.Series))
	for i, p := range result.Series {
		series[i] = object{"time": recording.Start.Add(p.At), "lag": p.Lag, "changeAgeSeconds": int64(p.Age / time.Second), "desiredReplicas": p.Desired}
	}
	return object{
		"processor": recording.Name, "policy": result.Scaler, "since": recording.Start, "seconds": int64(recording.Duration() / time.Second),
		"guessedSeconds": int64(recording.Guessed / time.Second), "partitions": recording.Partitions,
		"throughputPerReplica": workers.Throughput, "throughputMeasured": recording.Drain > 0,
		"replicaHours": result.ReplicaHours, "maxLag": result.MaxLag, "maxAgeSeconds": int64(result.MaxAge / time.Second),
		"p99AgeSeconds": int64(result.P99Age / time.Second), "actions": result.Actions(), "left": result.Left, "series": series,
	}
}
