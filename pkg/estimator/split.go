package estimator

import (
	"context"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// followSplits handles leases whose partition key range is gone or is several ranges now
// (docs/lag.md, Splits and merges). The leases are read once more, since a processor may just have
// replaced them. For one that was not replaced, the ranges that its keys are in now are read from
// the lease's own position.
func (t *tick) followSplits(ctx context.Context, unit []*measured) {
	affected := those(unit, (*measured).splitting)
	if len(affected) == 0 {
		return
	}
	t.queryLeases(ctx, affected)
	t.refreshRanges(ctx, affected)
	t.readFeeds(ctx, affected)
	t.lookUpAgain(ctx, those(affected, (*measured).foreign))
	affected = those(affected, (*measured).splitting)
	var planned []*page
	for _, m := range affected {
		planned = append(planned, t.planReplacements(m)...)
	}
	t.readPlanned(ctx, affected, planned)
	for _, m := range affected {
		changefeed.MarkLeftovers(m.planned(), m.ranges.known())
	}
}

// splitting reports whether the range of a lease is gone.
func (m *measured) splitting() bool {
	return slices.ContainsFunc(m.leases, func(l measuredLease) bool { return l.gone() })
}

// lookUpAgain starts anew for processors of a container that was deleted and created again under
// the same name since its RID was read. The leases that were found are those of the old container,
// whose positions mean nothing in the new one.
func (t *tick) lookUpAgain(ctx context.Context, affected []*measured) {
	if len(affected) == 0 {
		return
	}
	t.containers.Delete(affected[0].source())
	t.identify(ctx, affected)
	t.queryLeases(ctx, affected)
	t.readFeeds(ctx, affected)
}

// recreated reports whether an answer of the change feed names another container than the one whose
// leases were looked up. What is no RID is ignored.
func (m *measured) recreated() bool {
	return slices.ContainsFunc(m.leases, func(l measuredLease) bool {
		return slices.ContainsFunc(l.pages, func(p *page) bool {
			_, err := changefeed.DatabaseRID(p.containerRID)
			return err == nil && p.containerRID != m.described.RID
		})
	})
}

// foreign reports whether every lease names a range that the container neither has nor had. That
// tells that it was created again where no answer names its RID.
func (m *measured) foreign() bool {
	ranges := m.ranges.known()
	return len(m.leases) > 0 && !slices.ContainsFunc(m.leases, func(l measuredLease) bool {
		_, exists := ranges.Find(l.Token)
		return l.Err != nil || l.Range != nil || !l.gone() || exists || len(ranges.Children(l.Token)) > 0
	})
}

// planReplacements plans a page for each range that replaced the range of a lease, without those that
// another lease counts. A lease whose range the service said was gone, and which exists, is read once more.
func (t *tick) planReplacements(m *measured) (planned []*page) {
	all := m.planned()
	for i := range m.leases {
		l := &m.leases[i]
		if !l.gone() {
			continue
		}
		if l.Locate(all, m.ranges.known()) {
			t.mu.Lock()
			if p, reads := l.pages[0], t.reads[m.source()]; reads[p.position] == p {
				delete(reads, p.position)
			}
			t.mu.Unlock()
		}
		planned = append(planned, t.plan(m, l)...)
	}
	return planned
}

// needRanges reads the ranges of containers whose processors have EPK leases, unless they are known
// from an earlier tick.
func (t *tick) needRanges(ctx context.Context, processors []*measured) {
	t.refreshRanges(ctx, those(processors, func(m *measured) bool {
		return m.ranges.known() == nil && slices.ContainsFunc(m.leases, func(l measuredLease) bool { return l.Range != nil })
	}))
}

// refreshRanges reads the partition key ranges of the container that the processors monitor, once.
// Without them the processors are unknown.
func (t *tick) refreshRanges(ctx context.Context, processors []*measured) {
	var err error
	for i, m := range those(processors, func(*measured) bool { return true }) {
		if i == 0 {
			err = t.readRanges(ctx, m, func(time.Time, error) bool { return false })
		}
		m.err = err
	}
}
