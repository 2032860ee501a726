package scaling

import (
	"time"

	"github.com/feedscale/feedscale/pkg/health"
)

// Policy says how one processor is to be scaled. Its fields are those of the processors file
// (docs/configure.md), which use the words of KEDA and of the HPA. Package config validates them;
// Decide assumes the ranges given here.
type Policy struct {
	Threshold                int64         // changeFeedLagThreshold: transactions of lag per replica, at least 1
	Activation               int64         // activationChangeFeedLagThreshold: the processor is active where the lag is above; 0 <= Activation < Threshold
	LimitToPartitionsWithLag bool          // cap the metric, and what steps 3 to 5 ask for, by the partitions with lag instead of by all
	EvenPartitions           bool          // use only replica counts that divide the number of partitions
	MaxLeasesPerReplica      int           // no fewer replicas than the leases need at so many each, while changes are pending; 0 = no such limit
	ExcludeStalled           bool          // partitions that were reported as stalled ask for no replica but the one that owns them
	MaxChangeAge             time.Duration // greatest age of the oldest pending change, see step 4; 0 = no limit
	Sizing                   Sizing        // how step 3 takes part; "" = SizingThreshold
	CatchUpWithin            time.Duration // time in which a backlog is to be gone, see step 3; 0 = the rates only hold what arrives, and with SizingThreshold take no part
	MinReplicas              int           // minReplicaCount, at least 0
	MaxReplicas              *int          // maxReplicaCount, at least 1 and MinReplicas; nil = the number of partitions
	Cooldown                 time.Duration // cooldownPeriod: time from the last active poll to the step to zero
	Health                   health.Policy // by which the Lag of an Input was assessed
	Behavior                 Behavior
	Fallback                 Fallback
	Schedules                []Schedule
	Paused                   bool // the processor is measured and shown; its decisions are not published
}

// Sizing says what replicas are computed from.
type Sizing string

// The sizings, as configured.
const (
	SizingAuto      Sizing = "auto"      // what was measured, and the threshold until enough was
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
	StabilizationWindow time.Duration // 0..3600 s; within it the most cautious recommendation counts
	SelectPolicy        SelectPolicy  // "" = Max
	Policies            []RatePolicy  // empty = no limit
	Tolerance           float64       // deviation from the metric's target, as a fraction of it, up to which nothing changes; at least 0
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

// Fallback says what is decided where no partition could be measured: step 8 of docs/decide.md.
type Fallback struct {
	FailureThreshold int // polls in a row that may fail: the fallback counts with one more; 0 = none
	Behavior         FallbackBehavior
	Replicas         int // ignored by max and currentReplicas
}

// FallbackBehavior names a fallback.
type FallbackBehavior string

// KEDA's fallback behaviors (https://keda.sh/docs/latest/reference/scaledobject-spec/#fallback),
// and FallbackMax, which is feedscale's own.
const (
	FallbackMax             FallbackBehavior = "max"                     // as if every partition lagged by a whole threshold
	FallbackStatic          FallbackBehavior = "static"                  // Replicas
	FallbackCurrent         FallbackBehavior = "currentReplicas"         // the last decision
	FallbackCurrentIfHigher FallbackBehavior = "currentReplicasIfHigher" // the greater of the last decision and Replicas
	FallbackCurrentIfLower  FallbackBehavior = "currentReplicasIfLower"  // the smaller of the last decision and Replicas
)

// Schedule is a floor in a time window, as KEDA's cron trigger has it: at least DesiredReplicas
// while the next End comes before the next Start.
type Schedule struct {
	Location        *time.Location
	Start, End      Cron
	DesiredReplicas int
}

// Cron returns the next time at which a cron expression fires, strictly after t and in t's
// location. *cron.SpecSchedule of robfig/cron/v3 is one.
type Cron interface {
	Next(t time.Time) time.Time
}
