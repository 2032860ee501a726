package scaling

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Input is everything that a decision depends on.
type Input struct {
	Now    time.Time
	Lag    changefeed.ProcessorLag // with the statuses that package health set
	Policy Policy
	Memory Memory // from the Outcome of the last decision; zero for the first
	Limit  *Limit // the container of the processor that is at its limit of throughput; nil = none
}

// Outcome is a decision, and the memory for the next one.
type Outcome struct {
	Decision *Decision // nil if nothing can be decided: steps 7 and 8 say when
	Memory   Memory
}

// Decide takes the steps of docs/decide.md in order. It is deterministic and does not change its
// Input.
func Decide(in Input) Outcome {
	next := in.Memory
	m := in.measure()
	if m.known || next.Partitions > 0 {
		next.Partitions = m.partitions
	}
	var c count
	switch {
	case m.known:
		next.Failures = 0
		c = in.threshold(m)
		sized := in.size(m, c)
		next.Arrival, next.DrainPerReplica, next.Sizing = sized.Arrival, sized.Capacity, sized.Memory
		c = in.sizing(c, sized)
		c = in.maxChangeAge(m, c)
		c = in.maxLeasesPerReplica(m, c)
		c = in.evenPartitions(m, c)
		c = in.hotPartition(m, c)
		c = in.throughput(m, c)
		c = in.schedules(m, c)
		c = in.incomplete(m, c)
	case in.Lag.Ahead():
		next.Failures = 0
		c = in.Memory.hold("ahead", "every position is ahead of the feed: no replica can help, and the last decision holds")
		c = in.schedules(m, c)
	default:
		next.Failures++
		c = in.failure(m, next.Failures)
		c = in.schedules(m, c)
	}
	if c.basis == nothing {
		return Outcome{Memory: next}
	}
	asked := c.replicas
	current, _ := in.Memory.current()
	tolerated := in.tolerate(c, max(1, current), max(1, c.replicas))
	next.Recommendations = in.recommendations(c, tolerated)
	c = in.behavior(c, tolerated, next.Recommendations)
	if c.active {
		next.LastActive = in.Now
	}
	c = in.cooldown(c)
	c = in.clamp(m, c, asked)
	if in.Policy.Paused { // step 12: the decision is shown, and neither published nor remembered
		c = c.because("paused", "shown only: nothing is published while the processor is paused")
	} else {
		next.Replicas, next.Active, next.MetricValue = &c.replicas, c.active, c.metric
		switch {
		case c.replicas == 0:
			next.Asked = time.Time{}
		case current == 0:
			next.Asked = in.Now
		}
		next.Changes = in.changes(c.replicas)
	}
	return Outcome{Decision: in.Memory.conclude(in.Now, c), Memory: next}
}

// count is the result of the steps so far. A step takes one and returns the next.
type count struct {
	replicas int
	usage    usage // the metric that replicas were computed from, for the tolerance of step 9
	metric   int64 // metricValue: the capped lag, in transactions
	active   bool  // whether the processor has work
	basis    basis
	reasons  []Reason // of the steps so far
}

// basis says how much of the measurement a count rests on.
type basis int

const (
	measured basis = iota // enough is known to scale in
	recent                // old readings replace unknown partitions: no step to zero
	partial               // too much is unknown to scale in
	held                  // too much is unknown: the last decision is repeated
	fallen                // nothing is known: the fallback of step 8
	nothing               // nothing is known, and there is nothing to fall back to
)

// refusesScaleIn reports whether the count may not go below the last decision.
func (b basis) refusesScaleIn() bool { return b == partial || b == held }

// usage is a metric and its target per replica; for a plain count, the count and 1. They are kept
// apart because the HPA rounds their ratio at the current replicas only once.
type usage struct{ metric, target float64 }

// raise sets the replicas to n, rounded up, if that is more. It reports whether it did. Counts
// beyond 32 bits become the greatest of 32 bits.
func (c *count) raise(n float64) bool { return c.raiseFor(usage{n, 1}) }

// raiseFor is raise for a metric and its target.
func (c *count) raiseFor(u usage) bool {
	wanted := int(min(math.Ceil(u.metric/u.target), math.MaxInt32))
	if wanted <= c.replicas {
		return false
	}
	c.replicas, c.usage = wanted, u
	return true
}

// because adds a step's reason, with the replicas after it.
func (c count) because(step, why string, args ...any) count {
	c.reasons = append(c.reasons, Reason{Step: step, Replicas: c.replicas, Why: fmt.Sprintf(why, args...)})
	return c
}

// current returns the last decision, and whether there was one.
func (m Memory) current() (int, bool) {
	if m.Replicas == nil {
		return 0, false
	}
	return *m.Replicas, true
}

// clamp is step 10 of docs/decide.md. It first caps the count at the number of partitions, but not
// below the last decision while steps 7 and 8 refuse a scale-in. Then it applies minReplicaCount
// and maxReplicaCount, which always hold. asked is the count after steps 1 to 8.
func (in Input) clamp(m measurement, c count, asked int) count {
	useful := m.partitions
	if current, _ := in.Memory.current(); c.basis.refusesScaleIn() {
		useful = max(useful, current)
	}
	if m.partitions > 0 && c.replicas > useful {
		c.replicas = useful
		c = c.because("clamp", "more replicas than %d partitions have nothing to do", m.partitions)
	}
	return c.bound("", in.Policy.MinReplicas, in.Policy.MaxReplicas, asked)
}

// bound applies minReplicaCount and maxReplicaCount. asked is the count of earlier steps: the reason names the
// minimum if it is more.
func (c count) bound(of string, least int, most *int, asked int) count {
	if most != nil && c.replicas > *most {
		c.replicas = *most
		c = c.because("clamp", "maxReplicaCount%s is %d", of, *most)
	}
	if c.replicas < least || c.replicas == least && asked < least {
		c.replicas = least
		c = c.because("clamp", "minReplicaCount%s is %d", of, least)
	}
	return c
}

// conclude makes the Decision that follows the remembered one.
func (m Memory) conclude(now time.Time, c count) *Decision {
	current, _ := m.current()
	return &Decision{
		Time: now, Replicas: c.replicas, Previous: m.Replicas, Direction: []Direction{In, None, Out}[1+cmp.Compare(c.replicas, current)],
		Active: c.active, MetricValue: c.metric, Reasons: c.reasons,
	}
}
