package estimator

import "github.com/feedscale/feedscale/pkg/changefeed"

// dropDuplicates marks the older of two leases that cover the same keys, one by range id and one by
// bounds, as a leftover. There are such pairs for a while when a processor goes over from PK-range
// to EPK leases.
func (m *measured) dropDuplicates(ranges changefeed.Ranges) {
	var byBounds, byID []*measuredLease
	for i := range m.leases {
		switch l := &m.leases[i]; {
		case l.Err != nil:
		case l.Range != nil:
			byBounds = append(byBounds, l)
		default:
			byID = append(byID, l)
		}
	}
	for _, epk := range byBounds {
		for _, pk := range byID {
			if !pk.coversExactly(*epk.Range, ranges) {
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

// coversExactly reports whether a PK-range lease covers exactly the keys of a span: those of its
// range or, where the range is gone, the bounds that the lease itself holds.
func (l *measuredLease) coversExactly(span changefeed.Range, ranges changefeed.Ranges) bool {
	if r, exists := ranges.Find(l.Token); exists {
		return r.Span().Equal(span)
	}
	return l.Bounds != nil && l.Bounds.Equal(span)
}

// boundParts scales down the lag of leases that each cover a part of the same partition key range.
// Each is measured against the LSN of the whole range, and so counts the transactions of the other
// parts too. Together they cannot have more pending than the greatest of them: the transactions of
// the range since the oldest pending change. Each lag is scaled by that over the sum, is at least 1
// and becomes approximate; a part with nothing pending stays 0 and exact.
func (m *measured) boundParts() {
	byRange := make(map[string][]*measuredLease)
	for i := range m.leases {
		if l := &m.leases[i]; l.part() && l.pages[0].reading.Lag > 0 {
			id := l.pages[0].position.Range
			byRange[id] = append(byRange[id], l)
		}
	}
	for _, parts := range byRange {
		boundRange(parts)
	}
}

// part reports whether a lease covers a part of a range, which was read.
func (l *measuredLease) part() bool {
	return !l.leftover && !l.splitting && len(l.pages) == 1 && l.pages[0].err == nil && !l.pages[0].gone &&
		l.pages[0].position.Part != changefeed.Range{}
}

func boundRange(parts []*measuredLease) {
	// In floating point: with an absurd session LSN the sum of two lags may exceed 64 bits.
	sum, most, oldest := 0.0, int64(0), 0 // the part with the oldest pending change has the greatest lag
	for i, l := range parts {
		lag := l.pages[0].reading.Lag
		sum += float64(lag)
		if lag > most {
			most, oldest = lag, i
		}
	}
	left := most
	for _, l := range parts {
		bounded := *l.pages[0] // other processors may share the page
		bounded.reading.Lag = max(1, int64(float64(bounded.reading.Lag)*float64(most)/sum))
		bounded.reading.Approximate = true
		left -= bounded.reading.Lag
		l.pages[0] = &bounded
	}
	if left > 0 {
		parts[oldest].pages[0].reading.Lag += left // the remainder of rounding down
	}
}
