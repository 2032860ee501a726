package main

import (
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// Acting is how a decision becomes a number of replicas (docs/act.md).
type Acting string

// The ways of acting. With all but the first, KEDA takes the steps between zero and one, and an HPA
// takes all others, each with its own interval and windows.
const (
	Consumer Acting = "consumer" // a consumer of the scale events
	// KEDA's metrics-api trigger on desiredReplicas with target 1, as in the sample
	MetricsAPI Acting = "metrics-api"
	// the same on metricValue, with the threshold as target and KEDA's own windows
	MetricValue Acting = "metric-value"
	// KEDA's external-push trigger: desiredReplicas, with activity pushed
	ExternalPush Acting = "external-push"
	KEDATrigger  Acting = "keda" // KEDA's own azure-cosmosdb trigger, without feedscale
)

// ways are those that act on a decision of feedscale.
var ways = []Acting{Consumer, MetricsAPI, MetricValue, ExternalPush}

// pollingInterval of the samples, in seconds.
const (
	samplePolling = 5  // infra/keda/processor.yaml
	pushPolling   = 15 // infra/keda/processor-external.yaml
)

// Contender is a policy with a way of acting. It implements simulate.Scaler.
type Contender struct {
	simulate.Scaler
	Acting Acting
	// until the replicas change, in addition to the loops of the way of acting; whole seconds
	Delay time.Duration
}

// Begin joins a replay.
func (c Contender) Begin(r *simulate.Replay) func(second int) int {
	act, delay := c.act(r), simulate.Delay(int(c.Delay/time.Second))
	return func(second int) int { return delay(act(second)) }
}

// act returns a function to call every second. It returns the replicas that the way of acting
// wants.
func (c Contender) act(r *simulate.Replay) func(second int) int {
	policy, ok := c.Scaler.(simulate.Policy)
	if !ok || c.Acting == Consumer {
		return c.Scaler.Begin(r)
	}
	decisions := policy.Decisions(r)
	k := simulate.NewScaledObject(r)
	activation := int64(0)
	if c.Acting == MetricValue {
		// KEDA's arithmetic and waits. The ScaledObject has the values of the policy.
		k.Target, activation = policy.Threshold, policy.Activation
		k.Cooldown = int(policy.Cooldown / time.Second)
	} else {
		// As in the samples (infra/keda): KEDA asks often, since that costs no request units, and
		// adds no window to the decision.
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
				return 0, false, false // 503: nothing was decided yet
			}
			metric = int64(*m.Replicas)
			if c.Acting == MetricValue {
				metric = m.MetricValue
			}
			return metric, metric > activation, true
		})
	}
}
