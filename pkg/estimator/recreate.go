package estimator

import (
	"context"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// followRecreation handles containers that were deleted and created again under the same name since
// their RID was read. The leases found are then those of the old container, whose positions mean
// nothing in the new one. An answer of the change feed carries the RID of its container; where that is
// another one, the processor's leases are looked up again.
func (t *tick) followRecreation(ctx context.Context, unit []*measured) {
	var affected []*measured
	for _, m := range unit {
		if m.err == nil && m.recreated() {
			affected = append(affected, m)
		}
	}
	t.lookUpAgain(ctx, affected)
}

// lookUpAgain starts anew for processors of one container.
func (t *tick) lookUpAgain(ctx context.Context, affected []*measured) {
	if len(affected) == 0 {
		return
	}
	t.forget(affected[0].source())
	t.identify(ctx, affected)
	t.queryLeases(ctx, source{affected[0].processor.LeaseAccount, affected[0].processor.LeaseContainer}, affected)
	t.readFeeds(ctx, affected)
}

// recreated reports whether an answer came from another container than the one whose leases were looked
// up. What is no RID is ignored.
func (m *measured) recreated() bool {
	for i := range m.leases {
		for _, p := range m.leases[i].pages {
			if _, err := changefeed.DatabaseRID(p.containerRID); err == nil && p.containerRID != m.described.RID {
				return true
			}
		}
	}
	return false
}

// foreign reports whether every lease names a range that the container neither has nor had: the leases
// of a container that was created again say so by that alone, where no answer names its RID.
func (m *measured) foreign(ranges changefeed.Ranges) bool {
	for i := range m.leases {
		l := &m.leases[i]
		if l.Err != nil || l.Range != nil || !l.gone() {
			return false
		}
		if _, exists := ranges.Find(l.Token); exists || len(ranges.Children(l.Token)) > 0 {
			return false
		}
	}
	return len(m.leases) > 0
}
