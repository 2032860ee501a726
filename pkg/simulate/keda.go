package simulate

import (
	"math"
	"slices"
)

// The defaults of KEDA 2.21's azure-cosmosdb scaler (pkg/scalers/azure_cosmosdb_scaler.go in
// kedacore/keda), of its ScaledObject, and of the HPA controller (kube-controller-manager), in
// transactions, replicas and seconds.
const (
	kedaThreshold    = 100 // changeFeedLagThreshold
	kedaPolling      = 30  // pollingInterval
	kedaCooldown     = 300 // cooldownPeriod
	kedaMaxReplicas  = 100 // maxReplicaCount
	hpaSync          = 15  // --horizontal-pod-autoscaler-sync-period
	hpaTolerance     = 0.1 // --horizontal-pod-autoscaler-tolerance
	hpaStabilization = 300 // --horizontal-pod-autoscaler-downscale-stabilization
)

type keda struct{}

// KEDA is KEDA 2.21 with its azure-cosmosdb scaler and the HPA that it makes, every setting at its
// default.
func KEDA() Scaler { return keda{} }

// Name is that of the built-in policy.
func (keda) Name() string { return "keda" }

// Begin has KEDA read its own trigger.
func (keda) Begin(r *Replay) func(second int) int {
	k := NewScaledObject(r)
	k.Target = kedaThreshold
	return func(second int) int { return k.Step(second, false, r.fleet.kedaTrigger) }
}

// kedaTrigger is what the azure-cosmosdb scaler makes of the lag (GetMetricsAndActivity): capped to
// a threshold for each partition that has one.
func (f *fleet) kedaTrigger() (metric int64, active, ok bool) {
	limit := int64(0)
	for p := range f.leases {
		if f.leases[p].pending() > 0 {
			limit += kedaThreshold
		}
	}
	return min(f.pending, limit), f.pending > 0, true // activationChangeFeedLagThreshold is 0
}

// ScaledObject is KEDA's loop over a trigger, and the HPA that KEDA makes for it. KEDA takes the
// steps between zero and one (pkg/scaling/executor/scale_scaledobjects.go), the HPA all others.
// Times are in seconds.
type ScaledObject struct {
	Target   int64 // of the metric for each replica (AverageValue)
	Min, Max int   // minReplicaCount, maxReplicaCount
	Polling  int   // pollingInterval
	Cooldown int   // cooldownPeriod
	Window   int   // stabilizationWindowSeconds of scaleDown
	AtOnce   bool  // whether the policies of scaleUp allow any step

	polls, syncs    int // second of KEDA's first poll, and of the HPA controller's first round
	replicas        int
	lastActive      int // second of the last read that was active
	recommendations []recommendation
}

type recommendation struct{ second, replicas int }

// NewScaledObject has KEDA's defaults, but no Target.
func NewScaledObject(r *Replay) *ScaledObject {
	return &ScaledObject{
		Max: kedaMaxReplicas, Polling: kedaPolling, Cooldown: kedaCooldown, Window: hpaStabilization,
		polls: r.Phase(kedaPolling), syncs: r.Phase(hpaSync),
	}
}

// Step is one second, and returns the replicas. read asks the trigger, as both KEDA and, through
// KEDA's metrics server, the HPA do; ok is false if it fails. pushed says that the trigger tells of
// its activity by itself, upon which KEDA acts as at a poll (startPushScalers in
// pkg/scaling/scale_handler.go).
func (k *ScaledObject) Step(second int, pushed bool, read func() (metric int64, active, ok bool)) int {
	// The HPA first: it meets a replica that KEDA makes at its next round. At zero it does nothing.
	if second%hpaSync == k.syncs && k.replicas > 0 {
		if metric, _, ok := read(); ok {
			k.replicas = k.sync(second, metric)
		}
	}
	if second%k.Polling != k.polls%k.Polling && !pushed {
		return k.replicas
	}
	switch _, active, ok := read(); {
	case !ok: // an error, and no fallback: nothing changes
	case active:
		k.lastActive = second
		if k.replicas == 0 {
			k.replicas = max(1, k.Min)
		}
	case k.replicas < k.Min:
		k.replicas = k.Min
	case k.Min == 0 && second-k.lastActive >= k.Cooldown: // KEDA's clock has gone on since the poll
		k.replicas = 0
	}
	return k.replicas
}

// sync is one round of the HPA controller for an external metric with an AverageValue and without
// `behavior`, which KEDA leaves out unless it is set (controllers/keda/hpa.go). These are not quite the
// documented defaults of behavior: see GetExternalPerPodMetricReplicas in replica_calculator.go, and
// normalizeDesiredReplicas and stabilizeRecommendation in pkg/controller/podautoscaler/horizontal.go of
// kubernetes/kubernetes.
func (k *ScaledObject) sync(second int, metric int64) int {
	desired, most := k.replicas, k.Max
	ratio := float64(metric) / (float64(k.Target) * float64(k.replicas))
	if ratio < 1-hpaTolerance || ratio > 1+hpaTolerance {
		desired = int(math.Ceil(float64(metric) / float64(k.Target)))
	}
	// The highest of the window counts, also if it is above the current replicas.
	old := func(r recommendation) bool { return r.second < second-k.Window }
	k.recommendations = append(slices.DeleteFunc(k.recommendations, old), recommendation{second, desired})
	for _, r := range k.recommendations {
		desired = max(desired, r.replicas)
	}
	if !k.AtOnce {
		most = min(most, max(2*k.replicas, 4)) // scaleUpLimitFactor, scaleUpLimitMinimum
	}
	return max(1, k.Min, min(desired, most))
}
