package scaling

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling/sizing"
)

// threshold is steps 1 and 2 of docs/decide.md. Step 1: metricValue is the lag, at most one
// changeFeedLagThreshold per partition (or per partition with lag). The processor is active if the
// lag is above the activation threshold or a status wakes it. Step 2: one replica per
// changeFeedLagThreshold of metricValue, rounded up; 0 if the processor is inactive.
func (in Input) threshold(m measurement) count {
	policy := in.Policy
	capBy, capped := m.partitions, "partitions"
	if policy.LimitToPartitionsWithLag {
		capBy, capped = m.lagging, "partitions with lag"
	}
	c := count{metric: min(m.pending, int64(capBy)*policy.Threshold)}
	if m.gaps != "" {
		c.basis = partial
	}
	// The partitions that excludeStalled leaves out keep the processor active, so that their owner
	// keeps trying.
	woken := m.wake != "" || len(m.excluded) > 0
	c.active = m.all > policy.Activation || woken
	if !c.active {
		return c.because("activation", "lag %d is not above the activation threshold %d", m.all, policy.Activation)
	}
	capping := ""
	if c.metric < m.pending {
		capping = fmt.Sprintf(", capped to %d %s", capBy, capped)
	}
	if woken {
		c.metric = max(c.metric, policy.Activation+1)
	}
	c.raiseFor(usage{float64(c.metric), float64(policy.Threshold)})
	c = c.because("threshold", "lag %d at %d per replica%s", m.pending, policy.Threshold, capping)
	if len(m.excluded) > 0 {
		c = c.because("excludeStalled", "a lag of %d is left out, since more replicas do not move it: %s", m.excludedLag, changefeed.ListPartitions(m.excluded))
	}
	if m.wake != "" {
		c = c.because(string(m.wake), "%s", m.wakeReason())
	}
	return c
}

// wakeReason says why a status keeps one replica, even below the activation threshold.
func (m measurement) wakeReason() string {
	switch m.wake {
	case changefeed.StatusUncovered:
		return "no lease covers some keys: no replica reads them, and 1 counts for all"
	case changefeed.StatusBootstrap:
		return strings.TrimSuffix("no lease exists yet: a processor has to run once to create them. "+m.lag.Nearest, ". ")
	case changefeed.StatusSplitting:
		return "a partition was split or merged: a processor has to run to replace its lease"
	default:
		return fmt.Sprintf("the position of %d of %d partitions is in the memory of their owners alone: at zero replicas, what is written meanwhile would be skipped for good, "+
			"so one replica stays until each of them has had its first change, or the processor starts from the beginning", m.uncheckpointed, len(m.lag.Partitions))
	}
}

// size runs step 3's measurements at every poll, so that the rates are known when step 3 needs
// them.
func (in Input) size(m measurement, c count) sizing.Answer {
	current, _ := in.Memory.current()
	return sizing.Size(sizing.Input{
		Now: in.Now, Lag: m.lag, Replicas: current, Threshold: c.replicas, Capacity: in.Memory.DrainPerReplica,
		CatchUpWithin: in.Policy.CatchUpWithin, Even: in.Policy.EvenPartitions, LeaseExpiration: in.Policy.Health.LeaseExpiration, Partial: m.gaps != "",
		Memory: in.Memory.Sizing,
	})
}

// sizing is step 3 of docs/decide.md: the count that the measured rates need. With SizingAuto it
// replaces the count of step 2. With SizingThreshold and catchUpWithin it can only raise it.
func (in Input) sizing(c count, a sizing.Answer) count {
	auto := in.Policy.Sizing == SizingAuto
	switch {
	case !c.active || a.Needed == 0 || !auto && in.Policy.CatchUpWithin <= 0:
		return c
	case !auto:
		if c.raise(float64(a.Needed)) {
			return c.because("catchUpWithin", "%s", a.Reasons[0].Why)
		}
		return c
	}
	c.replicas, c.usage, c.reasons = a.Replicas, usage{float64(a.Replicas), 1}, append(c.reasons, a.Reasons...)
	return c
}

// ageTolerance is the fraction by which the age may exceed its limit before step 4 acts.
const ageTolerance = 0.1

// maxChangeAge is step 4 of docs/decide.md: if the age of the oldest pending change is beyond a
// limit by more than ageTolerance, it raises the replicas to live owners (at least 1) times age /
// limit, rounded up, as the HPA multiplies its pods by the ratio of a metric to its target. The
// limits are maxChangeAge and half of the retention, beyond which changes are lost.
func (in Input) maxChangeAge(m measurement, c count) count {
	for _, l := range []struct {
		limit      time.Duration
		step, what string
	}{
		{in.Policy.MaxChangeAge, "maxChangeAge", "the limit"},
		{in.Lag.Retention / 2, "retention", "half of the retention"},
	} {
		if l.limit <= 0 || !c.active || m.age == nil || float64(*m.age)/l.limit.Seconds() <= 1+ageTolerance {
			continue
		}
		owners := max(1, m.owners)
		// Multiplied first: 15 owners x (31 s / 15 s) is 31, but rounding the ratio first can give
		// 32.
		if c.raise(float64(owners) * float64(*m.age) / l.limit.Seconds()) {
			c = c.because(l.step, "the oldest change is %d s old, %s is %s; live owners: %d", *m.age, l.what, l.limit, owners)
		}
	}
	return c
}

// maxLeasesPerReplica is step 5 of docs/decide.md: while changes are pending, it raises the
// replicas until none has more than maxLeasesPerReplica leases. maxActiveLeasesPerReplica of KEDA
// 2.22's azure-cosmosdb scaler does the same, but only for leases with lag. metricValue is raised
// accordingly.
func (in Input) maxLeasesPerReplica(m measurement, c count) count {
	most := in.Policy.MaxLeasesPerReplica
	if most <= 0 || !c.active || m.lagging == 0 {
		return c
	}
	needed := (m.partitions + most - 1) / most
	c.metric = max(c.metric, int64(needed)*in.Policy.Threshold)
	if c.raise(float64(needed)) {
		return c.because("maxLeasesPerReplica", "%d leases at %d per replica", m.partitions, most)
	}
	return c
}

// evenPartitions is step 5 of docs/decide.md: it raises the replicas to the next count that divides
// the number of partitions, as ensureEvenDistributionOfPartitions of KEDA's kafka scaler does. The
// replica with the most partitions determines when the lag is drained, and the others cannot take
// work from it. metricValue is raised accordingly, so that a scaler that reads it gets the same
// count.
func (in Input) evenPartitions(m measurement, c count) count {
	if !in.Policy.EvenPartitions || !c.active {
		return c
	}
	asked := int(math.Ceil(float64(c.metric) / float64(in.Policy.Threshold)))
	c.metric = int64(even(asked, m.partitions)) * in.Policy.Threshold
	if n := even(c.replicas, m.partitions); c.raise(float64(n)) {
		return c.because("evenPartitions", "every replica owns %d of %d partitions", m.partitions/n, m.partitions)
	}
	return c
}

// hotPartition is step 5 of docs/decide.md, if limitToPartitionsWithLag is set: it caps the
// replicas at the number of partitions with lag, unknown ones included, but at least at 1. One
// partition is read by one replica at a time, so more replicas would be idle. As in KEDA, this cap
// comes after the even count.
func (in Input) hotPartition(m measurement, c count) count {
	if !in.Policy.LimitToPartitionsWithLag || !c.active {
		return c
	}
	able := max(1, m.lagging+m.unknown)
	c.metric = min(c.metric, int64(able)*in.Policy.Threshold)
	if c.replicas <= able {
		return c
	}
	c.replicas, c.usage = able, usage{float64(able), 1}
	return c.because("hotPartition", "more replicas than %d partitions with a backlog cannot help it", able)
}

// even returns the smallest count from n up that divides the number of partitions; n itself if n
// exceeds it.
func even(n, partitions int) int {
	for count := max(1, n); count <= partitions; count++ {
		if partitions%count == 0 {
			return count
		}
	}
	return n
}

// throughput is step 5 of docs/decide.md: it refuses a scale-out while a container is at its limit
// and the lag does not fall, since more replicas would share the same throttled request units. It
// never scales in. It lets a processor wake from zero, and schedules raise the count.
func (in Input) throughput(m measurement, c count) count {
	current, known := in.Memory.current()
	if in.Limit == nil || !known || current == 0 || !c.active || in.Limit.LagBefore == nil || m.all < *in.Limit.LagBefore {
		return c
	}
	c.metric = min(c.metric, int64(current)*in.Policy.Threshold)
	if c.replicas <= current {
		return c
	}
	c.replicas, c.usage = current, usage{float64(current), 1}
	return c.because("throughput", "container %s is at its limit of %d RU/s, and the lag does not fall (%d, and %d before): more replicas would be throttled",
		in.Limit.Container, in.Limit.RUPerSecond, m.all, *in.Limit.LagBefore)
}

// schedules is step 6 of docs/decide.md: it raises the replicas to the highest minimum among the
// open windows. As in KEDA, an open window keeps the processor active.
func (in Input) schedules(m measurement, c count) count {
	var open *Schedule
	for i := range in.Policy.Schedules {
		if window := &in.Policy.Schedules[i]; window.Open(in.Now) && (open == nil || window.DesiredReplicas > open.DesiredReplicas) {
			open = window
		}
	}
	if open == nil || open.DesiredReplicas == 0 || c.basis == nothing {
		return c
	}
	c.active = true
	floor := open.DesiredReplicas
	if in.Policy.EvenPartitions {
		floor = even(floor, m.partitions)
	}
	if floor >= c.replicas && c.basis == held {
		c.basis = partial // an open window is known without a measurement
	}
	if c.raise(float64(floor)) {
		return c.because("schedules", "a window is open that asks for at least %d", open.DesiredReplicas)
	}
	return c
}

// Open reports whether the window is open at t: its next end comes before its next start, both
// strictly after t. This is the rule of KEDA's cron trigger (cron_scaler.go).
func (w *Schedule) Open(t time.Time) bool {
	t = t.In(w.Location)
	return !w.Start.Next(t).Before(w.End.Next(t))
}
