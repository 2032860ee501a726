package estimator

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// readRangesAgainAfter is how long the partition key ranges of a container count as fresh.
const readRangesAgainAfter = 5 * time.Minute

// shared is the partition key ranges of a container, which all processors share that monitor it.
type shared struct {
	once   sync.Mutex // held while they are read
	ranges changefeed.Ranges
	rid    string    // of the container that has them
	tried  time.Time // last read
	err    error     // of it; ranges are then those of an earlier one
}

// sharedOf returns the ranges of the container that a processor monitors.
func (e *Estimator) sharedOf(m *measured) *shared {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.ranges[m.source()]
	if s == nil || s.rid != m.described.RID {
		s = &shared{rid: m.described.RID}
		e.ranges[m.source()] = s
	}
	return s
}

// rangesOf returns the partition key ranges of a processor's container; nil if they were never
// read.
func (e *Estimator) rangesOf(m *measured) changefeed.Ranges {
	s := e.sharedOf(m)
	e.mu.Lock()
	defer e.mu.Unlock()
	return s.ranges
}

// readRanges reads the partition key ranges of the container that a processor monitors, if the last
// read is not fresh. It returns the error of the last read.
func (t *tick) readRanges(ctx context.Context, m *measured, fresh func(tried time.Time) bool) error {
	s := t.sharedOf(m)
	s.once.Lock()
	defer s.once.Unlock()
	if fresh(s.tried) {
		return s.err
	}
	ctx, cancel := withShare(ctx, preparationShare)
	defer cancel()
	ranges, usage, err := m.processor.Account.Ranges(ctx, m.processor.Container)
	m.usage.Add(usage)
	t.Estimator.mu.Lock()
	defer t.Estimator.mu.Unlock()
	if s.tried, s.err = t.now(), err; err == nil {
		s.ranges = ranges
	}
	return err
}

// cover looks for keys that no lease covers (docs/lag.md, Keys that no lease covers). The ranges
// are read every five minutes, and when leases have changed. If a read fails, what is known stays.
func (t *tick) cover(ctx context.Context, unit []*measured) {
	for _, m := range unit {
		m.coverage = m.lastLag.Coverage
		if m.err != nil || len(m.leases) == 0 {
			continue
		}
		same := m.sameLeases()
		changed := !same && len(m.lastLag.Partitions) > 0 || m.outdates(t.rangesOf(m))
		err := t.readRanges(ctx, m, func(tried time.Time) bool {
			return t.now().Sub(tried).Abs() < readRangesAgainAfter && (!changed || tried.After(t.began)) // by a clock that may have been ahead
		})
		switch {
		case err == nil:
			m.coverage.Failing = time.Time{}
		case m.coverage.Failing.IsZero(), m.coverage.Failing.After(t.now()):
			m.coverage.Failing = t.now()
		}
		seen := sight{first: m.lastLag.Time.IsZero(), same: same, marked: m.marked, splitting: len(goneIn([]*measured{m})) > 0}
		seen.holes, seen.known = t.rangesOf(m).Uncovered(m.each())
		m.coverage = seen.next(m.coverage)
	}
}

// outdates reports whether a lease names a range that the ranges do not know.
func (m *measured) outdates(ranges changefeed.Ranges) bool {
	unreadable := func(l measuredLease) bool { return l.Err != nil }
	_, known := ranges.Uncovered(m.each())
	return !known && !slices.ContainsFunc(m.leases, unreadable)
}

// sameLeases reports whether the leases are those of the last tick.
func (m *measured) sameLeases() bool {
	known := make(map[string]bool, len(m.lastLag.Leftover))
	for _, token := range m.lastLag.Leftover {
		known[token] = true
	}
	for i := range m.leases {
		if l := &m.leases[i]; m.before(l) == nil && !known[l.Token] {
			return false
		}
	}
	return len(m.leases) == len(m.lastLag.Partitions)+len(m.lastLag.Leftover)
}

// each returns the leases.
func (m *measured) each() iter.Seq[*changefeed.Lease] {
	return func(yield func(*changefeed.Lease) bool) {
		for i := range m.leases {
			if !yield(&m.leases[i].Lease) {
				return
			}
		}
	}
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
	c.Polls, c.Uncertain = min(coverPolls, c.Polls+1), nil
	switch {
	case !s.known:
		return c
	case len(s.holes) == 0, c.Polls >= needed && !s.splitting:
		c.Holes = append([]changefeed.Range{}, s.holes...)
	case !s.splitting:
		c.Uncertain = s.holes
	}
	if c.Holes == nil {
		c.Holes = []changefeed.Range{}
	}
	return c
}
