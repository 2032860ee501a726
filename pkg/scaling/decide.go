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
	Lag    changefeed.ProcessorLag
	Policy Policy
	Memory Memory // from the Outcome of the last decision; zero for the first
	Limit  *Limit // a container of the processor that is at its limit of throughput; nil = none is
}

// Outcome is a decision, and what the next one needs.
type Outcome struct {
	Lag      changefeed.ProcessorLag // as measured, with the status of each partition refined by earlier polls
	Decision *Decision               // nil where nothing can be decided: steps 7 and 8 say when
	Memory   Memory
}

// Decide takes the steps of docs/decide.md in their order. The same Input always gives the same
// Outcome. The Input is not changed.
func Decide(in Input) Outcome {
	s := steps{Input: in}
	s.assess()
	if s.Lag.Known() {
		s.threshold()
		s.sizing()
		s.maxChangeAge()
		s.maxLeasesPerReplica()
		s.evenPartitions()
		s.hotPartition()
		s.throughput()
		s.schedules()
		s.incomplete()
	} else {
		s.failure()
		s.schedules()
	}
	if s.undecided {
		return Outcome{Lag: s.Lag, Memory: s.next}
	}
	s.behavior()
	s.cooldown()
	s.clamp()
	s.paused()
	return s.conclude()
}

// steps carries a decision from step to step.
type steps struct {
	Input
	next Memory // for the next decision

	wake           changefeed.Status // worst status of a reading that wakes the processor; "" where none does
	uncheckpointed int               // partitions that the reading found without a checkpoint

	flows      []Flow // of the partitions, as measured at this poll
	demand     signal // the part of the measurement that asks for replicas; zero where nothing is known
	partitions int    // the cap of steps 1 and 10, at least 1; 0 where no poll ever measured it
	metric     int64  // metricValue: the lag, capped, in transactions
	active     bool   // whether the processor is to have replicas at all
	replicas   int    // what the steps so far ask for
	usage      usage  // what asks for the replicas, for the tolerance of step 9
	asked      int    // what steps 1 to 8 asked for
	refuseIn   bool   // too much is unknown to scale in
	unmeasured bool   // what is asked for was not measured: it is held, or fallen back to
	undecided  bool
	reasons    []Reason
}

// because records the reason of a step, with the replicas after it.
func (s *steps) because(step, why string, args ...any) {
	s.reasons = append(s.reasons, Reason{Step: step, Replicas: s.replicas, Why: fmt.Sprintf(why, args...)})
}

// current returns the last decision, and whether there was one.
func (s *steps) current() (int, bool) {
	if s.Memory.Replicas == nil {
		return 0, false
	}
	return *s.Memory.Replicas, true
}

// usage is a metric and its target for one replica, or a number of replicas and 1. The two are kept
// apart so that their ratio at the current replicas is rounded once, as the HPA rounds it.
type usage struct{ metric, target float64 }

// raise raises the replicas to n, rounded up, and reports whether that changed them. A number that
// exceeds 32 bits counts as the greatest that does not.
func (s *steps) raise(n float64) bool { return s.raiseFor(usage{n, 1}) }

// raiseFor is raise for a metric and its target.
func (s *steps) raiseFor(u usage) bool {
	wanted := int(min(math.Ceil(u.metric/u.target), math.MaxInt32))
	if wanted <= s.replicas {
		return false
	}
	s.replicas, s.usage = wanted, u
	return true
}

// threshold is steps 1 and 2 of docs/decide.md. Step 1: metricValue is the lag, at most one
// changeFeedLagThreshold per partition (or per partition with lag); while anything is unknown there
// are no fewer partitions than the last complete poll counted. The processor is active where the lag is above the activation threshold or a status wakes it. Step 2: one replica per
// changeFeedLagThreshold of metricValue, rounded up; none where the processor is inactive.
func (s *steps) threshold() {
	s.partitions = max(1, s.Lag.PartitionCount())
	if s.gaps() != "" {
		s.partitions = max(s.partitions, s.Memory.Partitions)
	}
	s.next.Partitions = s.partitions
	s.demand = s.signal()
	lag, capBy := s.demand.lag, s.partitions
	if s.Policy.LimitToPartitionsWithLag {
		capBy = s.demand.lagging
	}
	s.metric = min(lag, int64(capBy)*s.Policy.Threshold)
	// What excludeStalled leaves out keeps the processor active, so that its owner keeps trying.
	all := *s.Lag.Lag()
	s.active = all > s.Policy.Activation || s.wake != "" || s.demand.excluded > 0
	if !s.active {
		s.because("activation", "lag %d is not above the activation threshold %d", all, s.Policy.Activation)
		return
	}
	if s.wake != "" || s.demand.excluded > 0 {
		s.metric = max(s.metric, s.Policy.Activation+1)
	}
	s.raiseFor(usage{float64(s.metric), float64(s.Policy.Threshold)})
	switch {
	case s.metric < lag && s.Policy.LimitToPartitionsWithLag:
		s.because("threshold", "lag %d at %d per replica, capped to %d partitions with lag", lag, s.Policy.Threshold, capBy)
	case s.metric < lag:
		s.because("threshold", "lag %d at %d per replica, capped to %d partitions", lag, s.Policy.Threshold, capBy)
	default:
		s.because("threshold", "lag %d at %d per replica", lag, s.Policy.Threshold)
	}
	if s.demand.excluded > 0 {
		s.because("excludeStalled", "a lag of %d in %d stalled partitions is left out: more replicas do not move it", s.demand.excludedLag, s.demand.excluded)
	}
	if s.wake != "" {
		s.because(string(s.wake), "%s", s.wakeReason())
	}
}

// wakeReason says why a status asks for a replica whatever the activation threshold.
func (s *steps) wakeReason() string {
	switch s.wake {
	case changefeed.StatusBootstrap:
		why := "no lease exists yet: a processor has to run once to create them"
		if s.Lag.Nearest != "" {
			why += ". " + s.Lag.Nearest
		}
		return why
	case changefeed.StatusSplitting:
		return "a partition was split or merged: a processor has to run to replace its lease"
	default:
		return fmt.Sprintf("the position of %d of %d partitions is in the memory of their owners alone: at zero replicas, what is written meanwhile would be skipped for good, "+
			"so one replica stays until each of them has had its first change, or the processor starts from the beginning", s.uncheckpointed, len(s.Lag.Partitions))
	}
}

// ageTolerance is the fraction by which the age may exceed maxChangeAge before step 4 counts it.
const ageTolerance = 0.1

// maxChangeAge is step 4 of docs/decide.md: where the age of the oldest pending change is beyond a
// limit, it raises the replicas to live owners (at least 1) times age / limit, rounded up, as the
// HPA multiplies its pods by the ratio of a metric to its target. The limits are maxChangeAge and
// half of the retention, beyond which changes are lost.
func (s *steps) maxChangeAge() {
	s.ageWithin(s.Policy.MaxChangeAge, "maxChangeAge", "the limit")
	s.ageWithin(s.retention()/2, "retention", "half of the retention")
}

func (s *steps) ageWithin(limit time.Duration, step, what string) {
	age := s.demand.age
	if limit <= 0 || !s.active || age == nil {
		return
	}
	if float64(*age)/limit.Seconds() <= 1+ageTolerance {
		return
	}
	owners := max(1, s.liveOwners())
	// Multiplied first: 15 owners x (31 s / 15 s) is 31, but rounding the ratio first can give 32.
	if s.raise(float64(owners) * float64(*age) / limit.Seconds()) {
		s.because(step, "the oldest change is %d s old, %s is %s, and %d owners are live", *age, what, limit, owners)
	}
}

// schedules is step 6 of docs/decide.md: it raises the replicas to the highest floor whose window
// is open. As in KEDA, an open window keeps the processor active.
func (s *steps) schedules() {
	var open *Schedule
	for i := range s.Policy.Schedules {
		if window := &s.Policy.Schedules[i]; window.Open(s.Now) && (open == nil || window.DesiredReplicas > open.DesiredReplicas) {
			open = window
		}
	}
	if open == nil || open.DesiredReplicas == 0 || s.undecided {
		return
	}
	s.active = true
	floor, why := open.DesiredReplicas, ""
	if s.Policy.EvenPartitions {
		if floor = even(floor, s.partitions); floor > open.DesiredReplicas {
			why = fmt.Sprintf(", and %d is the next that divides %d partitions", floor, s.partitions)
		}
	}
	if floor >= s.replicas {
		s.unmeasured = false // a window that is open is known without a measurement
	}
	if s.raise(float64(floor)) {
		s.because("schedules", "a window is open that asks for at least %d%s", open.DesiredReplicas, why)
	}
}

// Open reports whether the window is open at t: its next end comes before its next start, both
// strictly after t, which is the rule of KEDA's cron trigger (cron_scaler.go).
func (w *Schedule) Open(t time.Time) bool {
	t = t.In(w.Location)
	return !w.Start.Next(t).Before(w.End.Next(t))
}

// minCarried is the least time for which a reading may be carried and still count as known.
const minCarried = time.Minute

// gaps says in one sentence which partitions step 7 cannot count on, "" where there are none: those
// that are unknown, and those that were carried for longer than the scale-down window, which would
// let a scale-in rest on nothing but old readings.
func (s *steps) gaps() string {
	longest := max(minCarried, s.Policy.Behavior.ScaleDown.StabilizationWindow)
	unknown, old := 0, 0
	for i := range s.Lag.Partitions {
		switch p := &s.Lag.Partitions[i]; {
		case !p.Known():
			unknown++
		case p.Carried() && s.Now.Sub(p.Measured) > longest:
			old++
		}
	}
	all := len(s.Lag.Partitions)
	switch {
	case unknown > 0 && old > 0:
		return fmt.Sprintf("%d of %d partitions are unknown, and %d were last read more than %s ago", unknown, all, old, longest)
	case unknown > 0:
		return fmt.Sprintf("%d of %d partitions are unknown", unknown, all)
	case old > 0:
		return fmt.Sprintf("%d of %d partitions were last read more than %s ago", old, all, longest)
	}
	return ""
}

// incomplete is step 7 of docs/decide.md: while a partition is unknown, the known ones may scale
// out, but replicas, activity and metricValue do not go below those of the last decision, in this
// step or any later one. Where there is none, and no known partition makes the processor active,
// nothing is decided: zero replicas might be wrong.
func (s *steps) incomplete() {
	gaps := s.gaps()
	if gaps == "" {
		return
	}
	s.refuseIn = true
	current, known := s.current()
	if !known {
		s.undecided = !s.active
		return
	}
	metric := s.metric
	s.active = s.active || s.Memory.Active
	s.metric = max(s.metric, s.Memory.MetricValue)
	switch {
	case s.replicas < current:
		s.unmeasured = s.tolerate(current, s.replicas) < current
		s.raise(float64(current))
		s.because("incomplete", "%s: no scale-in from %d", gaps, current)
	case s.metric > metric:
		s.because("incomplete", "%s: the metric stays at %d", gaps, s.metric)
	}
}

// failure is step 8 of docs/decide.md, taken in place of steps 1 to 5 and 7 where no partition
// could be measured. Up to failureThreshold polls in a row that failed hold the last decision;
// beyond, the fallback counts, as in KEDA.
func (s *steps) failure() {
	// The leases may have been read, though no partition could be measured.
	s.partitions = max(s.Memory.Partitions, s.Lag.PartitionCount())
	if s.Memory.Partitions > 0 {
		s.next.Partitions = s.partitions
	}
	s.next.Failures++
	s.refuseIn, s.unmeasured = true, true
	current, known := s.current()
	fallback := s.Policy.Fallback
	if s.next.Failures <= fallback.FailureThreshold {
		if s.undecided = !known; known {
			s.active, s.metric = s.Memory.Active, s.Memory.MetricValue
			s.raise(float64(current))
			s.because("failure", "poll %d of %d that may fail: the last decision holds", s.next.Failures, fallback.FailureThreshold)
		}
		return
	}
	s.refuseIn = false
	switch fallback.Behavior {
	case FallbackStatic:
		s.fallBack(fallback.Replicas, "%d polls failed: fallback to %d", s.next.Failures, fallback.Replicas)
	case FallbackCurrent:
		if s.undecided = !known; known {
			s.fallBack(current, "%d polls failed: fallback to the current %d", s.next.Failures, current)
		}
	case FallbackCurrentIfHigher:
		s.fallBack(max(current, fallback.Replicas), "%d polls failed: fallback to %d, or the current replicas if higher", s.next.Failures, fallback.Replicas)
	case FallbackCurrentIfLower:
		n := fallback.Replicas
		if known {
			n = min(current, n)
		}
		s.fallBack(n, "%d polls failed: fallback to %d, or the current replicas if lower", s.next.Failures, fallback.Replicas)
	default:
		if s.undecided = s.Memory.Partitions == 0; !s.undecided {
			s.fallBack(s.partitions, "%d polls failed: as if each of the %d partitions last known lagged by a threshold", s.next.Failures, s.partitions)
		}
	}
}

// fallBack decides a fallback: its metricValue is that of as many partitions as replicas.
func (s *steps) fallBack(replicas int, why string, args ...any) {
	s.active = replicas > 0
	s.metric = min(int64(replicas), math.MaxInt64/s.Policy.Threshold) * s.Policy.Threshold
	s.raise(float64(replicas))
	s.because("fallback", why, args...)
}

// cooldown is the part of step 9 of docs/decide.md that goes to zero: once cooldownPeriod has
// passed since the last active poll, as in KEDA. The windows and policies of behavior neither delay
// nor hasten it.
func (s *steps) cooldown() {
	if s.active {
		s.next.LastActive = s.Now
		return
	}
	current, known := s.current()
	idle := s.Now.Sub(s.next.LastActive)
	switch {
	case s.Policy.MinReplicas > 0:
	case known && current == 0:
		s.replicas = 0
	case s.refuseIn:
	case s.next.LastActive.IsZero():
		s.replicas = 0
		if known {
			s.because("cooldown", "no poll was ever active")
		}
	case idle >= s.Policy.Cooldown:
		s.replicas = 0
		s.because("cooldown", "%s have passed since the last active poll", s.Policy.Cooldown)
	default:
		s.because("cooldown", "zero after %s without an active poll, %s so far", s.Policy.Cooldown, idle.Round(time.Second))
	}
}

// clamp is step 10 of docs/decide.md: to the number of partitions, which is no scale-in where step 7
// refuses that, then to minReplicaCount..maxReplicaCount, which always hold.
func (s *steps) clamp() {
	useful := s.partitions
	if current, _ := s.current(); s.refuseIn {
		useful = max(useful, current)
	}
	if s.partitions > 0 && s.replicas > useful {
		s.replicas = useful
		s.because("clamp", "more replicas than %d partitions have nothing to do", s.partitions)
	}
	if limit := s.Policy.MaxReplicas; limit != nil && s.replicas > *limit {
		s.replicas = *limit
		s.because("clamp", "maxReplicaCount is %d", *limit)
	}
	if least := s.Policy.MinReplicas; s.replicas < least || s.replicas == least && s.asked < least {
		s.replicas = least
		s.because("clamp", "minReplicaCount is %d", s.Policy.MinReplicas)
	}
}

// paused is step 12 of docs/decide.md: the decision is shown and neither published nor remembered.
func (s *steps) paused() {
	if s.Policy.Paused {
		s.because("paused", "shown only: nothing is published while the processor is paused")
	}
}

// conclude makes the Decision, and remembers it unless the processor is paused.
func (s *steps) conclude() Outcome {
	d := &Decision{
		Time:        s.Now,
		Replicas:    s.replicas,
		Direction:   None,
		Active:      s.active,
		MetricValue: s.metric,
		Reasons:     s.reasons,
	}
	current, known := s.current()
	if known {
		d.Previous = &current
	}
	switch {
	case s.replicas > current:
		d.Direction = Out
	case s.replicas < current:
		d.Direction = In
	}
	if !s.Policy.Paused {
		s.next.Replicas = new(s.replicas) // a pointer to it would keep all of s
		switch {
		case s.replicas == 0:
			s.next.Asked = time.Time{}
		case current == 0:
			s.next.Asked = s.Now
		}
		s.next.Active, s.next.MetricValue = s.active, s.metric
		s.starts(current)
		s.remember(current, s.replicas)
	}
	return Outcome{Lag: s.Lag, Decision: d, Memory: s.next}
}
