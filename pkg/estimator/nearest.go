package estimator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

const (
	// lookAgainAfter is how long the inventory of a lease container is remembered. It is read only for
	// processors without a lease or an owner, and only people use it.
	lookAgainAfter = 5 * time.Minute
	// liveWithin is how long ago a live owner has renewed its lease, at most: the SDKs' default.
	liveWithin = time.Minute
)

// inventory is what a lease container holds.
type inventory struct {
	at         time.Time
	processors []changefeed.FoundProcessor
}

// look returns what the lease container of a processor holds, read within the last minutes; nothing if
// it cannot be read, since no lag depends on it.
func (e *Estimator) look(ctx context.Context, m *measured) inventory {
	leases := m.leaseSource()
	fresh := func(tried time.Time, err error) bool { return err == nil && e.now().Sub(tried).Abs() < lookAgainAfter }
	held, err := cachedIn[inventory](&e.inventories, leases).get(e.now, fresh, func() (inventory, error) {
		documents, usage, err := leases.account.Leases(ctx, leases.container, nil)
		m.usage.Add(usage)
		if errors.Is(err, cosmos.ErrMissing) {
			err = nil
		}
		return inventory{e.now(), changefeed.Inventory(documents)}, err
	})
	if err != nil {
		return inventory{}
	}
	return held
}

// findBeside names what else reads the container while no host owns leases of the processor. A
// deployment that renamed its processor leaves such leases.
func (t *tick) findBeside(ctx context.Context, unit []*measured) {
	for _, m := range unit {
		if m.deserted() {
			m.beside = t.look(ctx, m).liveBeside(m)
		}
	}
}

// deserted reports whether the last poll found leases unclaimed, or found owners and now there are
// none. Once another processor was named, it is also true while changes wait and nobody owns a lease:
// such leases count as unclaimed only minutes later.
func (m *measured) deserted() bool {
	owned := slices.ContainsFunc(m.leases, func(l measuredLease) bool { return l.Owner != "" })
	named := len(m.lastLag.Beside) > 0
	return slices.ContainsFunc(m.lastLag.Partitions, func(p changefeed.Partition) bool {
		return p.Status == changefeed.StatusUnclaimed || !owned && (p.Owner != "" || named && p.Pending())
	})
}

// nearest says, of a lease container in which no lease is a processor's, what it holds instead: a misspelt
// name or a wrong container would pass for a processor that never ran. "" = it holds no leases. Leases for
// the monitored container come first, then those whose ids differ least. A processorName that another entry
// has is not suggested: two cannot read the same leases.
func (held inventory) nearest(m *measured) string {
	wanted, own := m.processor.ProcessorName, strings.TrimSuffix(m.prefixes[0].Text, "..")
	says, least := "", math.MaxInt
	for _, p := range held.processors {
		text := fmt.Sprintf("it holds leases whose ids begin with %q, and this processor's begin with %q", p.Prefix, own)
		distance := len(own) + changefeed.NameDistance(p.Prefix, own)
		switch name, here := m.processorName(p.Prefix); {
		case here && slices.Contains(m.processor.NamesInUse, name):
			continue
		case here && name == "":
			text, distance = "leave processorName out, since its leases have none", len(wanted)
		case here:
			text, distance = fmt.Sprintf("did you mean processorName %s?", name), changefeed.NameDistance(name, wanted)
		}
		if distance < least {
			says, least = text, distance
		}
	}
	if says == "" {
		return ""
	}
	return fmt.Sprintf("lease container %s holds no lease of this processor: %s", m.processor.LeaseContainer, says)
}

// liveBeside returns the processorNames of what else reads the container of a processor: of those, sorted, that
// have renewed an owned lease and that no other entry has.
func (held inventory) liveBeside(m *measured) (names []string) {
	since := held.at.Add(-liveWithin)
	live := func(l changefeed.LeaseDocument) bool { return l.Owner != "" && !l.Time.Before(since) }
	for _, p := range held.processors {
		name, here := m.processorName(p.Prefix)
		if here && slices.ContainsFunc(p.Leases, live) && !slices.Contains(m.processor.NamesInUse, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// processorName reads the processorName in a prefix of lease ids. here: the leases are for the container
// that m monitors.
func (m *measured) processorName(prefix string) (name string, here bool) {
	for _, own := range m.prefixes {
		container := strings.TrimSuffix(own.Text[len(m.processor.ProcessorName):], "..")
		if name, here = strings.CutSuffix(prefix, container); here {
			break
		}
	}
	return name, here
}
