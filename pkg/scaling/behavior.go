package scaling

import (
	"math"
	"slices"
	"time"
)

// behavior is step 9 of docs/decide.md: the tolerance, stabilization windows and rate policies of
// the HPA, applied between the last decision and what the steps before ask for. Both count as at
// least 1: the step from 1 to zero is made by cooldown alone. pkg/emulator/interop/hpa holds it
// against the HPA's own code.
func (s *steps) behavior() {
	last, _ := s.current()
	current, asked := max(1, last), max(1, s.replicas)
	s.asked = s.replicas

	tolerated := s.tolerate(current, asked)
	s.recommend(tolerated)
	stabilized := s.stabilize(current, tolerated)
	s.replicas = s.limitRate(current, stabilized)
	switch {
	case s.replicas != stabilized:
		s.because("behavior", "%d asked for, from %d: the policies allow %d now", asked, current, s.replicas)
	case stabilized != tolerated && stabilized > asked:
		s.because("behavior", "%d asked for, from %d: the scaleDown window of %s holds %d", asked, current, s.Policy.Behavior.ScaleDown.StabilizationWindow, s.replicas)
	case stabilized != tolerated:
		s.because("behavior", "%d asked for, from %d: the scaleUp window of %s holds %d", asked, current, s.Policy.Behavior.ScaleUp.StabilizationWindow, s.replicas)
	case tolerated != asked:
		s.because("behavior", "%d asked for: within the tolerance of %d", asked, current)
	}
}

// tolerate returns the current replicas where the metric is within the tolerance of the direction.
func (s *steps) tolerate(current, asked int) int {
	ratio := 0.0
	if s.usage.target > 0 {
		ratio = s.usage.metric / (s.usage.target * float64(current))
	}
	up, down := s.Policy.Behavior.ScaleUp.Tolerance, s.Policy.Behavior.ScaleDown.Tolerance
	if asked > current && ratio <= 1+up || asked < current && ratio >= 1-down {
		return current
	}
	return asked
}

// recommend remembers a recommendation. It forgets those older than both windows, and of equal ones
// all but the latest, which outlasts the others. What is held or fallen back to because nothing, or
// too little, could be measured is none, unless it is the first decision: an HPA that has no metric
// does nothing, and begins with the replicas that it finds. At zero replicas there is none either,
// since no HPA acts there. An incomplete poll that scales out recommends at least that many.
func (s *steps) recommend(replicas int) {
	longest := max(s.Policy.Behavior.ScaleUp.StabilizationWindow, s.Policy.Behavior.ScaleDown.StabilizationWindow)
	kept := within(s.next.Recommendations, s.Now, longest, func(r Recommendation) time.Time { return r.Time })
	s.next.Recommendations = kept
	last, decided := s.current()
	asleep := last == 0 && !s.active && s.Policy.MinReplicas == 0
	if longest > 0 && !asleep && (!s.unmeasured || !decided) {
		now := Recommendation{Time: s.Now, Replicas: replicas, AtLeast: s.refuseIn}
		kept = slices.DeleteFunc(kept, func(r Recommendation) bool { return r.Replicas == now.Replicas && r.AtLeast == now.AtLeast })
		s.next.Recommendations = append(kept, now)
	}
}

// stabilize returns the count nearest to the current replicas between the lowest recommendation
// within the scale-up window and the highest within the scale-down window. One that says no more than
// that fewer are not enough does not hold a scale-out back.
func (s *steps) stabilize(current, wanted int) int {
	lowest, highest := wanted, wanted
	for _, r := range s.next.Recommendations {
		if age := s.Now.Sub(r.Time); age < s.Policy.Behavior.ScaleUp.StabilizationWindow && !r.AtLeast {
			lowest = min(lowest, r.Replicas)
		}
		if age := s.Now.Sub(r.Time); age < s.Policy.Behavior.ScaleDown.StabilizationWindow {
			highest = max(highest, r.Replicas)
		}
	}
	return min(max(current, lowest), highest)
}

// limitRate returns wanted, or the count up to which the rate policies of its direction allow to
// go.
func (s *steps) limitRate(current, wanted int) int {
	switch {
	case wanted > current:
		return min(wanted, max(current, s.limit(s.Policy.Behavior.ScaleUp, current, 1)))
	case wanted < current:
		return max(wanted, min(current, s.limit(s.Policy.Behavior.ScaleDown, current, -1)))
	default:
		return wanted
	}
}

// limit returns the count up to which the rules allow to go in a direction, +1 or -1. Each policy
// counts from the replicas at the beginning of its period.
func (s *steps) limit(rules Rules, current, direction int) int {
	if rules.SelectPolicy == SelectDisabled {
		return current
	}
	farthest := direction * math.MaxInt32
	for i, p := range rules.Policies {
		start := current
		for _, c := range within(s.next.Changes, s.Now, p.Period, func(c Change) time.Time { return c.Time }) {
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
		if i == 0 || farther == (rules.SelectPolicy != SelectMin) {
			farthest = allowed
		}
	}
	return farthest
}

// remember records a change of replicas for the rate policies, and forgets those older than every
// period. The step between zero and one does not count, since the HPA does not make it.
func (s *steps) remember(from, to int) {
	delta := max(1, to) - max(1, from)
	longest := time.Duration(0)
	for _, p := range slices.Concat(s.Policy.Behavior.ScaleUp.Policies, s.Policy.Behavior.ScaleDown.Policies) {
		longest = max(longest, p.Period)
	}
	kept := within(s.next.Changes, s.Now, longest, func(c Change) time.Time { return c.Time })
	if delta != 0 && longest > 0 {
		kept = append(kept, Change{Time: s.Now, Delta: delta})
	}
	s.next.Changes = kept
}

// within returns a copy of the entries that are younger than window.
func within[T any](entries []T, now time.Time, window time.Duration, at func(T) time.Time) []T {
	var kept []T
	for _, e := range entries {
		if now.Sub(at(e)) < window {
			kept = append(kept, e)
		}
	}
	return kept
}
