package estimator

import "github.com/feedscale/feedscale/pkg/changefeed"

// dropDuplicates marks the older of two leases that cover the same keys, one by range id and one by
// bounds, as a leftover.
func (m *measured) dropDuplicates(ranges changefeed.Ranges) {
	var leases []*changefeed.Lease
	for i := range m.leases {
		if m.leases[i].Err == nil {
			leases = append(leases, &m.leases[i].Lease)
		}
	}
	leftover := changefeed.Leftovers(leases, ranges)
	for i := range m.leases {
		m.leases[i].leftover = m.leases[i].leftover || leftover[&m.leases[i].Lease]
	}
}

// boundParts scales down the lag of leases that each cover a part of the same partition key range;
// a part with nothing pending stays 0 and exact.
func (m *measured) boundParts() {
	byRange := make(map[string][]*measuredLease)
	for i := range m.leases {
		if l := &m.leases[i]; l.part() && l.pages[0].reading.Lag > 0 {
			id := l.pages[0].position.Range
			byRange[id] = append(byRange[id], l)
		}
	}
	for _, parts := range byRange {
		readings := make([]*changefeed.Reading, len(parts))
		for i, l := range parts {
			bounded := *l.pages[0] // other processors may share the page
			l.pages[0], readings[i] = &bounded, &bounded.reading
		}
		changefeed.ScaleParts(readings)
	}
}

// part reports whether a lease covers a part of a range, which was read.
func (l *measuredLease) part() bool {
	return !l.leftover && !l.splitting && len(l.pages) == 1 && l.pages[0].err == nil && !l.pages[0].gone &&
		l.pages[0].position.Part != changefeed.Range{}
}
