package estimator

import (
	"context"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// followRecreation deals with containers that were deleted and created anew
// under the same name since their RID was read: the leases that were found are
// those of the old one, whose positions mean nothing in the new. The answers
// tell, by the RID of the container that they come from; then the processor's
// own leases are looked up again.
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

// recreated tells whether an answer came from another container than the one
// whose leases were looked up.
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
