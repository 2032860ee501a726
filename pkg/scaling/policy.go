package scaling

import "time"

// Policy is how one processor is to be scaled. Its fields are those of the
// processors file (DESIGN 5), in KEDA's and HPA's words; config validates them.
type Policy struct {
	Threshold                int64         // changeFeedLagThreshold: lag one replica is to carry, at least 1
	Activation               int64         // activationChangeFeedLagThreshold: lag above which the processor is active, 0 <= Activation < Threshold
	LimitToPartitionsWithLag bool          // cap the metric, and what rates and age ask for, by partitions with lag instead of by all partitions
	EvenPartitions           bool          // only counts at which every replica owns the same number of partitions
	ExcludeStalled           bool          // stalled partitions ask for no replicas, once they were reported
	MaxChangeAge             time.Duration // oldest pending change tolerated; 0 = no limit
	CatchUpWithin            time.Duration // time in which the lag is to drain; 0 = not sized for
	MinReplicas              int           // minReplicaCount, at least 0
	MaxReplicas              *int          // maxReplicaCount, at least 1 and MinReplicas; nil = the number of partitions
	Cooldown                 time.Duration // cooldownPeriod since the last active poll before zero
	StalledAfter             time.Duration // no checkpoint progress for this long while pending and owned: stalled,
	StalledPolls             int           // where at least so many polls in a row saw it; the first that could is the second
	LeaseExpiration          time.Duration // an owner whose lease is older is not live
	Behavior                 Behavior
	Fallback                 Fallback
	Schedules                []Schedule
	Paused                   bool // measured and shown, never published
}

// Behavior limits how fast replicas change in each direction, as the HPA's
// field of the same name.
type Behavior struct {
	ScaleUp   Rules
	ScaleDown Rules
}

// Rules are the limits of one direction.
type Rules struct {
	StabilizationWindow time.Duration // 0..3600 s; recommendations inside it are all honoured
	SelectPolicy        SelectPolicy  // "" = Max
	Policies            []RatePolicy  // none = no limit
	Tolerance           float64       // fraction of the metric's target within which nothing changes, at least 0
}

// SelectPolicy says which of several rate policies counts.
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

// Fallback is what is decided when no partition could be measured.
type Fallback struct {
	FailureThreshold int // polls in a row that fail before the fallback counts, at least 1
	Behavior         FallbackBehavior
	Replicas         int // for every behavior but max and currentReplicas
}

// FallbackBehavior names a fallback.
type FallbackBehavior string

// KEDA's fallback behaviors, and FallbackMax, which is feedscale's own.
const (
	FallbackMax             FallbackBehavior = "max"                     // as if every partition lagged by a whole threshold
	FallbackStatic          FallbackBehavior = "static"                  // Replicas
	FallbackCurrent         FallbackBehavior = "currentReplicas"         // what was decided last
	FallbackCurrentIfHigher FallbackBehavior = "currentReplicasIfHigher" // what was decided last, at least Replicas
	FallbackCurrentIfLower  FallbackBehavior = "currentReplicasIfLower"  // what was decided last, at most Replicas
)

// Schedule is a floor in a time window, as KEDA's cron trigger: at least
// DesiredReplicas while its next End comes before its next Start.
type Schedule struct {
	Location        *time.Location
	Start, End      Cron
	DesiredReplicas int
}

// Cron tells when a schedule fires next: strictly after t, in t's location.
// *cron.SpecSchedule of robfig/cron/v3 is one.
type Cron interface {
	Next(t time.Time) time.Time
}
