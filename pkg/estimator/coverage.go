package estimator

import (
	"context"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// readRanges reads the partition key ranges of the container that a processor monitors, if the last
// read is not fresh. It returns the error of the last read.
func (t *tick) readRanges(ctx context.Context, m *measurement, fresh func(tried time.Time, _ error) bool) error {
	_, err := m.ranges.get(t.now, fresh, func() (changefeed.Ranges, error) {
		ctx, cancel := withShare(ctx, preparationShare)
		defer cancel()
		ranges, usage, err := m.processor.Account.Ranges(ctx, m.processor.Container)
		m.usage.Add(usage)
		return ranges, err
	})
	return err
}

// cover looks for keys that no lease covers (docs/lag.md, Keys that no lease covers). The ranges
// are read every five minutes, and when leases have changed. If a read fails, what is known stays.
func (t *tick) cover(ctx context.Context, unit []*measurement) {
	for _, m := range unit {
		m.coverage = m.lastLag.Coverage
		if m.err != nil || len(m.leases) == 0 {
			continue
		}
		leases := make([]*changefeed.Lease, len(m.leases))
		for i := range m.leases {
			leases[i] = &m.leases[i].Lease
		}
		same := m.sameLeases()
		unreadable := slices.ContainsFunc(m.leases, func(l measuredLease) bool { return l.Err != nil })
		_, known := m.ranges.known().Uncovered(leases)
		changed := !same && len(m.lastLag.Partitions) > 0 || !known && !unreadable // a lease names a new range
		err := t.readRanges(ctx, m, func(tried time.Time, _ error) bool {
			return t.now().Sub(tried).Abs() < readAgainAfter && (!changed || tried.After(t.began)) // by a clock that may have been ahead
		})
		switch {
		case err == nil:
			m.coverage.Failing = time.Time{}
		case m.coverage.Failing.IsZero(), m.coverage.Failing.After(t.now()):
			m.coverage.Failing = t.now()
		}
		seen := sight{first: m.lastLag.Time.IsZero(), same: same, marked: m.marked, splitting: m.splitting()}
		seen.holes, seen.known = m.ranges.known().Uncovered(leases)
		m.coverage = seen.next(m.coverage)
	}
}

// sameLeases reports whether the leases are those of the last tick.
func (m *measurement) sameLeases() bool {
	other := func(l measuredLease) bool {
		return m.last[l.Token] == nil && !slices.Contains(m.lastLag.Leftover, l.Token)
	}
	return len(m.leases) == len(m.lastLag.Partitions)+len(m.lastLag.Leftover) && !slices.ContainsFunc(m.leases, other)
}

// coverPolls is how many polls in a row see the same leases until a hole counts, if no marker says that
// all leases were created.
const coverPolls = 3

// sight is what one poll saw of the leases of a processor.
type sight struct {
	first     bool // nothing was measured before
	same      bool // the leases are those of the poll before
	marked    bool // a marker says that all leases were created
	splitting bool // the range of a lease was split or merged, and the lease not replaced yet
	holes     []changefeed.Range
	known     bool // holes are known
}

// next returns the coverage after another poll. A hole counts once two polls have seen the same leases,
// since a query of several pages may miss a parent that its children just replaced; three polls if no
// marker exists, since leases may still be created. Until then the last result stays.
func (s sight) next(c changefeed.Coverage) changefeed.Coverage {
	needed := coverPolls
	switch {
	case s.marked && s.first:
		needed = 1
	case s.marked:
		needed = 2
	}
	if !s.same {
		c.Polls = 0
	}
	c.Polls = min(coverPolls, c.Polls+1)
	switch {
	case !s.known:
	case len(s.holes) == 0, c.Polls >= needed && !s.splitting:
		c.Holes = append([]changefeed.Range{}, s.holes...)
	case c.Holes == nil:
		c.Holes = []changefeed.Range{}
	}
	return c
}
