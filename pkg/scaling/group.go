package scaling

import (
	"fmt"
	"time"
)

// GroupPolicy says how a group is to be scaled: processors that run in one deployment.
type GroupPolicy struct {
	MinReplicas int  // minReplicaCount, at least 0
	MaxReplicas *int // maxReplicaCount, at least 1 and MinReplicas; nil = what its members ask for
}

// Member is what a group needs of the decision of one of its processors.
type Member struct {
	Processor string // its name
	Replicas  *int   // of its last decision; nil where there never was one
	Active    bool   // of that decision
	Held      bool   // that decision is not of now: nothing could be decided, or it was not polled for too long
	Paused    bool   // that decision is of before the pause
}

// Group is step 11 of docs/decide.md: a group gets the highest count that any of its members asks
// for, as KEDA does over the triggers of a ScaledObject; a member that is unknown, stale or paused
// holds its last decision; then the group's own bounds hold. The windows of the members have held
// what there is to hold, so that a group needs none.
//
// A member that never had a decision, and is not paused, may ask for any number: until it has one, the group does not go
// below its own last decision, and decides nothing where no other member asks for a replica.
//
// Of the Memory only Replicas, Active and MetricValue are used. A group has no threshold: its
// metricValue is the number of replicas, for a scaler whose target is 1. The Decision is nil where
// nothing can be decided.
func Group(now time.Time, members []Member, policy GroupPolicy, memory Memory) (*Decision, Memory) {
	replicas, active, undecided, top := 0, false, 0, -1
	for i, m := range members {
		if m.Replicas == nil {
			if !m.Paused {
				undecided++
			}
			continue
		}
		active = active || m.Active
		if top < 0 || *m.Replicas > replicas {
			replicas, top = *m.Replicas, i
		}
	}
	var reasons []Reason
	because := func(step, why string, args ...any) {
		reasons = append(reasons, Reason{Step: step, Replicas: replicas, Why: fmt.Sprintf(why, args...)})
	}
	switch {
	case top < 0, undecided > 0 && memory.Replicas == nil && replicas == 0:
		return nil, memory
	case members[top].Held || members[top].Paused:
		because("group", "%s holds its last decision, the highest of %d members", members[top].Processor, len(members))
	default:
		because("group", "%s asks for the most of %d members", members[top].Processor, len(members))
	}
	if last := memory.Replicas; undecided > 0 && last != nil {
		active = active || memory.Active
		if replicas < *last {
			replicas = *last
			because("incomplete", "%d of %d members are unknown: no scale-in from %d", undecided, len(members), *last)
		}
	}
	if limit := policy.MaxReplicas; limit != nil && replicas > *limit {
		replicas = *limit
		because("clamp", "maxReplicaCount of the group is %d", *limit)
	}
	if replicas < policy.MinReplicas {
		replicas = policy.MinReplicas
		because("clamp", "minReplicaCount of the group is %d", policy.MinReplicas)
	}
	d := &Decision{Time: now, Replicas: replicas, Previous: memory.Replicas, Direction: None, Active: active, MetricValue: int64(replicas), Reasons: reasons}
	current := 0
	if d.Previous != nil {
		current = *d.Previous
	}
	switch {
	case replicas > current:
		d.Direction = Out
	case replicas < current:
		d.Direction = In
	}
	memory.Replicas, memory.Active, memory.MetricValue = &replicas, active, d.MetricValue
	return d, memory
}
