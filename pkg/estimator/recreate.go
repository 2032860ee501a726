package estimator

import (
	"context"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// followRecreation handles containers that were deleted and created again under the same name since
// their RID was read. The leases found are then those of the old container, whose positions mean
// nothing in the new one. An answer of the change feed carries the RID of its container; where that
// is another one, the processor's leases are looked up again.
func (t *tick) followRecreation(ctx context.Context) {
	var affected []*measured
	for _, m := range t.measured {
		if m.err == nil && m.recreated() {
			t.forget(m.source())
			affected = append(affected, m)
		}
	}
	if len(affected) == 0 {
		return
	}
	t.identify(ctx, affected)
	t.queryLeases(ctx, affected)
	t.readFeeds(ctx, affected)
}

// recreated reports whether an answer came from another container than the one whose leases were
// looked up. What is no RID is ignored.
func (m *measured) recreated() bool {
	for i := range m.leases {
		for _, p := range m.leases[i].pages {
			if _, err := changefeed.DatabaseRID(p.containerRID); err == nil && p.containerRID != m.rid {
				return true
			}
		}
	}
	return false
}
