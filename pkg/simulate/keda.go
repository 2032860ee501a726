package simulate

import "math"

// The defaults of KEDA 2.21's azure-cosmosdb scaler and ScaledObject
// (https://keda.sh/docs/2.21/scalers/azure-cosmos-db/,
// https://keda.sh/docs/2.21/reference/scaledobject-spec/) and of the HPA controller
// (https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/).
const (
	kedaThreshold           = 100 // changeFeedLagThreshold, in transactions
	kedaActivation          = 0   // activationChangeFeedLagThreshold, in transactions
	kedaPollingSeconds      = 30  // pollingInterval
	kedaCooldownSeconds     = 300 // cooldownPeriod
	kedaMaxReplicas         = 100 // maxReplicaCount
	hpaSyncSeconds          = 15  // --horizontal-pod-autoscaler-sync-period
	hpaTolerance            = 0.1 // --horizontal-pod-autoscaler-tolerance, as a fraction
	hpaStabilizationSeconds = 300 // --horizontal-pod-autoscaler-downscale-stabilization
)

type keda struct{}

// KEDA returns the Scaler that models KEDA 2.21 with its azure-cosmosdb scaler and the HPA that it
// makes, every setting at its default. KEDA itself makes the steps between zero and one, the HPA
// all others.
func KEDA() Scaler { return keda{} }

func (keda) Name() string { return "keda" }

func (keda) begin() func(second, row int, f *fleet) int {
	var h hpa
	lastActive := 0
	return func(second, row int, f *fleet) int {
		replicas := f.desired
		// The HPA first: it sees a replica that KEDA adds at its next sync.
		if second%hpaSyncSeconds == 0 && replicas > 0 {
			replicas = h.sync(second, replicas, kedaMetric(f))
		}
		if second%kedaPollingSeconds != 0 {
			return replicas
		}
		lag, _ := f.behind(row)
		if lag > kedaActivation {
			lastActive = second
			return max(1, replicas)
		}
		// KEDA compares with the clock a little after the poll, so that the cooldown is over at a
		// poll exactly that long after the last active one.
		if second-lastActive >= kedaCooldownSeconds {
			return 0
		}
		return replicas
	}
}

// kedaMetric returns the metric of KEDA's scaler: the lag, at most one threshold per partition with
// lag.
func kedaMetric(f *fleet) int64 {
	var lag, limit int64
	for p := range f.arrived {
		if n := f.pending(p); n > 0 {
			lag += n
			limit += kedaThreshold
		}
	}
	return min(lag, limit)
}

// hpa models the HPA controller for an external metric with an AverageValue and without `behavior`,
// which KEDA omits unless it is set. For that case the controller has rules that differ from the
// documented defaults of behavior (kubernetes, pkg/controller/podautoscaler/horizontal.go,
// stabilizeRecommendation and convertDesiredReplicasWithRules).
type hpa struct {
	recommendations []recommendation
}

type recommendation struct{ second, replicas int }

// sync is one round of the controller. It returns the replicas that it asks for.
func (h *hpa) sync(second, current int, metric int64) int {
	desired := current
	if ratio := float64(metric) / (kedaThreshold * float64(current)); ratio < 1-hpaTolerance || ratio > 1+hpaTolerance {
		desired = int(math.Ceil(float64(metric) / kedaThreshold))
	}
	// The highest recommendation of the window counts, even where it is above the current replicas.
	h.recommendations = append(h.recommendations, recommendation{second, desired})
	for h.recommendations[0].second < second-hpaStabilizationSeconds {
		h.recommendations = h.recommendations[1:]
	}
	for _, r := range h.recommendations {
		desired = max(desired, r.replicas)
	}
	return max(1, min(desired, max(2*current, 4), kedaMaxReplicas))
}
