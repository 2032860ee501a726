package simulate

import (
	"math"
	"math/rand/v2"
)

// The defaults of KEDA 2.21's azure-cosmosdb scaler (pkg/scalers/azure_cosmosdb_scaler.go in
// kedacore/keda), of its ScaledObject (https://keda.sh/docs/2.21/reference/scaledobject-spec/), and
// of the HPA controller (https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/),
// in transactions, replicas and seconds.
const (
	kedaThreshold    = 100 // changeFeedLagThreshold
	kedaActivation   = 0   // activationChangeFeedLagThreshold
	kedaPolling      = 30  // pollingInterval
	kedaCooldown     = 300 // cooldownPeriod
	kedaMaxReplicas  = 100 // maxReplicaCount
	hpaSync          = 15  // --horizontal-pod-autoscaler-sync-period
	hpaTolerance     = 0.1 // --horizontal-pod-autoscaler-tolerance
	hpaStabilization = 300 // --horizontal-pod-autoscaler-downscale-stabilization
)

type keda struct{}

// KEDA is KEDA 2.21 with its azure-cosmosdb scaler and the HPA that it makes, every setting at its
// default, whatever the way of acting.
func KEDA() Scaler { return keda{} }

func (keda) Name() string { return "keda" }

func (keda) begin(c Conditions, f *fleet, random *rand.Rand) replicas {
	k := newScaledObject(c, random)
	k.target = kedaThreshold
	return func(second, _ int) int {
		return k.step(second, false, func() (metric int64, active, ok bool) {
			if random.Float64() < c.FailedPolls {
				return 0, false, false
			}
			metric, active = kedaMetric(f)
			return metric, active, true
		})
	}
}

// kedaMetric is what the azure-cosmosdb scaler makes of the lag (GetMetricsAndActivity): capped to a
// threshold for each partition that has one.
func kedaMetric(f *fleet) (metric int64, active bool) {
	limit := int64(0)
	for p := range f.leases {
		if f.leases[p].pending() > 0 {
			limit += kedaThreshold
		}
	}
	return min(f.pending, limit), f.pending > kedaActivation
}

// scaledObject is KEDA's loop over a trigger, and the HPA that KEDA makes for it. KEDA takes the
// steps between zero and one (pkg/scaling/executor/scale_scaledobjects.go), the HPA all others.
type scaledObject struct {
	hpa
	activation int64
	least      int // minReplicaCount
	cooldown   int // cooldownPeriod, in seconds
	polling    int // pollingInterval, in seconds
	polls      int // second of the first poll of KEDA's
	syncs      int // second of the first round of the HPA controller
	replicas   int
	lastActive int // second of the last read that was active
}

func newScaledObject(c Conditions, random *rand.Rand) *scaledObject {
	return &scaledObject{
		hpa: hpa{most: kedaMaxReplicas, window: hpaStabilization}, polling: kedaPolling, cooldown: kedaCooldown,
		polls: c.phase(kedaPolling, random), syncs: c.phase(hpaSync, random),
	}
}

// step is one second. read asks the trigger, as both KEDA and, through KEDA's metrics server, the HPA
// do each time; ok is false where it fails. pushed says that the trigger tells of its activity by
// itself: KEDA then does at once what it does at a poll (startPushScalers in pkg/scaling/scale_handler.go).
func (k *scaledObject) step(second int, pushed bool, read func() (metric int64, active, ok bool)) int {
	// The HPA first: it meets a replica that KEDA makes at its next round. At zero it does nothing.
	if second%hpaSync == k.syncs && k.replicas > 0 {
		if metric, _, ok := read(); ok {
			k.replicas = k.sync(second, k.replicas, max(1, k.least), metric)
		}
	}
	if second%k.polling != k.polls%k.polling && !pushed {
		return k.replicas
	}
	switch _, active, ok := read(); {
	case !ok: // an error, and no fallback: nothing changes
	case active && k.replicas == 0:
		k.replicas, k.lastActive = max(1, k.least), second
	case active:
		k.lastActive = second
	case k.replicas < k.least:
		k.replicas = k.least
	case k.replicas > 0 && k.least == 0 && second-k.lastActive >= k.cooldown:
		// KEDA compares clocks that have gone on a little since the poll, so that the poll after
		// exactly the cooldown is past it.
		k.replicas = 0
	}
	return k.replicas
}

// hpa is the HPA controller for an external metric with an AverageValue and without `behavior`,
// which KEDA leaves out unless it is set (controllers/keda/hpa.go). The controller has rules of its
// own for that case, which are not quite the documented defaults of behavior: normalizeDesiredReplicas
// and stabilizeRecommendation in pkg/controller/podautoscaler/horizontal.go of kubernetes/kubernetes.
type hpa struct {
	target          int64 // AverageValue
	most            int   // maxReplicas
	window          int   // stabilizationWindowSeconds of scaleDown
	atOnce          bool  // whether the policies of scaleUp allow any step
	recommendations []recommendation
}

type recommendation struct{ second, replicas int }

// sync is one round of the controller; GetExternalPerPodMetricReplicas in replica_calculator.go is
// its first step.
func (h *hpa) sync(second, current, least int, metric int64) int {
	desired := current
	if ratio := float64(metric) / (float64(h.target) * float64(current)); ratio < 1-hpaTolerance || ratio > 1+hpaTolerance {
		desired = int(math.Ceil(float64(metric) / float64(h.target)))
	}
	// The highest of the window counts, also where it is above the current replicas.
	kept := h.recommendations[:0]
	for _, r := range h.recommendations {
		if h.window > 0 && r.second >= second-h.window {
			kept = append(kept, r)
		}
	}
	h.recommendations = append(kept, recommendation{second, desired})
	for _, r := range h.recommendations {
		desired = max(desired, r.replicas)
	}
	if h.atOnce {
		return max(least, min(desired, h.most))
	}
	// Twice as many at most, or 4 (scaleUpLimitFactor, scaleUpLimitMinimum).
	return max(least, min(desired, max(2*current, 4), h.most))
}
