package scaling

import (
	"fmt"
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Input is everything that a decision depends on.
type Input struct {
	Now    time.Time
	Lag    changefeed.ProcessorLag // as package health assessed it
	Policy Policy
	Memory Memory // from the Outcome of the last decision; zero for the first
	Limit  *Limit // a container of the processor that is at its limit of throughput; nil = none is
}

// Outcome is a decision, and what the next one needs.
type Outcome struct {
	Decision *Decision // nil if nothing can be decided: steps 7 and 8 say when
	Memory   Memory
}

// Decide takes the steps of docs/decide.md in their order. The same Input always gives the same
// Outcome. The Input is not changed.
func Decide(in Input) Outcome {
	next := in.Memory
	m := in.measure()
	next.Partitions = m.remembered
	var c count
	var t trail
	switch {
	case m.known:
		next.Failures = 0
		c = t.take(in.threshold(m))
		sized := in.size(m, c)
		next.Arrival, next.DrainPerReplica, next.Sizing = sized.Arrival, sized.Capacity, sized.Memory
		c = t.take(in.sizing(c, sized))
		c = t.take(in.maxChangeAge(m, c))
		c = t.take(in.maxLeasesPerReplica(m, c))
		c = t.take(in.evenPartitions(m, c))
		c = t.take(in.hotPartition(m, c))
		c = t.take(in.throughput(m, c))
		c = t.take(in.schedules(m, c))
		c = t.take(in.incomplete(m, c))
	case in.Lag.Ahead():
		next.Failures = 0
		c = t.take(in.Memory.hold("ahead", "every position is ahead of the feed: no replica can help, and the last decision holds"))
		c = t.take(in.schedules(m, c))
	default:
		next.Failures++
		c = t.take(in.failure(m, next.Failures))
		c = t.take(in.schedules(m, c))
	}
	if c.basis == nothing {
		return Outcome{Memory: next}
	}
	asked := c.replicas
	current, _ := in.current()
	tolerated := in.tolerate(c, max(1, current), max(1, c.replicas))
	next.Recommendations = in.recommendations(c, tolerated)
	c = t.take(in.behavior(c, tolerated, next.Recommendations))
	if c.active {
		next.LastActive = in.Now
	}
	c = t.take(in.cooldown(c))
	c = t.take(in.clamp(m, c, asked))
	c = t.take(in.paused(c))
	if !in.Policy.Paused {
		next.Replicas, next.Active, next.MetricValue = &c.replicas, c.active, c.metric
		next.Asked = in.asked(c.replicas)
		next.Changes = in.changes(c.replicas)
	}
	return Outcome{Decision: in.conclude(c, t), Memory: next}
}

// count is what the steps so far ask for. A step takes one and returns the next.
type count struct {
	replicas int
	usage    usage // the metric behind replicas, for the tolerance of step 9
	metric   int64 // metricValue: the lag, capped, in transactions
	active   bool  // whether the processor is to have replicas at all
	basis    basis
}

// basis is what a count rests on.
type basis int

const (
	measured basis = iota // enough is known to scale in
	recent                // earlier readings stand in for some partitions: no step to zero
	partial               // too much is unknown to scale in
	held                  // too much is unknown: the last decision
	fallen                // nothing is known: a fallback
	nothing               // nothing is known, and nothing can be decided
)

// refusesScaleIn reports whether the count may not go below that of the last decision.
func (b basis) refusesScaleIn() bool { return b == partial || b == held }

// usage is a metric and its target for one replica, or a number of replicas and 1. The two are kept
// apart so that their ratio at the current replicas is rounded once, as the HPA rounds it.
type usage struct{ metric, target float64 }

// raise raises the replicas to n, rounded up, and reports whether that changed them. A number that
// exceeds 32 bits counts as the greatest that does not.
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

// trail is the reasons of the steps so far.
type trail []Reason

// take records why a step returns its count; a reason without replicas gets those of the count.
func (t *trail) take(c count, why []Reason) count {
	for _, r := range why {
		if r.Replicas == 0 {
			r.Replicas = c.replicas
		}
		*t = append(*t, r)
	}
	return c
}

// because is the reason of a step.
func because(step, why string, args ...any) []Reason {
	return []Reason{{Step: step, Why: fmt.Sprintf(why, args...)}}
}

// current returns the last decision, and whether there was one.
func (in Input) current() (int, bool) {
	if in.Memory.Replicas == nil {
		return 0, false
	}
	return *in.Memory.Replicas, true
}

// clamp is step 10 of docs/decide.md: to the number of partitions, which is no scale-in while steps 7
// and 8 refuse one, then to minReplicaCount..maxReplicaCount, which always hold. asked is what steps
// 1 to 8 asked for.
func (in Input) clamp(m measurement, c count, asked int) (count, []Reason) {
	var why []Reason
	useful := m.partitions
	if current, _ := in.current(); c.basis.refusesScaleIn() {
		useful = max(useful, current)
	}
	if m.partitions > 0 && c.replicas > useful {
		c.replicas = useful
		why = append(why, Reason{"clamp", useful, fmt.Sprintf("more replicas than %d partitions have nothing to do", m.partitions)})
	}
	if limit := in.Policy.MaxReplicas; limit != nil && c.replicas > *limit {
		c.replicas = *limit
		why = append(why, Reason{"clamp", *limit, fmt.Sprintf("maxReplicaCount is %d", *limit)})
	}
	if least := in.Policy.MinReplicas; c.replicas < least || c.replicas == least && asked < least {
		c.replicas = least
		why = append(why, Reason{"clamp", least, fmt.Sprintf("minReplicaCount is %d", least)})
	}
	return c, why
}

// paused is step 12 of docs/decide.md: the decision is shown and neither published nor remembered.
func (in Input) paused(c count) (count, []Reason) {
	if in.Policy.Paused {
		return c, because("paused", "shown only: nothing is published while the processor is paused")
	}
	return c, nil
}

// asked returns since when decisions ask for replicas; zero if this one does not.
func (in Input) asked(replicas int) time.Time {
	switch current, _ := in.current(); {
	case replicas == 0:
		return time.Time{}
	case current == 0:
		return in.Now
	}
	return in.Memory.Asked
}

// conclude makes the Decision.
func (in Input) conclude(c count, t trail) *Decision {
	d := &Decision{Time: in.Now, Replicas: c.replicas, Direction: None, Active: c.active, MetricValue: c.metric, Reasons: t}
	current, known := in.current()
	if known {
		d.Previous = &current
	}
	switch {
	case c.replicas > current:
		d.Direction = Out
	case c.replicas < current:
		d.Direction = In
	}
	return d
}
