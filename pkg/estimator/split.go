package estimator

import (
	"context"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// followSplits handles leases whose partition key range is gone or is several ranges now
// (docs/lag.md, Splits and merges). The leases are read once more, since a processor may just have
// replaced them. For one that was not replaced, the ranges that its keys are in now are read from
// the lease's own position.
func (t *tick) followSplits(ctx context.Context, unit []*measured) {
	affected := goneIn(unit)
	if len(affected) == 0 {
		return
	}
	t.queryLeases(ctx, source{affected[0].processor.LeaseAccount, affected[0].processor.LeaseContainer}, affected)
	t.refreshRanges(ctx, affected)
	t.readFeeds(ctx, affected)
	t.followForeign(ctx, affected)
	affected = goneIn(affected)
	var planned []*page
	for _, m := range affected {
		planned = append(planned, t.planReplacements(m)...)
	}
	t.readPlanned(ctx, affected, planned)
	for _, m := range affected {
		m.dropDuplicates(t.rangesOf(m))
	}
}

// followForeign looks the leases of a container up again that was created anew, by its new RID.
func (t *tick) followForeign(ctx context.Context, processors []*measured) {
	var affected []*measured
	for _, m := range processors {
		if m.err == nil && m.foreign(t.rangesOf(m)) {
			affected = append(affected, m)
		}
	}
	if len(affected) == 0 {
		return
	}
	old := affected[0].described.RID
	s := affected[0].source()
	ranges := t.rangesOf(affected[0])
	t.forget(s)
	t.setRanges(s, ranges)
	description, usage, err := t.describe(ctx, s)
	affected[0].usage.Add(usage)
	if err == nil && description.RID != old {
		t.lookUpAgain(ctx, affected)
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
func (t *tick) planReplacements(m *measured) (planned []*page) {
	ranges := t.rangesOf(m)
	for i := range m.leases {
		l := &m.leases[i]
		if !l.gone() {
			continue
		}
		shares, exists := l.shares(ranges)
		if exists {
			planned = append(planned, t.reread(m, l)...)
			continue
		}
		l.pages, l.splitting = nil, true
		covered := m.covered(i, ranges)
		for _, s := range shares {
			if !s.keys.Covered(covered) {
				planned = t.planPart(planned, m, l, s.of, s.keys)
			}
		}
		l.leftover = len(shares) > 0 && len(l.pages) == 0
	}
	return planned
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

// reread plans the read of a lease once more, whose range the service said was gone and which exists.
func (t *tick) reread(m *measured, l *measuredLease) []*page {
	position, pages := l.pages[0].position, m.source()
	t.mu.Lock()
	if p := t.reads[pages][position]; p != nil && p.gone {
		delete(t.reads[pages], position)
	}
	t.mu.Unlock()
	l.pages = nil
	return t.plan(nil, m, l, position)
}

// rangesOf returns the partition key ranges of a processor's container, nil where they were not needed
// yet.
func (e *Estimator) rangesOf(m *measured) changefeed.Ranges {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ranges[m.source()]
}

func (e *Estimator) setRanges(s source, ranges changefeed.Ranges) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ranges[s] = ranges
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

// refreshRanges reads the partition key ranges of the container that the processors monitor, once.
func (t *tick) refreshRanges(ctx context.Context, processors []*measured) {
	var group []*measured
	for _, m := range processors {
		if m.err == nil {
			group = append(group, m)
		}
	}
	if len(group) == 0 {
		return
	}
	ctx, cancel := withShare(ctx, preparationShare)
	defer cancel()
	s := group[0].source()
	ranges, usage, err := s.account.Ranges(ctx, s.container)
	group[0].usage.Add(usage)
	for _, m := range group {
		m.err = err
	}
	if err == nil {
		t.setRanges(s, ranges)
	}
}
