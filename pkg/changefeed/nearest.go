package changefeed

import (
	"fmt"
	"slices"
	"strings"
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
	database, err := DatabaseRID(want.ContainerRID)
	if err != nil {
		database = ""
	}
	head := want.ProcessorName + want.AccountHost
	for _, p := range processors {
		reading, byRID := ReadRIDs(p.Prefix)
		if !byRID {
			readings := ReadNames(p.Prefix, want.AccountHost)
			if len(readings) == 0 {
				continue
			}
			reading = readings[0]
		}
		sameContainer := byRID && reading.Container == want.ContainerRID && reading.Database == database ||
			!byRID && reading.Container == want.Container && reading.Database == want.Database
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
