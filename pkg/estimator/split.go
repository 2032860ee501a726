package estimator

import (
	"cmp"
	"context"
	"time"

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
	t.forget(s)
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
		shares, exists := ranges.Shares(&l.Lease)
		if exists {
			planned = append(planned, t.reread(m, l)...)
			continue
		}
		l.pages, l.splitting = nil, true
		covered := m.covered(i, ranges)
		for _, s := range shares {
			if len(s.Keys.Gaps(covered)) > 0 {
				planned = t.plan(planned, m, l, m.position(l, s.Of.ID, s.Part()))
			}
		}
		l.leftover = len(shares) > 0 && len(l.pages) == 0
	}
	return planned
}

// covered returns the keys for which leases exist that replaced the lease with index old, whose range is
// gone.
func (m *measured) covered(old int, ranges changefeed.Ranges) []changefeed.Range {
	var covered []changefeed.Range
	for i := range m.leases {
		l := &m.leases[i]
		if i == old || l.leftover {
			continue
		}
		if keys, ok := l.Replaces(m.leases[old].Lease, ranges); ok {
			covered = append(covered, keys)
		}
	}
	return covered
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
// Without them the processors are unknown.
func (t *tick) refreshRanges(ctx context.Context, processors []*measured) {
	never := func(time.Time) bool { return false }
	for i, m := range processors {
		if m.err == nil {
			m.err = t.readRanges(ctx, m, never)
			for _, other := range processors[i+1:] {
				other.err = cmp.Or(other.err, m.err)
			}
			return
		}
	}
}
