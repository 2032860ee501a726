package scaling

import (
	"math"
	"slices"
	"time"
)

// behavior is step 9 of docs/decide.md: it applies the HPA's tolerance, stabilization windows and
// rate policies to the change from the last decision to c. Both counts are at least 1 here: only
// cooldown takes the step from 1 to zero. pkg/emulator/interop/hpa compares the results with the
// HPA's own code.
func (in Input) behavior(c count, tolerated int, recommendations []Recommendation) count {
	last, _ := in.Memory.current()
	current, asked := max(1, last), max(1, c.replicas)
	rules := in.Policy.Behavior
	stabilized := rules.stabilize(in.Now, current, tolerated, recommendations)
	c.replicas = rules.limitRate(in.Now, current, stabilized, in.Memory.Changes)
	switch {
	case c.replicas != stabilized:
		return c.because("behavior", "%d asked for, from %d: the policies allow %d now", asked, current, c.replicas)
	case stabilized != tolerated && stabilized > asked:
		return c.because("behavior", "%d asked for, from %d: the scaleDown window of %s holds %d", asked, current, rules.ScaleDown.StabilizationWindow, c.replicas)
	case stabilized != tolerated:
		return c.because("behavior", "%d asked for, from %d: the scaleUp window of %s holds %d", asked, current, rules.ScaleUp.StabilizationWindow, c.replicas)
	case tolerated != asked:
		return c.because("behavior", "%d asked for: within the tolerance of %d", asked, current)
	}
	return c
}

// tolerate returns the current replicas if the metric is within the tolerance of its direction,
// else asked.
func (in Input) tolerate(c count, current, asked int) int {
	ratio := 0.0
	if c.usage.target > 0 {
		ratio = c.usage.metric / (c.usage.target * float64(current))
	}
	up, down := in.Policy.Behavior.ScaleUp.Tolerance, in.Policy.Behavior.ScaleDown.Tolerance
	if asked > current && ratio <= 1+up || asked < current && ratio >= 1-down {
		return current
	}
	return asked
}

// recommendations returns the remembered recommendations and, if something was measured, this one.
// It drops those older than both windows. Of equal ones it keeps the latest, which expires last.
//
// A count that is held or a fallback is no recommendation, since an HPA without a metric does
// nothing. The first decision is one, as an HPA begins with the replicas that it finds. At zero
// replicas nothing is recommended, since no HPA acts there. An incomplete poll that scales out
// recommends a minimum.
func (in Input) recommendations(c count, replicas int) []Recommendation {
	longest := max(in.Policy.Behavior.ScaleUp.StabilizationWindow, in.Policy.Behavior.ScaleDown.StabilizationWindow)
	recent := within(in.Memory.Recommendations, in.Now, longest, func(r Recommendation) time.Time { return r.Time })
	last, decided := in.Memory.current()
	asleep := last == 0 && !c.active && in.Policy.MinReplicas == 0
	unmeasured := c.basis == held || c.basis == fallen
	if longest == 0 || asleep || unmeasured && decided {
		return recent
	}
	now := Recommendation{Time: in.Now, Replicas: replicas, AtLeast: c.basis.refusesScaleIn()}
	recent = slices.DeleteFunc(recent, func(r Recommendation) bool { return r.Replicas == now.Replicas && r.AtLeast == now.AtLeast })
	return append(recent, now)
}

// stabilize returns the count nearest to current that lies between the lowest recommendation of the
// scale-up window and the highest of the scale-down window. A recommendation that is only a minimum
// (AtLeast) does not hold a scale-out back.
func (b Behavior) stabilize(now time.Time, current, wanted int, recommendations []Recommendation) int {
	lowest, highest := wanted, wanted
	for _, r := range recommendations {
		age := now.Sub(r.Time)
		if age < b.ScaleUp.StabilizationWindow && !r.AtLeast {
			lowest = min(lowest, r.Replicas)
		}
		if age < b.ScaleDown.StabilizationWindow {
			highest = max(highest, r.Replicas)
		}
	}
	return min(max(current, lowest), highest)
}

// limitRate returns wanted, or the nearest count that the rate policies of its direction allow.
func (b Behavior) limitRate(now time.Time, current, wanted int, changes []Change) int {
	switch {
	case wanted > current:
		return min(wanted, max(current, b.ScaleUp.limit(now, current, 1, changes)))
	case wanted < current:
		return max(wanted, min(current, b.ScaleDown.limit(now, current, -1, changes)))
	default:
		return wanted
	}
}

// limit returns the farthest count that the rules allow in a direction, +1 or -1. Each policy
// counts from the replicas at the beginning of its period.
func (r Rules) limit(now time.Time, current, direction int, changes []Change) int {
	if r.SelectPolicy == SelectDisabled {
		return current
	}
	farthest := direction * math.MaxInt32
	for i, p := range r.Policies {
		start := current
		for _, c := range within(changes, now, p.Period, func(c Change) time.Time { return c.Time }) {
			start -= c.Delta
		}
		allowed := start + direction*p.Value
		if p.Type == RatePercent {
			// Rounded as the HPA does: up when scaling up, towards zero when scaling down.
			allowed = int(math.Trunc(float64(start) * (1 - float64(p.Value)/100)))
			if direction > 0 {
				allowed = int(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
			}
		}
		farther := direction*allowed > direction*farthest
		if i == 0 || farther == (r.SelectPolicy != SelectMin) {
			farthest = allowed
		}
	}
	return farthest
}

// changes returns the remembered changes of replicas and this one, without those older than every
// period. The step between zero and one is left out, since the HPA does not take it.
func (in Input) changes(replicas int) []Change {
	current, _ := in.Memory.current()
	delta := max(1, replicas) - max(1, current)
	longest := time.Duration(0)
	for _, p := range slices.Concat(in.Policy.Behavior.ScaleUp.Policies, in.Policy.Behavior.ScaleDown.Policies) {
		longest = max(longest, p.Period)
	}
	recent := within(in.Memory.Changes, in.Now, longest, func(c Change) time.Time { return c.Time })
	if delta != 0 && longest > 0 {
		recent = append(recent, Change{Time: in.Now, Delta: delta})
	}
	return recent
}

// cooldown is the second part of step 9 of docs/decide.md, the step to zero: as in KEDA, it is
// taken once cooldownPeriod has passed since the last active poll. The windows and policies of
// behavior do not affect it.
func (in Input) cooldown(c count) count {
	if c.active || in.Policy.MinReplicas > 0 {
		return c
	}
	current, known := in.Memory.current()
	idle := in.Now.Sub(in.Memory.LastActive)
	switch {
	case known && current == 0:
		c.replicas = 0
	case c.basis == recent || c.basis.refusesScaleIn():
	case in.Memory.LastActive.IsZero():
		c.replicas = 0
		if known {
			return c.because("cooldown", "no poll was ever active")
		}
	case idle >= in.Policy.Cooldown:
		c.replicas = 0
		return c.because("cooldown", "%s have passed since the last active poll", in.Policy.Cooldown)
	default:
		return c.because("cooldown", "zero after %s without an active poll, %s so far", in.Policy.Cooldown, idle.Round(time.Second))
	}
	return c
}

// within returns a copy of the entries that are younger than window.
func within[T any](entries []T, now time.Time, window time.Duration, at func(T) time.Time) []T {
	var recent []T
	for _, e := range entries {
		if now.Sub(at(e)) < window {
			recent = append(recent, e)
		}
	}
	return recent
}
