package estimator

import (
	"context"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// followSplits handles leases whose partition key range is gone or is several ranges now
// (docs/lag.md, Splits and merges). The leases are read once more, since a processor may just have
// replaced them. For one that was not replaced, the ranges that its keys are in now are read from
// the lease's own position.
func (t *tick) followSplits(ctx context.Context) {
	affected := goneIn(t.measured)
	if len(affected) == 0 {
		return
	}
	t.queryLeases(ctx, affected)
	t.refreshRanges(ctx, affected)
	t.readFeeds(ctx, affected)
	for _, m := range goneIn(affected) {
		t.planReplacements(m)
	}
	t.readPlanned(ctx)
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

// planReplacements plans a page for each range that replaced the range of a lease. Keys for which a
// newer lease exists are counted with that lease; a lease all of whose keys have one is a leftover
// and is not counted.
func (t *tick) planReplacements(m *measured) {
	ranges := t.rangesOf(m)
	for i := range m.leases {
		l := &m.leases[i]
		if !l.gone() {
			continue
		}
		shares, exists := l.shares(ranges)
		if exists {
			l.pages = []*page{t.reread(m, l.pages[0].read)}
			continue
		}
		l.pages, l.splitting = nil, true
		covered := m.covered(i, ranges)
		for _, s := range shares {
			if !s.keys.Covered(covered) {
				t.plan(m, l, s.of, s.keys)
			}
		}
		l.leftover = len(shares) > 0 && len(l.pages) == 0
	}
}

// share is the part of a range that a lease stands for.
type share struct {
	of   changefeed.PartitionKeyRange
	keys changefeed.Range
}

// shares returns what a lease stands for, in key order. exists reports whether its own range still
// exists or, for an EPK lease, whether its keys are in one range. A PK-range lease whose range is
// gone stands for the descendants of that range. After a merge these have keys of other ranges too;
// then it stands for the part within its own bounds, where the lease holds these.
func (l *measuredLease) shares(ranges changefeed.Ranges) (shares []share, exists bool) {
	if l.Range != nil {
		shares = clipped(ranges.Overlapping(*l.Range), l.Range)
		return shares, len(shares) == 1
	}
	if r, exists := ranges.Find(l.Token); exists {
		return []share{{r, r.Span()}}, true
	}
	children := ranges.Children(l.Token)
	if shares = clipped(children, l.Bounds); len(shares) == 0 {
		shares = clipped(children, nil)
	}
	return shares, false
}

// clipped returns the parts of the ranges that lie within bounds, or the whole ranges where bounds
// is nil.
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

// covered returns the keys for which leases exist that replaced the lease with index old, whose
// range is gone: leases whose range exists, leases for a part of its keys and, where old is a
// PK-range lease, the EPK lease for exactly its keys. The relation is never mutual, so that of two
// leases one is always counted.
func (m *measured) covered(old int, ranges changefeed.Ranges) []changefeed.Range {
	keys, _ := m.leases[old].keys(ranges)
	var covered []changefeed.Range
	for i := range m.leases {
		l := &m.leases[i]
		if i == old || l.leftover {
			continue
		}
		own, exists := l.keys(ranges)
		same := own.Equal(keys)
		if exists || own.Within(keys) && !same || same && l.Range != nil && m.leases[old].Range == nil {
			covered = append(covered, own)
		}
	}
	return covered
}

// keys returns the bounds of all that a lease stands for.
func (l *measuredLease) keys(ranges changefeed.Ranges) (keys changefeed.Range, exists bool) {
	shares, exists := l.shares(ranges)
	if len(shares) > 0 {
		keys = changefeed.Range{Min: shares[0].keys.Min, Max: shares[len(shares)-1].keys.Max}
	}
	return keys, exists
}

// reread plans a read once more, whose range the service said was gone and which exists.
func (t *tick) reread(m *measured, r read) *page {
	if t.reads[r].gone {
		delete(t.reads, r)
	}
	return t.page(m, r)
}

// rangesOf returns the partition key ranges of a processor's container, nil where they were not
// needed yet.
func (t *tick) rangesOf(m *measured) changefeed.Ranges {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ranges[m.source()]
}

// needRanges reads the ranges of containers whose processors have EPK leases, unless they are known
// from an earlier tick.
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

// refreshRanges reads the partition key ranges of the processors' containers, each once.
func (t *tick) refreshRanges(ctx context.Context, processors []*measured) {
	ctx, cancel := withShare(ctx, preparationShare)
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
