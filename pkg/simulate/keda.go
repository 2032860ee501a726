package simulate

import "math"

// The defaults of KEDA 2.21's azure-cosmosdb scaler, of its ScaledObject, and
// of the HPA controller, in transactions, replicas and seconds.
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

// KEDA is KEDA 2.21 with its azure-cosmosdb scaler and the HPA that it makes,
// every setting at its default: KEDA itself takes the steps between zero and one,
// the HPA all others.
func KEDA() Scaler { return keda{} }

func (keda) Name() string { return "keda" }

func (keda) begin() func(second, row int, f *fleet) int {
	var h hpa
	lastActive := 0
	return func(second, row int, f *fleet) int {
		replicas := f.desired
		// The HPA first: it meets a replica that KEDA makes at its next sync.
		if second%hpaSync == 0 && replicas > 0 {
			replicas = h.sync(second, replicas, kedaMetric(f))
		}
		if second%kedaPolling != 0 {
			return replicas
		}
		lag, _ := f.behind(row)
		if lag > kedaActivation {
			lastActive = second
			return max(1, replicas)
		}
		// KEDA compares clocks that have gone on a little since the poll, so
		// that the poll after exactly the cooldown is past it.
		if second-lastActive >= kedaCooldown {
			return 0
		}
		return replicas
	}
}

// kedaMetric is the lag, up to a threshold for each partition that has one.
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

// hpa is the HPA controller for an external metric with an AverageValue and
// without `behavior`, which KEDA leaves out unless it is set. The controller has
// rules of its own for that case: they are not quite the documented defaults of
// behavior.
type hpa struct {
	recommendations []recommendation
}

type recommendation struct{ second, replicas int }

// sync is one round of the controller.
func (h *hpa) sync(second, current int, metric int64) int {
	desired := current
	if ratio := float64(metric) / (kedaThreshold * float64(current)); ratio < 1-hpaTolerance || ratio > 1+hpaTolerance {
		desired = int(math.Ceil(float64(metric) / kedaThreshold))
	}
	// The highest of the window counts, also where it is above the current
	// replicas.
	h.recommendations = append(h.recommendations, recommendation{second, desired})
	for h.recommendations[0].second < second-hpaStabilization {
		h.recommendations = h.recommendations[1:]
	}
	for _, r := range h.recommendations {
		desired = max(desired, r.replicas)
	}
	return max(1, min(desired, max(2*current, 4), kedaMaxReplicas))
}
