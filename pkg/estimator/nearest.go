package estimator

import (
	"context"
	"errors"
	"fmt"
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

// findNearest names what a lease container holds where nothing in it is the processor's: a name that is
// misspelt, or a container that is the wrong one, would pass for a processor that never ran. What
// cannot be read is left out, since nothing is measured by it.
func (t *tick) findNearest(ctx context.Context, leases source, m *measured) {
	now := t.now()
	t.Estimator.mu.Lock()
	known, ok := t.nearest[leases]
	t.Estimator.mu.Unlock()
	if !ok || now.Sub(known.at).Abs() >= lookAgainAfter {
		documents, usage, err := leases.account.FindLeases(ctx, leases.container)
		m.usage.Add(usage)
		if err != nil && !errors.Is(err, cosmos.ErrMissing) {
			return
		}
		known = found{at: now, processors: changefeed.Inventory(documents)}
		t.Estimator.mu.Lock()
		t.nearest[leases] = known
		t.Estimator.mu.Unlock()
	}
	m.nearest = changefeed.Nearest(known.processors, changefeed.Identity{
		ProcessorName: m.processor.ProcessorName,
		AccountHost:   m.processor.AccountHost,
		Database:      m.processor.Container.Database,
		Container:     m.processor.Container.ID,
		ContainerRID:  m.described.RID,
	}, m.processor.NamesInUse)
	if m.nearest != "" {
		m.nearest = fmt.Sprintf("lease container %s %s", m.processor.LeaseContainer, m.nearest)
	}
}
