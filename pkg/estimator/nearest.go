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

// lookAgainAfter is how long the inventory of a lease container is remembered. It is read only for
// processors without a lease or an owner, and only people use it.
const lookAgainAfter = 5 * time.Minute

// found is what a lease container holds.
type found struct {
	at         time.Time
	processors []changefeed.FoundProcessor
}

// liveWithin is how long ago a live owner has renewed its lease, at most: the SDKs' default.
const liveWithin = time.Minute

// findNearest names what a lease container holds if nothing in it is the processor's: a misspelt
// name or a wrong container would pass for a processor that never ran. A failure is ignored, since
// no lag depends on it.
func (t *tick) findNearest(ctx context.Context, m *measured) {
	known, _ := t.inventory(ctx, m)
	if text := nearest(known.processors, m.processor.Identity(m.described.RID), m.processor.NamesInUse); text != "" {
		m.nearest = fmt.Sprintf("lease container %s %s", m.processor.LeaseContainer, text)
	}
}

// findBeside names what else reads the container while no host owns leases of the processor. A
// deployment that renamed its processor leaves such leases.
func (t *tick) findBeside(ctx context.Context, unit []*measured) {
	for _, m := range unit {
		if !m.deserted() {
			continue
		}
		if known, ok := t.inventory(ctx, m); ok {
			m.beside = liveBeside(known.processors, m.processor.Identity(m.described.RID), m.processor.NamesInUse, known.at.Add(-liveWithin))
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

// inventory returns what a lease container holds, read within the last minutes; false if it cannot
// be read.
func (e *Estimator) inventory(ctx context.Context, m *measured) (found, bool) {
	leases, now := m.leaseSource(), e.now()
	e.mu.Lock()
	known, ok := e.nearest[leases]
	e.mu.Unlock()
	if !ok || now.Sub(known.at).Abs() >= lookAgainAfter {
		documents, usage, err := leases.account.Leases(ctx, leases.container, nil)
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

// nearest says, of a lease container in which no lease is a processor's, what it holds instead; "" where
// it holds no leases. The nearest comes first: leases that differ from the processor's in the name
// alone, in the container alone, or in the host alone. A processorName that another processor of the same
// containers has, of which inUse are all, is no candidate: two cannot read the same leases.
func nearest(processors []changefeed.FoundProcessor, want changefeed.Identity, inUse []string) string {
	type candidate struct {
		text     string
		distance int
	}
	var candidates []candidate
	head := want.ProcessorName + want.AccountHost
	for _, p := range processors {
		reading, byRID, ok := readPrefix(p.Prefix, want.AccountHost)
		if !ok {
			continue
		}
		sameContainer := readIn(want, reading, byRID)
		name, host, split := changefeed.SplitHead(reading.Head, want.AccountHost)
		switch sameHead := strings.EqualFold(reading.Head, head); {
		case sameContainer && split && slices.Contains(inUse, name):
		case sameContainer && split:
			text := fmt.Sprintf("did you mean processorName %s?", name)
			if name == "" {
				text = "leave processorName out, since its leases have none"
			}
			candidates = append(candidates, candidate{text, changefeed.NameDistance(name, want.ProcessorName)})
		case sameHead && byRID:
			candidates = append(candidates, candidate{fmt.Sprintf("its leases of this processorName are for another container (RID %s, and this one has %s): was the container created anew, or is containerId another one?", reading.Container, want.ContainerRID), 1000})
		case sameHead:
			candidates = append(candidates, candidate{fmt.Sprintf("its leases of this processorName are for container %s/%s", reading.Database, reading.Container), 1000})
		case sameContainer && want.ProcessorName != "" && strings.HasPrefix(reading.Head, want.ProcessorName):
			candidates = append(candidates, candidate{fmt.Sprintf("did you mean accountHost %s?", strings.TrimPrefix(reading.Head, want.ProcessorName)), 2000})
		case split:
			candidates = append(candidates, candidate{fmt.Sprintf("it holds leases of processorName %q at %s for another container", name, host), 3000})
		default:
			candidates = append(candidates, candidate{fmt.Sprintf("it holds leases whose ids begin with %q", p.Prefix), 4000})
		}
	}
	if len(candidates) == 0 {
		return ""
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return a.distance - b.distance })
	best := candidates[0]
	others := 0
	for _, c := range candidates[1:] {
		if c.text != best.text {
			others++
		}
	}
	text := "holds no lease of this processor: " + best.text
	if others > 0 {
		text += fmt.Sprintf(" (%d others are there, too: feedscale leases lists them)", others)
	}
	return text
}

// liveBeside returns the processorNames of what else reads a container: of those, sorted, that have renewed an
// owned lease since a time and that inUse does not have.
func liveBeside(processors []changefeed.FoundProcessor, want changefeed.Identity, inUse []string, since time.Time) (names []string) {
	for _, p := range processors {
		reading, byRID, ok := readPrefix(p.Prefix, want.AccountHost)
		if !ok || !readIn(want, reading, byRID) {
			continue
		}
		name, _, split := changefeed.SplitHead(reading.Head, want.AccountHost)
		if !split || slices.Contains(inUse, name) {
			continue
		}
		if slices.ContainsFunc(p.Leases, func(l changefeed.LeaseDocument) bool { return l.Owner != "" && !l.Time.Before(since) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readPrefix reads what the prefix of lease ids says, by RIDs or by names; ok is false if it says neither.
func readPrefix(prefix, host string) (reading changefeed.PrefixReading, byRID, ok bool) {
	if reading, byRID = changefeed.ReadRIDs(prefix); byRID {
		return reading, true, true
	}
	if readings := changefeed.ReadNames(prefix, host); len(readings) > 0 {
		return readings[0], false, true
	}
	return reading, false, false
}

// readIn reports whether a prefix was read as that of leases of the container of an identity.
func readIn(i changefeed.Identity, reading changefeed.PrefixReading, byRID bool) bool {
	if byRID { // a reading by RIDs has those of one database
		return reading.Container == i.ContainerRID
	}
	return reading.Container == i.Container && reading.Database == i.Database
}
