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
	MetricsAPI   Acting = "metrics-api"   // KEDA's metrics-api trigger on desiredReplicas, with target 1
	MetricValue  Acting = "metric-value"  // KEDA's metrics-api trigger on metricValue, with the threshold as target
	ExternalPush Acting = "external-push" // KEDA's external-push trigger: desiredReplicas, and activity pushed
	KEDATrigger  Acting = "keda"          // KEDA's own azure-cosmosdb trigger, which asks nobody for a decision
)

// Ways lists the ways of acting on a decision of feedscale.
func Ways() []Acting { return []Acting{Consumer, MetricsAPI, MetricValue, ExternalPush} }

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
	k.target, k.activation = 1, 0
	if c.Acting == MetricValue {
		k.target, k.activation = s.policy.Threshold, s.policy.Activation
	}
	// What a ScaledObject is given is read across from the policy (docs/configure.md).
	k.least, k.cooldown = s.policy.MinReplicas, wholeSeconds(s.policy.Cooldown)
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
