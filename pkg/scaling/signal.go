package scaling

import (
	"math"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// signal is the part of a measurement that asks for replicas: all partitions but those that
// excludeStalled leaves out.
type signal struct {
	lag     int64  // pending transactions
	age     *int64 // seconds since the oldest pending change was written; nil where nothing is pending
	lagging int    // partitions with pending changes
	unknown int    // partitions that could not be measured

	excluded    int   // partitions left out
	excludedLag int64 // pending transactions in them
}

// signal sums up a measurement of which at least one partition is known.
func (s *steps) signal() signal {
	if s.Lag.Bootstrap {
		return signal{lag: *s.Lag.Lag(), lagging: 1}
	}
	var sum signal
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		switch {
		case p.Lag == nil:
			sum.unknown += p.Count()
			continue
		case s.excluded(p):
			sum.excluded++
			sum.excludedLag = changefeed.AddLag(sum.excludedLag, *p.Lag)
			continue
		}
		sum.lag = changefeed.AddLag(sum.lag, *p.Lag)
		if p.Pending() {
			sum.lagging++
		}
		if p.Age != nil && (sum.age == nil || *p.Age > *sum.age) {
			sum.age = p.Age
		}
	}
	if s.uncheckpointed > 0 {
		sum.lag = max(1, sum.lag) // as ProcessorLag.Lag has it
	}
	return sum
}

// excluded is the rule excludeStalled, step 5 of docs/decide.md: it reports whether a partition is
// left out, but for the one replica that owns it, because an earlier poll reported it as stalled and
// its position has not moved since.
// More replicas do not help a partition whose owner cannot get past a change; KEDA's
// excludePersistentLag is the same rule for Kafka.
func (s *steps) excluded(p *changefeed.Partition) bool {
	return s.Policy.ExcludeStalled && s.next.Progress[p.Lease].Stalled && s.Memory.Progress[p.Lease].Stalled
}

// maxLeasesPerReplica is step 5 of docs/decide.md: while changes are pending, it raises the replicas
// to as many as the leases need at so many each, as maxActiveLeasesPerReplica of KEDA 2.22's
// azure-cosmosdb scaler does, but over all leases, not only those with lag. metricValue is raised alike.
func (s *steps) maxLeasesPerReplica() {
	most := s.Policy.MaxLeasesPerReplica
	if most <= 0 || !s.active || s.demand.lagging == 0 {
		return
	}
	count := (s.partitions + most - 1) / most
	s.metric = max(s.metric, int64(count)*s.Policy.Threshold)
	if s.raise(float64(count)) {
		s.because("maxLeasesPerReplica", "%d leases at %d per replica", s.partitions, most)
	}
}

// evenPartitions is step 5 of docs/decide.md: it raises the replicas to the next count that divides
// the number of partitions, as KEDA's kafka scaler does with ensureEvenDistributionOfPartitions.
// The replica with the most partitions determines when the lag is drained, and one that has fewer
// cannot take work off it. metricValue is raised alike, so that a scaler that reads it arrives at
// the same count.
func (s *steps) evenPartitions() {
	if !s.Policy.EvenPartitions || !s.active {
		return
	}
	asked := int(math.Ceil(float64(s.metric) / float64(s.Policy.Threshold)))
	s.metric = int64(even(asked, s.partitions)) * s.Policy.Threshold
	if count := even(s.replicas, s.partitions); s.raise(float64(count)) {
		s.because("evenPartitions", "every replica owns %d of %d partitions", s.partitions/count, s.partitions)
	}
}

// hotPartition is step 5 of docs/decide.md too, where limitToPartitionsWithLag is set: it lowers
// the replicas to the number of partitions with lag, unknown ones included, at least 1. Only one
// replica works on a partition, so more would have nothing to do, whatever steps 3 and 4 ask for.
// As in KEDA, this cap comes after the even count.
func (s *steps) hotPartition() {
	if !s.Policy.LimitToPartitionsWithLag || !s.active {
		return
	}
	able := max(1, s.demand.lagging+s.demand.unknown)
	s.metric = min(s.metric, int64(able)*s.Policy.Threshold)
	if s.replicas > able {
		s.replicas, s.usage = able, usage{float64(able), 1}
		s.because("hotPartition", "more replicas than %d partitions with a backlog cannot help it", able)
	}
}

// even returns the smallest count from n up that divides the number of partitions; n itself where
// it is greater than that.
func even(n, partitions int) int {
	for count := max(1, n); count <= partitions; count++ {
		if partitions%count == 0 {
			return count
		}
	}
	return n
}
