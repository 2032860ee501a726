package scaling

import "time"

// GroupPolicy says how to scale a group: processors that run in one deployment.
type GroupPolicy struct {
	MinReplicas int  // minReplicaCount, at least 0
	MaxReplicas *int // maxReplicaCount, at least 1 and MinReplicas; nil = no limit beyond that of the members
}

// Member is what a group uses of a processor's decision.
type Member struct {
	Processor string // its name
	Replicas  *int   // of its last decision; nil if there never was one
	Active    bool   // of that decision
	Held      bool   // the decision is old: nothing could be decided now, or the last poll is too long ago
	Paused    bool   // the decision was made before the pause
}

// Group is step 11 of docs/decide.md. A group gets the highest count that any member asks for, as
// KEDA takes the highest of a ScaledObject's triggers. A member that is unknown, stale or paused
// repeats its last decision. Then the group's own bounds apply. A group has no windows: those of
// its members have already acted.
//
// A member that was never decided, and is not paused, may need any number. Until it is decided, the
// group does not go below its own last decision. If no other member asks for a replica, nothing is
// decided: the Decision is nil.
//
// Of the Memory, only Replicas, Active and MetricValue are used. A group has no threshold: its
// metricValue is the number of replicas, for a scaler whose target is 1.
func Group(now time.Time, members []Member, policy GroupPolicy, memory Memory) (*Decision, Memory) {
	var c count
	undecided, top := 0, -1
	for i, m := range members {
		if m.Replicas == nil {
			if !m.Paused {
				undecided++
			}
			continue
		}
		c.active = c.active || m.Active
		if top < 0 || *m.Replicas > c.replicas {
			c.replicas, top = *m.Replicas, i
		}
	}
	switch {
	case top < 0, undecided > 0 && memory.Replicas == nil && c.replicas == 0:
		return nil, memory
	case members[top].Held || members[top].Paused:
		c = c.because("group", "%s holds its last decision, the highest of %d members", members[top].Processor, len(members))
	default:
		c = c.because("group", "%s asks for the most of %d members", members[top].Processor, len(members))
	}
	if last := memory.Replicas; undecided > 0 && last != nil {
		c.active = c.active || memory.Active
		if c.replicas < *last {
			c.replicas = *last
			c = c.because("incomplete", "%d of %d members are unknown: no scale-in from %d", undecided, len(members), *last)
		}
	}
	c = c.bound(" of the group", policy.MinReplicas, policy.MaxReplicas, c.replicas)
	c.metric = int64(c.replicas)
	d := memory.conclude(now, c)
	memory.Replicas, memory.Active, memory.MetricValue = &c.replicas, c.active, c.metric
	return d, memory
}
