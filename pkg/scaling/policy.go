package scaling

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/feedscale/feedscale/pkg/health"
)

// Policy says how to scale one processor. Its fields are those of the processors file
// (docs/configure.md), in the words of KEDA and of the HPA. Package config validates them; Decide
// relies on the ranges given here.
type Policy struct {
	Threshold  int64 // changeFeedLagThreshold: transactions of lag per replica, at least 1
	Activation int64 // activationChangeFeedLagThreshold: the processor is active above this lag; at least 0, below Threshold
	// limitToPartitionsWithLag: only partitions with lag count for the cap of steps 1 and 5
	LimitToPartitionsWithLag bool
	EvenPartitions           bool          // only counts that divide the number of partitions
	MaxLeasesPerReplica      int           // leases per replica at most, while changes are pending; 0 = no limit
	ExcludeStalled           bool          // partitions that were reported as stalled ask for no replica beyond their owner
	MaxChangeAge             time.Duration // greatest age of the oldest pending change, for step 4; 0 = no limit
	Sizing                   Sizing        // which count step 3 returns; "" = SizingThreshold
	// time to drain a backlog, for step 3; 0 = SizingAuto keeps up with what arrives, and SizingThreshold skips step 3
	CatchUpWithin time.Duration
	MinReplicas   int           // minReplicaCount, at least 0
	MaxReplicas   *int          // maxReplicaCount, at least 1 and MinReplicas; nil = the number of partitions
	Cooldown      time.Duration // cooldownPeriod: time from the last active poll to the step to zero
	Health        health.Policy // the policy that assessed the Lag of an Input
	Behavior      Behavior
	Fallback      Fallback
	Schedules     []Schedule
	Paused        bool // decisions are shown, and not published
}

// Sizing says what the replicas are computed from.
type Sizing string

// The sizings, as configured.
const (
	SizingAuto      Sizing = "auto"      // measured rates; the threshold until they are known
	SizingThreshold Sizing = "threshold" // the threshold, which catchUpWithin may raise
)

// Behavior limits how fast replicas change in each direction, as the HPA's field of that name does
// (https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#configurable-scaling-behavior).
type Behavior struct {
	ScaleUp   Rules
	ScaleDown Rules
}

// Rules are the limits of one direction.
type Rules struct {
	StabilizationWindow time.Duration // 0..3600 s; the most cautious recommendation in it counts
	SelectPolicy        SelectPolicy  // "" = Max
	Policies            []RatePolicy  // empty = no limit
	Tolerance           float64       // fraction of the target by which the metric may differ without a change; at least 0
}

// SelectPolicy says which of several rate policies applies.
type SelectPolicy string

// The HPA's values of selectPolicy.
const (
	SelectMax      SelectPolicy = "Max"      // the policy that allows the biggest change
	SelectMin      SelectPolicy = "Min"      // the policy that allows the smallest change
	SelectDisabled SelectPolicy = "Disabled" // no change in this direction
)

// RatePolicy allows a change of Value (pods or percent) in Period.
type RatePolicy struct {
	Type   RateType
	Value  int           // above 0
	Period time.Duration // 1..1800 s
}

// RateType is the unit of a rate policy.
type RateType string

// The HPA's policy types.
const (
	RatePods    RateType = "Pods"
	RatePercent RateType = "Percent"
)

// Fallback says what step 8 of docs/decide.md decides if no partition could be measured.
type Fallback struct {
	FailureThreshold int // failed polls in a row before the fallback; 0 = the first failure falls back
	Behavior         FallbackBehavior
	Replicas         int // ignored by max and currentReplicas
}

// FallbackBehavior names a fallback.
type FallbackBehavior string

// KEDA's fallback behaviors (https://keda.sh/docs/latest/reference/scaledobject-spec/#fallback),
// and FallbackMax, which KEDA does not have.
const (
	FallbackMax             FallbackBehavior = "max"                     // as if every partition had a lag of one threshold
	FallbackStatic          FallbackBehavior = "static"                  // Replicas
	FallbackCurrent         FallbackBehavior = "currentReplicas"         // the last decision
	FallbackCurrentIfHigher FallbackBehavior = "currentReplicasIfHigher" // the greater of the last decision and Replicas
	FallbackCurrentIfLower  FallbackBehavior = "currentReplicasIfLower"  // the smaller of the last decision and Replicas
)

// Schedule is a minimum in a time window, as in KEDA's cron trigger: at least DesiredReplicas while
// the next End comes before the next Start.
type Schedule struct {
	Location        *time.Location
	Start, End      cron.Schedule
	DesiredReplicas int
}
