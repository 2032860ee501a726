package changefeed

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Nearest says, of a lease container in which no lease is a processor's, what it holds instead; "" where
// it holds no leases. The nearest comes first: leases that differ from the processor's in the name
// alone, in the container alone, or in the host alone. A processorName that another processor of the same
// containers has, of which inUse are all, is no candidate: two cannot read the same leases.
func Nearest(processors []FoundProcessor, want Identity, inUse []string) string {
	type candidate struct {
		text     string
		distance int
	}
	var candidates []candidate
	head := want.ProcessorName + want.AccountHost
	for _, p := range processors {
		reading, byRID, ok := p.read(want.AccountHost)
		if !ok {
			continue
		}
		sameContainer := want.readIn(reading, byRID)
		name, host, split := SplitHead(reading.Head, want.AccountHost)
		switch sameHead := strings.EqualFold(reading.Head, head); {
		case sameContainer && split && strings.EqualFold(host, want.AccountHost) && slices.Contains(inUse, name):
		case sameContainer && split && strings.EqualFold(host, want.AccountHost):
			text := fmt.Sprintf("did you mean processorName %s?", name)
			if name == "" {
				text = "did you mean no processorName?"
			}
			candidates = append(candidates, candidate{text, NameDistance(name, want.ProcessorName)})
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

// LiveBeside returns the processorNames of what else reads a container: of those, sorted, that have renewed an
// owned lease since a time and that inUse does not have.
func LiveBeside(processors []FoundProcessor, want Identity, inUse []string, since time.Time) (names []string) {
	for _, p := range processors {
		reading, byRID, ok := p.read(want.AccountHost)
		if !ok || !want.readIn(reading, byRID) {
			continue
		}
		name, host, split := SplitHead(reading.Head, want.AccountHost)
		if !split || !strings.EqualFold(host, want.AccountHost) || slices.Contains(inUse, name) {
			continue
		}
		if slices.ContainsFunc(p.Leases, func(l LeaseDocument) bool { return l.Owner != "" && !l.Time.Before(since) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// read reads what the prefix of the leases says, by RIDs or by names; ok is false if it says neither.
func (p FoundProcessor) read(host string) (reading PrefixReading, byRID, ok bool) {
	if reading, byRID = ReadRIDs(p.Prefix); byRID {
		return reading, true, true
	}
	readings := ReadNames(p.Prefix, host)
	if len(readings) == 0 {
		return reading, false, false
	}
	return readings[0], false, true
}

// readIn reports whether a prefix was read as that of leases of the same container.
func (i Identity) readIn(reading PrefixReading, byRID bool) bool {
	if !byRID {
		return reading.Container == i.Container && reading.Database == i.Database
	}
	database, err := DatabaseRID(i.ContainerRID)
	return err == nil && reading.Container == i.ContainerRID && reading.Database == database
}

// NameDistance is how much of two names differs: what is left of the longer one without their common
// beginning and end, in bytes.
func NameDistance(a, b string) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}
