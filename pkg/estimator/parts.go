package estimator

import (
	"math/big"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// dropDuplicates leaves of two leases that cover the same keys, one by the id of
// their range and one by its bounds, the newer: a processor that goes over from
// PK-range to EPK leases leaves the old ones for a while.
func (m *measured) dropDuplicates(ranges changefeed.Ranges) {
	for i := range m.leases {
		epk := &m.leases[i]
		if epk.Err != nil || epk.Range == nil {
			continue
		}
		for j := range m.leases {
			pk := &m.leases[j]
			if pk.Err != nil || pk.Range != nil || !pk.stands(*epk.Range, ranges) {
				continue
			}
			if pk.Newer(epk.Lease) {
				epk.leftover = true
			} else {
				pk.leftover = true
			}
		}
	}
}

// stands tells whether a PK-range lease covers just the keys of a span: those of
// its range, or where that is gone those it says it had.
func (l *measuredLease) stands(span changefeed.Range, ranges changefeed.Ranges) bool {
	if r, alive := ranges.Find(l.Token); alive {
		return r.Span().Equal(span)
	}
	return l.Bounds != nil && l.Bounds.Equal(span)
}

// boundParts lowers what the parts of one partition key range are counted as.
// Each is measured against the LSN of the whole range, so that each counts the
// others' transactions too. Together they cannot have more pending than the
// range has transactions since the oldest that is pending in any of them: what
// the sum exceeds that by is taken off, from each its share. The result is
// marked as approximate, but for a part with nothing pending.
func (m *measured) boundParts() {
	byRange := make(map[string][]*measuredLease)
	for i := range m.leases {
		if l := &m.leases[i]; l.part() {
			id := l.pages[0].read.position.Range
			byRange[id] = append(byRange[id], l)
		}
	}
	for _, parts := range byRange {
		boundRange(parts)
	}
}

// part tells whether a lease was measured in a part of a range.
func (l *measuredLease) part() bool {
	return !l.leftover && !l.splitting && len(l.pages) == 1 && l.pages[0].err == nil && !l.pages[0].gone &&
		l.pages[0].read.position.Part != changefeed.Range{} && l.pages[0].reading.Lag > 0
}

func boundRange(parts []*measuredLease) {
	sum, most, oldest := new(big.Int), int64(0), 0 // the part with the oldest pending change has the most
	for i, l := range parts {
		lag := l.pages[0].reading.Lag
		sum.Add(sum, big.NewInt(lag))
		if lag > most {
			most, oldest = lag, i
		}
	}
	left := most
	for _, l := range parts {
		bounded := *l.pages[0] // other processors may share the page
		// What a senseless session makes of two lags may be beyond 64 bits.
		share := new(big.Int).Mul(big.NewInt(bounded.reading.Lag), big.NewInt(most))
		bounded.reading.Lag = max(1, share.Quo(share, sum).Int64())
		bounded.reading.Approximate = true
		left -= bounded.reading.Lag
		l.pages[0] = &bounded
	}
	if left > 0 {
		parts[oldest].pages[0].reading.Lag += left // what rounding took off
	}
}
