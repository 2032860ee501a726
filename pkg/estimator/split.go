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

// adoptChildren asks for a page of each range that stands for a PK-range lease
// whose own is gone. A child that has a lease of its own is counted there, and
// a parent all of whose children do is a leftover that counts nothing.
func (t *tick) adoptChildren(m *measured) {
	ranges := t.rangesOf(m)
	for i := range m.leases {
		l := &m.leases[i]
		if l.Range != nil || !l.gone() {
			continue
		}
		children := ranges.Children(l.Token)
		if len(children) == 0 {
			if _, alive := ranges.Find(l.Token); alive {
				l.pages = []*page{t.again(m, l.pages[0].read)}
			} else {
				l.pages, l.splitting = nil, true
			}
			continue
		}
		l.splitting = true
		l.pages = nil
		covered := m.covered(i, ranges)
		for _, child := range children {
			if part := l.partOf(child); !part.Covered(covered) {
				t.want(m, l, child, part)
			}
		}
		l.leftover = len(l.pages) == 0
	}
}

// partOf is what of a child of its range a PK-range lease stands for: all of a
// child of a split, and its own part of a merged one, where it says which.
func (l *measuredLease) partOf(child changefeed.PartitionKeyRange) changefeed.Range {
	if l.Bounds != nil && l.Bounds.Overlaps(child.Span()) {
		return child.Span().Clip(*l.Bounds)
	}
	return child.Span()
}

// covered is what the other leases of a processor stand for.
func (m *measured) covered(except int, ranges changefeed.Ranges) []changefeed.Range {
	var covered []changefeed.Range
	for i := range m.leases {
		l := &m.leases[i]
		switch {
		case i == except:
		case l.Range != nil:
			covered = append(covered, *l.Range)
		default:
			if r, alive := ranges.Find(l.Token); alive {
				covered = append(covered, r.Span())
			}
		}
	}
	return covered
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
