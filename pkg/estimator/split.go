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
func (t *tick) followSplits(ctx context.Context, unit []*measurement) {
	affected := those(unit, (*measurement).splitting)
	if len(affected) == 0 {
		return
	}
	t.mu.Lock()
	delete(t.reads, affected[0].source()) // a range that the service said was gone may be back
	t.mu.Unlock()
	t.queryLeases(ctx, affected)
	t.refreshRanges(ctx, affected)
	if foreign := those(affected, (*measurement).foreign); len(foreign) > 0 {
		t.lookUp(ctx, foreign)
		t.refreshRanges(ctx, foreign)
	}
	t.readShares(ctx, affected, true)
}

// splitting reports whether the range of a lease is gone.
func (m *measurement) splitting() bool {
	return slices.ContainsFunc(m.leases, func(l measuredLease) bool { return l.gone() })
}

// lookUp starts anew for processors of a container that was deleted and created again under the same name
// since its RID was read. The leases that were found are those of the old container, whose positions mean
// nothing in the new one.
func (t *tick) lookUp(ctx context.Context, affected []*measurement) {
	t.containers.Delete(affected[0].source())
	t.identify(ctx, affected)
	t.queryLeases(ctx, affected)
}

// recreated reports whether an answer of the change feed names another container than the one whose
// leases were looked up. What is no RID is ignored.
func (m *measurement) recreated() bool {
	return slices.ContainsFunc(m.leases, func(l measuredLease) bool {
		return slices.ContainsFunc(l.pages, func(p *page) bool {
			_, err := changefeed.DatabaseRID(p.containerRID)
			return err == nil && p.containerRID != m.described.RID
		})
	})
}

// foreign reports whether every lease names a range that the container neither has nor had. That
// tells that it was created again where no answer names its RID.
func (m *measurement) foreign() bool {
	ranges := m.ranges.known()
	return len(m.leases) > 0 && !slices.ContainsFunc(m.leases, func(l measuredLease) bool {
		_, exists := ranges.Find(l.Token)
		return l.Err != nil || l.Range != nil || exists || len(ranges.Children(l.Token)) > 0
	})
}

// refreshRanges reads the partition key ranges of the container that the processors monitor, once.
// Without them the processors are unknown.
func (t *tick) refreshRanges(ctx context.Context, processors []*measurement) {
	var err error
	for i, m := range those(processors, nil) {
		if i == 0 {
			err = t.readRanges(ctx, m, func(time.Time, error) bool { return false })
		}
		m.err = err
	}
}
