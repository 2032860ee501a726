package console

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// WriteExplanations explains the decision of each processor and group in sentences: the
// measurement, the steps, the findings, and the consequence.
func WriteExplanations(w io.Writer, polled []state.State, dryRun bool, style Style) error {
	var b strings.Builder
	for i, s := range polled {
		if i > 0 {
			b.WriteString("\n")
		}
		shown := report.New(s)
		fmt.Fprintf(&b, "%s: %s\n", style.Paint(s.Processor, Bold), headline(s))
		for _, line := range append(measured(s, style), steps(s, style)...) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		style.throughput(&b, "  ", shown.Throughput)
		style.findings(&b, "  ", "", shown.Findings)
		fmt.Fprintf(&b, "  %s\n", consequence(s, dryRun))
	}
	return style.print(w, style.wrapLines(b.String()))
}

// headline is the decision in one sentence.
func headline(s state.State) string {
	d := s.Decision
	if d == nil {
		return "nothing is decided: any number would be a guess."
	}
	before := ", its first decision."
	if d.Previous != nil {
		before = fmt.Sprintf("; the last decision was %d.", *d.Previous)
	}
	return report.Count(d.Replicas, "replica") + before
}

// measured is the inputs of the decision. The findings have what could not be measured.
func measured(s state.State, style Style) (lines []string) {
	for _, m := range s.Members {
		asks := "was never decided"
		if m.Replicas != nil {
			asks = "asks for " + report.Count(*m.Replicas, "replica")
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s, lag %s.", m.Processor, asks, style.Paint(string(m.Status), statusColor(m.Status)), Number(m.Lag)))
	}
	if len(s.Members) > 0 || s.Lag.Error != "" || s.Lag.Bootstrap {
		return lines
	}
	all, pending := report.Count(s.Lag.PartitionCount(), "partition"), s.Lag.Lag()
	switch {
	case pending == nil:
		lines = append(lines, all+" could not be measured.")
	case *pending == 0:
		lines = append(lines, "Nothing is pending in "+all+".")
	default:
		line := fmt.Sprintf("%s pending in %d of %s", report.Count(int(*pending), "transaction"), s.Lag.PartitionsWithLag(), all)
		if oldest := s.Lag.Age(); oldest != nil {
			line += ", the oldest for " + report.Age(oldest)
		}
		lines = append(lines, line+".")
	}
	if s.Memory.Arrival == nil {
		return lines
	}
	rates := fmt.Sprintf("%.3g arrive a second", *s.Memory.Arrival)
	if drain := s.Memory.DrainPerReplica; drain > 0 {
		rates += fmt.Sprintf(", one replica works off %.3g", drain)
	}
	switch needed := catchUp(s); needed {
	case "-":
	case "never":
		rates += ": the lag only grows"
	default:
		rates += ": the lag is gone in " + needed
	}
	return append(lines, rates+".")
}

// steps is each step with a reason, and what it did to the replicas.
func steps(s state.State, style Style) (lines []string) {
	if s.Decision == nil {
		return nil
	}
	for i, r := range s.Decision.Reasons {
		did := "asks for"
		if i > 0 {
			did = []string{"lowers it to", "keeps it at", "raises it to"}[1+cmp.Compare(r.Replicas, s.Decision.Reasons[i-1].Replicas)]
		}
		lines = append(lines, fmt.Sprintf("%d. %s %s %d: %s", i+1, style.Paint(r.Step, Bold), did, r.Replicas, ended(r.Why)))
	}
	return lines
}

// ended is a sentence with its full stop, unless it asks whether a name was meant.
func ended(sentence string) string {
	if strings.HasSuffix(sentence, "?") {
		return sentence
	}
	return sentence + "."
}

// consequence is what happens with the decision.
func consequence(s state.State, dryRun bool) string {
	d, published := s.Decision, s.Published
	if d == nil {
		return "Until a poll succeeds, the scaler applies its own fallback. Nothing is published."
	}
	activity := map[bool]string{true: "active", false: "inactive"}[d.Active]
	line := fmt.Sprintf("It is %s; a scaler reads metricValue %d. ", activity, d.MetricValue)
	switch {
	case s.Group != "":
		return line + "The decision of its group, " + s.Group + ", is published in its place."
	case s.Paused:
		return line + "Nothing is published while it is paused."
	case dryRun:
		return line + "Nothing is published by a dry run."
	case published == nil || published.Replicas != d.Replicas || published.Active != d.Active:
		return line + "It is not published: it could not be stored, or another process was faster; the log says which."
	}
	return line + fmt.Sprintf("Event %d says so.", s.Sequence)
}
