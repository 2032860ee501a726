package estimator

import (
	"context"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// followSplits deals with leases whose partition key range is gone, or several
// ranges now (DESIGN 6): the leases are read once more, since a processor may
// just have replaced them; where one still stands for ranges that are not its
// own, those are read from the lease's own position.
func (t *tick) followSplits(ctx context.Context) {
	affected := goneIn(t.measured)
	if len(affected) == 0 {
		return
	}
	t.queryLeases(ctx, affected)
	t.refreshRanges(ctx, affected)
	t.readFeeds(ctx, affected)
	for _, m := range goneIn(affected) {
		t.adoptChildren(m)
	}
	t.readWanted(ctx)
	for _, m := range affected {
		m.dropDuplicates(t.rangesOf(m))
	}
}

// goneIn returns the processors that have a lease whose range is gone.
func goneIn(processors []*measured) []*measured {
	var affected []*measured
	for _, m := range processors {
		if m.err != nil {
			continue
		}
		for i := range m.leases {
			if m.leases[i].gone() {
				affected = append(affected, m)
				break
			}
		}
	}
	return affected
}

// adoptChildren asks for a page of each range that stands for a lease whose own
// is gone, or is several now. What another lease was made for is counted there,
// and a parent whose children all have theirs is a leftover that counts nothing.
func (t *tick) adoptChildren(m *measured) {
	ranges := t.rangesOf(m)
	for i := range m.leases {
		l := &m.leases[i]
		if !l.gone() {
			continue
		}
		shares, alive := l.shares(ranges)
		if alive {
			l.pages = []*page{t.again(m, l.pages[0].read)}
			continue
		}
		l.pages, l.splitting = nil, true
		covered := m.covered(i, ranges)
		for _, s := range shares {
			if !s.keys.Covered(covered) {
				t.want(m, l, s.of, s.keys)
			}
		}
		l.leftover = len(shares) > 0 && len(l.pages) == 0
	}
}

// share is what of a range a lease stands for.
type share struct {
	of   changefeed.PartitionKeyRange
	keys changefeed.Range
}

// shares are what a lease stands for, in key order; alive tells whether that is
// its own range, or for an EPK lease one. A PK-range lease whose range is gone
// stands for the descendants of that, which after a merge have keys of others
// too: of those only for what it says its range was, where it does.
func (l *measuredLease) shares(ranges changefeed.Ranges) (shares []share, alive bool) {
	if l.Range != nil {
		shares = clipped(ranges.Overlapping(*l.Range), l.Range)
		return shares, len(shares) == 1
	}
	if r, alive := ranges.Find(l.Token); alive {
		return []share{{r, r.Span()}}, true
	}
	children := ranges.Children(l.Token)
	if shares = clipped(children, l.Bounds); len(shares) == 0 {
		shares = clipped(children, nil)
	}
	return shares, false
}

// clipped returns what of the ranges lies within bounds, or all where these are
// unknown.
func clipped(ranges changefeed.Ranges, bounds *changefeed.Range) []share {
	var shares []share
	for _, r := range ranges {
		switch {
		case bounds == nil:
			shares = append(shares, share{r, r.Span()})
		case bounds.Overlaps(r.Span()):
			shares = append(shares, share{r, r.Span().Clip(*bounds)})
		}
	}
	return shares
}

// covered is what the leases that were made in the place of one whose range is
// gone stand for: those that work in a range that exists, those for a part of
// its keys, and for a PK-range lease the EPK lease of just its keys. None of two
// leases thus ever stands in for the other and the other way round.
func (m *measured) covered(old int, ranges changefeed.Ranges) []changefeed.Range {
	keys, _ := m.leases[old].keys(ranges)
	var covered []changefeed.Range
	for i := range m.leases {
		l := &m.leases[i]
		if i == old || l.leftover {
			continue
		}
		own, alive := l.keys(ranges)
		same := own.Equal(keys)
		if alive || own.Within(keys) && !same || same && l.Range != nil && m.leases[old].Range == nil {
			covered = append(covered, own)
		}
	}
	return covered
}

// keys are all that a lease stands for.
func (l *measuredLease) keys(ranges changefeed.Ranges) (keys changefeed.Range, alive bool) {
	shares, alive := l.shares(ranges)
	if len(shares) > 0 {
		keys = changefeed.Range{Min: shares[0].keys.Min, Max: shares[len(shares)-1].keys.Max}
	}
	return keys, alive
}

// again asks once more for a read whose range was said to be gone, and is not.
func (t *tick) again(m *measured, r read) *page {
	if t.reads[r].gone {
		delete(t.reads, r)
	}
	return t.page(m, r)
}

// rangesOf are the partition key ranges of a processor's container, nil where
// nothing needed them yet.
func (t *tick) rangesOf(m *measured) changefeed.Ranges {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ranges[m.source()]
}

// needRanges reads the ranges of the containers whose processors have EPK leases,
// unless they are known from an earlier tick.
func (t *tick) needRanges(ctx context.Context, processors []*measured) {
	var unknown []*measured
	for _, m := range processors {
		if m.err == nil && m.hasEPK() && t.rangesOf(m) == nil {
			unknown = append(unknown, m)
		}
	}
	t.refreshRanges(ctx, unknown)
}

func (m *measured) hasEPK() bool {
	for i := range m.leases {
		if m.leases[i].Range != nil {
			return true
		}
	}
	return false
}

// refreshRanges reads the partition key ranges of each container once.
func (t *tick) refreshRanges(ctx context.Context, processors []*measured) {
	ctx, cancel := part(ctx, partOfPreparation)
	defer cancel()
	bySource := make(map[source][]*measured)
	var sources []source
	for _, m := range processors {
		s := m.source()
		if m.err != nil {
			continue
		}
		if bySource[s] == nil {
			sources = append(sources, s)
		}
		bySource[s] = append(bySource[s], m)
	}
	t.each(len(sources), func(i int) *cosmos.Account { return sources[i].account }, func(i int) {
		ranges, usage, err := sources[i].account.Ranges(ctx, sources[i].container)
		group := bySource[sources[i]]
		group[0].usage.Add(usage)
		for _, m := range group {
			m.err = err
		}
		t.mu.Lock()
		t.ranges[sources[i]] = ranges
		t.mu.Unlock()
	})
}
