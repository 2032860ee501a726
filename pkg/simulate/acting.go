package simulate

import (
	"math/rand/v2"

	"github.com/feedscale/feedscale/pkg/scaling"
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

// Ways lists the ways of acting on a decision of feedscale.
func Ways() []Acting { return []Acting{Consumer, MetricsAPI, MetricValue, ExternalPush} }

// pollingInterval of the samples, in seconds.
const (
	samplePolling = 5  // infra/keda/processor.yaml
	pushPolling   = 15 // infra/keda/processor-external.yaml
)

// consumerSeconds is what a scale event takes: through the outbox, the queue and the consumer to the
// scale subresource.
const consumerSeconds = 2

// act returns what is asked at every second how many replicas the way of acting wants, given what
// the last decision left behind; polled says that a poll has just been made.
func (s feedscale) act(c Conditions, random *rand.Rand) func(second int, polled bool, m *scaling.Memory) int {
	if c.Acting == Consumer || c.Acting == "" {
		seconds := consumerSeconds
		if c.aligned {
			seconds = 0
		}
		wait, wanted := newDelay(seconds), 0
		return func(_ int, _ bool, m *scaling.Memory) int {
			if m.Replicas != nil {
				wanted = *m.Replicas
			}
			return wait.pass(wanted)
		}
	}
	k := newScaledObject(c, random)
	// As the samples have it (infra/keda): KEDA asks often, since that costs no request units, and
	// adds no wait of its own to what was decided.
	k.target, k.activation, k.atOnce, k.window, k.cooldown = 1, 0, true, 0, 0
	switch c.Acting {
	case MetricsAPI:
		k.polling = samplePolling
	case ExternalPush:
		k.polling = pushPolling
	case MetricValue:
		// KEDA's arithmetic with KEDA's waits. What the ScaledObject is given is read across from the policy.
		k.target, k.activation, k.atOnce, k.window = s.policy.Threshold, s.policy.Activation, false, hpaStabilization
		k.cooldown = wholeSeconds(s.policy.Cooldown)
	}
	k.least = s.policy.MinReplicas
	if s.policy.MaxReplicas != nil {
		k.most = *s.policy.MaxReplicas
	}
	return func(second int, polled bool, m *scaling.Memory) int {
		read := func() (metric int64, active, ok bool) {
			if m.Replicas == nil {
				return 0, false, false // 503: nothing was ever decided
			}
			metric = int64(*m.Replicas)
			if c.Acting == MetricValue {
				metric = m.MetricValue
			}
			return metric, metric > k.activation, true
		}
		return k.step(second, polled && c.Acting == ExternalPush, read)
	}
}

// delay hands a number on some seconds after it got it.
type delay struct {
	ring []int
	next int
}

func newDelay(seconds int) *delay { return &delay{ring: make([]int, seconds)} }

// pass takes a number in at each second, and returns the one of so many seconds ago.
func (d *delay) pass(n int) int {
	if len(d.ring) == 0 {
		return n
	}
	n, d.ring[d.next] = d.ring[d.next], n
	d.next = (d.next + 1) % len(d.ring)
	return n
}
