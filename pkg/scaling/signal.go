package scaling

import (
	"math"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// signal is what of a measurement asks for replicas: all of it, but for the
// partitions that excludeStalled leaves out.
type signal struct {
	lag     int64  // pending transactions
	age     *int64 // seconds since the oldest pending change was written; nil where nothing is pending
	lagging int    // partitions with pending changes
	unknown int    // partitions that may have some

	excluded    int   // partitions left out
	excludedLag int64 // and what is pending in them
}

// signal reads the signal of a measurement of which something is known.
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
	return sum
}

// excluded tells whether a partition is left out: an earlier poll has reported
// it as stalled, and it stands where it stood. More replicas do not move a
// partition that its owner cannot get past, as KEDA's excludePersistentLag knows
// of Kafka.
func (s *steps) excluded(p *changefeed.Partition) bool {
	return s.Policy.ExcludeStalled && s.next.Progress[p.Lease].Stalled && s.Memory.Progress[p.Lease].Stalled
}

// evenPartitions goes on to the next count at which every replica owns the same
// number of partitions, as KEDA's kafka scaler does with
// ensureEvenDistributionOfPartitions: the replica with the most partitions sets
// the pace, and is no faster for a neighbour that has fewer. The metric follows,
// so that a scaler that reads it comes to the same count.
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

// hotPartition lets no partition ask for more replicas than can help it, where
// limitToPartitionsWithLag says so: one replica works on a partition, so that of
// more than there are partitions with a backlog the others have nothing to do,
// whatever the rates and the age ask for. What is unknown may have a backlog. As
// in KEDA this cap comes after the even count.
func (s *steps) hotPartition() {
	if !s.Policy.LimitToPartitionsWithLag || !s.active {
		return
	}
	able := max(1, s.demand.lagging+s.demand.unknown)
	s.metric = min(s.metric, int64(able)*s.Policy.Threshold)
	if s.replicas > able {
		s.replicas, s.ratio = able, float64(able)
		s.because("hotPartition", "more replicas than %d partitions with a backlog cannot help it", able)
	}
}

// even returns the least count, n or above, that divides the partitions; n
// itself where it is above them.
func even(n, partitions int) int {
	for count := max(1, n); count <= partitions; count++ {
		if partitions%count == 0 {
			return count
		}
	}
	return n
}
