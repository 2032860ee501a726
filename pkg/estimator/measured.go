package estimator

import (
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// measured is what is known about one processor in the course of a tick.
type measured struct {
	processor Processor
	rid       string // of the monitored container, as its leases were looked up by
	prefixes  []string
	leases    []measuredLease
	usage     cosmos.Usage
	err       error // why the whole processor is unknown
}

// measuredLease is one lease, and the pages that say how far behind it is.
type measuredLease struct {
	changefeed.LeaseDocument
	pages     []*page
	splitting bool // its range is gone, or is several ranges now; pages are those of the ranges that replaced it
	leftover  bool // other leases cover all of it, so it is not counted
}

func (m *measured) source() source {
	return source{m.processor.Account, m.processor.Container}
}

// unreadable reports whether there is no position to read a lease from.
func (m *measured) unreadable(l *measuredLease) bool {
	return l.Err != nil || m.uncheckpointed(l)
}

// startFrom returns where a lease without a continuation starts: as the lease itself says, else as
// configured.
func (m *measured) startFrom(l *measuredLease) changefeed.StartFrom {
	if l.StartFrom != nil {
		return *l.StartFrom
	}
	return m.processor.StartFrom
}

// uncheckpointed reports whether a lease has no continuation and its processor starts from now, so
// that nothing says what is pending. The feed of all versions and deletes can be read from now on
// only, whatever startFrom says.
func (m *measured) uncheckpointed(l *measuredLease) bool {
	return l.Continuation == "" && (m.startFrom(l).Now() || l.Mode == changefeed.FullFidelity)
}

// read returns the position of a lease in a partition key range, or in a part of it.
func (m *measured) read(l *measuredLease, rangeID string, part changefeed.Range) read {
	r := read{
		source:   m.source(),
		position: cosmos.Position{Mode: l.Mode, Range: rangeID, Part: part, Continuation: l.Continuation},
	}
	if l.Continuation == "" {
		r.position.Since = m.startFrom(l).Time
	}
	return r
}

// gone reports whether a lease's range was split or merged, as far as was read.
func (l *measuredLease) gone() bool {
	for _, p := range l.pages {
		if p.gone {
			return true
		}
	}
	return l.splitting
}

// lag returns what the tick measured of the processor.
func (m *measured) lag(now time.Time) changefeed.ProcessorLag {
	lag := changefeed.ProcessorLag{Time: now, Charge: m.usage.Charge, Requests: m.usage.Requests, Delay: m.usage.Delay}
	if m.err != nil {
		lag.Error = m.err.Error()
		return lag
	}
	lag.Bootstrap = len(m.leases) == 0
	m.boundParts()
	for i := range m.leases {
		if l := &m.leases[i]; !l.leftover {
			lag.Partitions = append(lag.Partitions, m.partition(l))
		}
	}
	return lag
}

// partition applies the table of docs/lag.md (What each answer counts) to one lease.
func (m *measured) partition(l *measuredLease) changefeed.Partition {
	partition := changefeed.Partition{
		Lease: l.Token, Range: l.Range, Owner: l.Owner, LeaseTime: l.Time, Position: l.Continuation,
		Status: changefeed.StatusUnknown,
	}
	if lsn, ok := changefeed.ContinuationLSN(l.Continuation); ok {
		partition.CheckpointLSN = &lsn
	}
	switch {
	case l.Err != nil:
		partition.Error = fmt.Sprintf("lease %s: %v", l.ID, l.Err)
	case m.uncheckpointed(l):
		partition.Lag, partition.Status = one(), changefeed.StatusUncheckpointed
	case l.gone():
		sumPages(&partition, l.pages)
	case l.pages[0].err != nil:
		partition.Error = l.pages[0].err.Error()
	default:
		applyReading(&partition, l.pages[0].reading)
	}
	return partition
}

func applyReading(partition *changefeed.Partition, r changefeed.Reading) {
	lag := r.Lag
	partition.Lag, partition.Age, partition.Approximate = &lag, r.Age, r.Approximate
	partition.SessionLSN = r.SessionLSN
	partition.Status = changefeed.StatusOK
	if lag > 0 {
		partition.Status = changefeed.StatusLagging
	}
}

// sumPages measures a lease whose range is gone as the sum over the ranges that replaced it. It is
// at least 1, since only a running processor can replace the lease. A range that is gone in turn
// counts 1, approximate.
func sumPages(partition *changefeed.Partition, pages []*page) {
	sum := int64(0)
	partition.Status = changefeed.StatusSplitting
	partition.Ranges = len(pages)
	partition.Approximate = len(pages) == 0
	for _, p := range pages {
		switch {
		case p.gone:
			sum = changefeed.AddLag(sum, 1)
			partition.Approximate = true
		case p.err != nil:
			partition.Error = p.err.Error()
		default:
			sum = changefeed.AddLag(sum, p.reading.Lag)
			partition.Approximate = partition.Approximate || p.reading.Approximate
			if age := p.reading.Age; age != nil && (partition.Age == nil || *age > *partition.Age) {
				partition.Age = age
			}
		}
	}
	sum = max(1, sum)
	partition.Lag = &sum
}

func one() *int64 {
	n := int64(1)
	return &n
}
