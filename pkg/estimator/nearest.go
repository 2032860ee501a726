package estimator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// lookAgainAfter is how long what a lease container holds is remembered: it is asked only for
// processors without a lease, and the answer is for people.
const lookAgainAfter = 5 * time.Minute

// found is what a lease container holds.
type found struct {
	at         time.Time
	processors []changefeed.FoundProcessor
}

// mixed says what to do about changefeed.ErrMixed.
func mixed(err error) error {
	if errors.Is(err, changefeed.ErrMixed) {
		return fmt.Errorf("%w: set leaseFormat to dotnet or java, and give one of them a name of its own", err)
	}
	return err
}

// liveWithin is how long ago a live owner has renewed its lease, at most: the SDKs' default.
const liveWithin = time.Minute

// findNearest names what a lease container holds where nothing in it is the processor's: a name that is
// misspelt, or a container that is the wrong one, would pass for a processor that never ran. What
// cannot be read is left out, since nothing is measured by it.
func (t *tick) findNearest(ctx context.Context, leases source, m *measured) {
	known, ok := t.inventory(ctx, leases, m)
	if !ok {
		return
	}
	m.nearest = changefeed.Nearest(known.processors, m.processor.Identity(m.described.RID), m.processor.NamesInUse)
	if m.nearest != "" {
		m.nearest = fmt.Sprintf("lease container %s %s", m.processor.LeaseContainer, m.nearest)
	}
}

// findBeside names what else reads the container while nobody owns leases of the processor: a deployment
// that renamed its processor leaves them behind.
func (t *tick) findBeside(ctx context.Context, unit []*measured) {
	for _, m := range unit {
		if !m.deserted() {
			continue
		}
		if known, ok := t.inventory(ctx, source{m.processor.LeaseAccount, m.processor.LeaseContainer}, m); ok {
			m.beside = changefeed.LiveBeside(known.processors, m.processor.Identity(m.described.RID), m.processor.NamesInUse, known.at.Add(-liveWithin))
		}
	}
}

// deserted reports whether the last poll found leases unclaimed, or had owners where there is none now.
func (m *measured) deserted() bool {
	owned := slices.ContainsFunc(m.leases, func(l measuredLease) bool { return l.Owner != "" })
	return slices.ContainsFunc(m.lastLag.Partitions, func(p changefeed.Partition) bool {
		return p.Status == changefeed.StatusUnclaimed || !owned && p.Owner != ""
	})
}

// inventory returns what a lease container holds, read within the last minutes; false if it cannot be read.
func (e *Estimator) inventory(ctx context.Context, leases source, m *measured) (found, bool) {
	now := e.now()
	e.mu.Lock()
	known, ok := e.nearest[leases]
	e.mu.Unlock()
	if !ok || now.Sub(known.at).Abs() >= lookAgainAfter {
		documents, usage, err := leases.account.FindLeases(ctx, leases.container)
		m.usage.Add(usage)
		if err != nil && !errors.Is(err, cosmos.ErrMissing) {
			return found{}, false
		}
		known = found{at: now, processors: changefeed.Inventory(documents)}
		e.mu.Lock()
		e.nearest[leases] = known
		e.mu.Unlock()
	}
	return known, true
}
