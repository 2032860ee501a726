package estimator

import (
	"context"
	"errors"
	"fmt"
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
// name or a wrong container would pass for a processor that never ran. "" = it holds no leases. A
// processorName that another entry has is not suggested: two cannot read the same leases.
func (held inventory) nearest(m *measured) string {
	best, least := "", 0
	for _, p := range held.processors {
		text, distance := m.compare(p)
		if text != "" && (best == "" || distance < least) {
			best, least = text, distance
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("lease container %s holds no lease of this processor: %s", m.processor.LeaseContainer, best)
}

// compare says how the leases of a processor that was found differ, and how far that is; "" if they are not
// to be named.
func (m *measured) compare(p changefeed.FoundProcessor) (text string, distance int) {
	reading, here, ok := m.read(p)
	if !ok {
		return "", 0
	}
	want := m.processor.ProcessorName
	name, host, split := changefeed.SplitHead(reading.Head, m.processor.AccountHost)
	switch {
	case here && split && slices.Contains(m.processor.NamesInUse, name):
		return "", 0
	case here && split && name == "":
		return "leave processorName out, since its leases have none", len(want)
	case here && split:
		return fmt.Sprintf("did you mean processorName %s?", name), changefeed.NameDistance(name, want)
	case strings.EqualFold(reading.Head, want+m.processor.AccountHost):
		return fmt.Sprintf("its leases of this processorName are for another container (%s/%s): was the container created anew, or is containerId another one?", reading.Database, reading.Container), 1000
	case here && want != "" && strings.HasPrefix(reading.Head, want):
		return fmt.Sprintf("did you mean accountHost %s?", strings.TrimPrefix(reading.Head, want)), 2000
	case split:
		return fmt.Sprintf("it holds leases of processorName %q at %s for another container", name, host), 3000
	default:
		return fmt.Sprintf("it holds leases whose ids begin with %q", p.Prefix), 4000
	}
}

// liveBeside returns the processorNames of what else reads the container of a processor: of those, sorted, that
// have renewed an owned lease and that no other entry has.
func (held inventory) liveBeside(m *measured) (names []string) {
	since := held.at.Add(-liveWithin)
	for _, p := range held.processors {
		reading, here, _ := m.read(p)
		name, _, split := changefeed.SplitHead(reading.Head, m.processor.AccountHost)
		live := slices.ContainsFunc(p.Leases, func(l changefeed.LeaseDocument) bool { return l.Owner != "" && !l.Time.Before(since) })
		if here && split && live && !slices.Contains(m.processor.NamesInUse, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// read reads what the prefix of lease ids says. here: the leases are for the container that m monitors.
func (m *measured) read(p changefeed.FoundProcessor) (reading changefeed.PrefixReading, here, ok bool) {
	if reading, ok = changefeed.ReadRIDs(p.Prefix); ok { // a reading by RIDs has those of one database
		return reading, reading.Container == m.described.RID, true
	}
	readings := changefeed.ReadNames(p.Prefix, m.processor.AccountHost)
	if len(readings) == 0 {
		return reading, false, false
	}
	reading = readings[0]
	of := m.processor.Container
	return reading, reading.Container == of.ID && reading.Database == of.Database, true
}
