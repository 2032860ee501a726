package scaling

import (
	"cmp"
	"fmt"
	"math"
)

// incomplete is step 7 of docs/decide.md. While a partition is unknown, the known ones may scale
// out, but replicas, activity and metricValue do not go below the last decision, in this step or a
// later one. Without a last decision, and if no known partition makes the processor active, nothing
// is decided: zero replicas might be wrong.
func (in Input) incomplete(m measurement, c count) count {
	if c.basis != partial {
		return in.uncertain(m, c)
	}
	current, known := in.Memory.current()
	if !known {
		if !c.active {
			c.basis = nothing
		}
		return c
	}
	metric := c.metric
	c.active = c.active || in.Memory.Active
	c.metric = max(c.metric, in.Memory.MetricValue)
	switch {
	case c.replicas < current:
		if in.tolerate(c, current, c.replicas) < current {
			c.basis = held
		}
		c.raise(float64(current))
		return c.because("incomplete", "%s: no scale-in from %d", m.gaps, current)
	case c.metric > metric:
		return c.because("incomplete", "%s: the metric stays at %d", m.gaps, c.metric)
	}
	return c
}

// uncertain is the other part of step 7: while earlier readings replace unknown partitions, the
// replicas may go down, but not to zero.
func (in Input) uncertain(m measurement, c count) count {
	if current, _ := in.Memory.current(); !m.unsure || current == 0 || c.active {
		return c
	}
	if c.active = in.Memory.Active; c.active {
		c.metric = max(c.metric, min(in.Memory.MetricValue, in.Policy.Activation+1))
	}
	c.basis = recent
	c.raise(1)
	return c.because("incomplete", "a partition could not be measured: its last reading counts, but not for the step to zero")
}

// hold returns the last decision, if there is one: part of step 8 of docs/decide.md.
func (m Memory) hold(step, why string) count {
	if m.Replicas == nil {
		return count{basis: nothing}
	}
	c := count{active: m.Active, metric: m.MetricValue, basis: held}
	c.raise(float64(*m.Replicas))
	return c.because(step, "%s", why)
}

// failure is step 8 of docs/decide.md. It replaces steps 1 to 5 and 7 if no partition could be
// measured. Up to failureThreshold failed polls in a row, the last decision holds. After that, the
// fallback applies, as in KEDA.
func (in Input) failure(m measurement, failures int) count {
	current, known := in.Memory.current()
	fallback := in.Policy.Fallback
	if failures <= fallback.FailureThreshold {
		return in.Memory.hold("failure", fmt.Sprintf("poll %d of %d that may fail: the last decision holds", failures, fallback.FailureThreshold))
	}
	replicas, behavior := fallback.Replicas, cmp.Or(fallback.Behavior, FallbackMax)
	switch behavior {
	case FallbackCurrent:
		if !known {
			return count{basis: nothing}
		}
		replicas = current
	case FallbackCurrentIfHigher:
		replicas = max(current, replicas)
	case FallbackCurrentIfLower:
		if known {
			replicas = min(current, replicas)
		}
	case FallbackMax:
		if in.Memory.Partitions == 0 {
			return count{basis: nothing}
		}
		replicas = m.partitions
	}
	// A fallback has the metricValue of as many partitions as replicas.
	c := count{active: replicas > 0, metric: min(int64(replicas), math.MaxInt64/in.Policy.Threshold) * in.Policy.Threshold, basis: fallen}
	c.raise(float64(replicas))
	return c.because("fallback", "%d polls failed: fallback behavior %s", failures, behavior)
}
