package scaling

import (
	"math"
	"slices"
	"time"
)

// behavior is step 8: HPA's tolerance, stabilization windows and rate policies,
// between the last decision and what the steps before ask for. It works from 1
// upwards: the step from there to zero is cooldown's.
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

// tolerate keeps the current replicas where the metric is within the
// direction's tolerance of its target.
func (s *steps) tolerate(current, asked int) int {
	ratio := s.ratio / float64(current)
	up, down := s.Policy.Behavior.ScaleUp.Tolerance, s.Policy.Behavior.ScaleDown.Tolerance
	if asked > current && ratio <= 1+up || asked < current && ratio >= 1-down {
		return current
	}
	return asked
}

// recommend remembers a recommendation. Those that no window reaches are
// forgotten, and of equal ones all but the last, which outlives them.
func (s *steps) recommend(replicas int) {
	longest := max(s.Policy.Behavior.ScaleUp.StabilizationWindow, s.Policy.Behavior.ScaleDown.StabilizationWindow)
	kept := within(s.next.Recommendations, s.Now, longest, func(r Recommendation) time.Time { return r.Time })
	s.next.Recommendations = nil
	if longest > 0 {
		kept = slices.DeleteFunc(kept, func(r Recommendation) bool { return r.Replicas == replicas })
		s.next.Recommendations = append(kept, Recommendation{Time: s.Now, Replicas: replicas})
	}
}

// stabilize takes the lowest recommendation of the scale-up window and the
// highest of the scale-down window, and moves the current replicas between them.
func (s *steps) stabilize(current, wanted int) int {
	lowest, highest := wanted, wanted
	for _, r := range s.next.Recommendations {
		if age := s.Now.Sub(r.Time); age < s.Policy.Behavior.ScaleUp.StabilizationWindow {
			lowest = min(lowest, r.Replicas)
		}
		if age := s.Now.Sub(r.Time); age < s.Policy.Behavior.ScaleDown.StabilizationWindow {
			highest = max(highest, r.Replicas)
		}
	}
	return min(max(current, lowest), highest)
}

// limitRate lets the replicas go as far as the policies of the direction allow.
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

// limit returns how far the rules allow to go in a direction, +1 or -1, from
// where the replicas stood at the beginning of each policy's period.
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
			// As HPA rounds: up to the next replica when growing, towards
			// zero when shrinking.
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

// remember notes a change for the policies' periods, and forgets those that no
// period reaches. The step between zero and one is none of HPA's.
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

// within returns a copy of those entries that are younger than window.
func within[T any](entries []T, now time.Time, window time.Duration, at func(T) time.Time) []T {
	var kept []T
	for _, e := range entries {
		if now.Sub(at(e)) < window {
			kept = append(kept, e)
		}
	}
	return kept
}
