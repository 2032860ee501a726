package main

import (
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// Acting is a way in which a decision becomes a number of replicas (docs/act.md).
type Acting string

// The ways of acting. With all but the first KEDA takes the steps between zero and one, and an HPA
// all others, each in its own time and with its own windows.
const (
	Consumer     Acting = "consumer"      // a consumer of the scale events
	MetricsAPI   Acting = "metrics-api"   // KEDA's metrics-api trigger on desiredReplicas with target 1, as the sample has it
	MetricValue  Acting = "metric-value"  // the same on metricValue, with the threshold as target and KEDA's own waits
	ExternalPush Acting = "external-push" // KEDA's external-push trigger: desiredReplicas, and activity pushed
	KEDATrigger  Acting = "keda"          // KEDA's own azure-cosmosdb trigger, which asks nobody for a decision
)

// ways are the ways of acting on a decision of feedscale.
var ways = []Acting{Consumer, MetricsAPI, MetricValue, ExternalPush}

// pollingInterval of the samples, in seconds.
const (
	samplePolling = 5  // infra/keda/processor.yaml
	pushPolling   = 15 // infra/keda/processor-external.yaml
)

// Contender is who decides, and who acts on it: a Scaler.
type Contender struct {
	simulate.Scaler
	Acting Acting
	Delay  time.Duration // until the replicas change, beside the way of acting's own loops; whole seconds
}

// Begin joins a replay.
func (c Contender) Begin(r *simulate.Replay) func(second int) int {
	act, delay := c.act(r), simulate.Delay(int(c.Delay/time.Second))
	return func(second int) int { return delay(act(second)) }
}

// act returns what is called at every second, and returns the replicas that the way of acting wants.
func (c Contender) act(r *simulate.Replay) func(second int) int {
	policy, ok := c.Scaler.(simulate.Policy)
	if !ok || c.Acting == Consumer {
		return c.Scaler.Begin(r)
	}
	decisions := policy.Decisions(r)
	k := simulate.NewScaledObject(r)
	activation := int64(0)
	if c.Acting == MetricValue {
		// KEDA's arithmetic with KEDA's waits. The ScaledObject has what the policy has.
		k.Target, activation = policy.Threshold, policy.Activation
		k.Cooldown = int(policy.Cooldown / time.Second)
	} else {
		// As the samples have it (infra/keda): KEDA asks often, since that costs no request units, and
		// adds no wait of its own to what was decided.
		k.Target, k.AtOnce, k.Window, k.Cooldown, k.Polling = 1, true, 0, 0, samplePolling
	}
	if c.Acting == ExternalPush {
		k.Polling = pushPolling
	}
	k.Min = policy.MinReplicas
	if policy.MaxReplicas != nil {
		k.Max = *policy.MaxReplicas
	}
	return func(second int) int {
		m, polled := decisions(second)
		return k.Step(second, polled && c.Acting == ExternalPush, func() (metric int64, active, ok bool) {
			if m.Replicas == nil {
				return 0, false, false // 503: nothing was ever decided
			}
			metric = int64(*m.Replicas)
			if c.Acting == MetricValue {
				metric = m.MetricValue
			}
			return metric, metric > activation, true
		})
	}
}
