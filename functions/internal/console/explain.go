package console

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
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
		explanation{s: s, r: report.New(s), dryRun: dryRun, style: style}.write(&b)
	}
	return style.print(w, style.wrapLines(b.String()))
}

// explanation explains one decision.
type explanation struct {
	s      state.State
	r      report.Processor
	dryRun bool
	style  Style
}

func (e explanation) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s\n", e.style.Paint(e.s.Processor, Bold), e.headline())
	for _, line := range e.measured() {
		fmt.Fprintf(b, "  %s\n", line)
	}
	if e.s.Decision != nil {
		e.steps(b)
	}
	e.style.throughput(b, "  ", e.r.Throughput)
	e.style.findings(b, "  ", "", e.r.Findings)
	for _, line := range e.consequence() {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// headline is the decision in one sentence.
func (e explanation) headline() string {
	d := e.s.Decision
	if d == nil {
		return "nothing is decided: any number would be a guess."
	}
	change := "as before"
	switch {
	case d.Previous == nil:
		change = "its first decision"
	case d.Direction == scaling.Out:
		change = fmt.Sprintf("%d more than the last decision", d.Replicas-*d.Previous)
	case d.Direction == scaling.In:
		change = fmt.Sprintf("%d fewer than the last decision", *d.Previous-d.Replicas)
	}
	return report.Count(d.Replicas, "replica") + ", " + change + "."
}

// measured is the inputs of the decision.
func (e explanation) measured() []string {
	if len(e.s.Members) > 0 {
		return e.members()
	}
	lag := e.s.Lag
	if lag.Error != "" || lag.Bootstrap {
		return nil // the findings have it
	}
	var lines []string
	pending := lag.Lag()
	switch {
	case pending == nil:
		lines = append(lines, fmt.Sprintf("None of %s could be measured.", report.Count(len(lag.Partitions), "partition")))
	case *pending == 0:
		lines = append(lines, fmt.Sprintf("Nothing is pending in %s.", report.Count(lag.PartitionCount(), "partition")))
	default:
		line := fmt.Sprintf("%s pending in %d of %s", report.Count(int(*pending), "transaction"), lag.PartitionsWithLag(), report.Count(lag.PartitionCount(), "partition"))
		if oldest := lag.Age(); oldest != nil {
			line += fmt.Sprintf(", the oldest for %s", report.Age(oldest))
		}
		lines = append(lines, line+".")
	}
	return append(lines, e.rates()...)
}

// members is what each member of a group asks for.
func (e explanation) members() []string {
	lines := make([]string, len(e.s.Members))
	for i, m := range e.s.Members {
		asks := "was never decided"
		if m.Replicas != nil {
			asks = "asks for " + report.Count(*m.Replicas, "replica")
		}
		lines[i] = fmt.Sprintf("%s %s: %s, lag %s.", m.Processor, asks, e.style.Paint(string(m.Status), statusColor(m.Status)), Number(m.Lag))
	}
	return lines
}

// rates is how fast changes arrive and are processed, as far as it is known.
func (e explanation) rates() []string {
	m := e.s.Memory
	var known []string
	if m.Arrival != nil {
		known = append(known, fmt.Sprintf("%.3g arrive a second", *m.Arrival))
	}
	if drain := m.DrainPerReplica; drain > 0 {
		known = append(known, fmt.Sprintf("one replica works off %.3g", drain))
	}
	if len(known) == 0 {
		return nil
	}
	line := strings.Join(known, ", ")
	if needed := catchUp(e.s); needed != "-" {
		lag := "is gone in " + needed
		if needed == "never" {
			lag = "only grows"
		}
		line += fmt.Sprintf(": with %s the lag %s", report.Count(e.s.Decision.Replicas, "replica"), lag)
	}
	return []string{strings.ToUpper(line[:1]) + line[1:] + "."}
}

// steps writes each step with a reason, and what it did to the replicas.
func (e explanation) steps(b *strings.Builder) {
	before := 0
	for i, r := range e.s.Decision.Reasons {
		did := fmt.Sprintf("keeps it at %d", r.Replicas)
		switch {
		case i == 0:
			did = fmt.Sprintf("asks for %d", r.Replicas)
		case r.Replicas > before:
			did = fmt.Sprintf("raises it to %d", r.Replicas)
		case r.Replicas < before:
			did = fmt.Sprintf("lowers it to %d", r.Replicas)
		}
		end := "."
		if strings.HasSuffix(r.Why, "?") {
			end = "" // the reason asks whether a name was meant
		}
		fmt.Fprintf(b, "  %d. %s %s: %s%s\n", i+1, e.style.Paint(r.Step, Bold), did, r.Why, end)
		before = r.Replicas
	}
}

// consequence is what happens with the decision.
func (e explanation) consequence() []string {
	d := e.s.Decision
	if d == nil {
		return []string{"Until a poll succeeds, the scaler applies its own fallback. Nothing is published."}
	}
	activity := "inactive"
	if d.Active {
		activity = "active"
	}
	line := fmt.Sprintf("It is %s; a scaler reads metricValue %d.", activity, d.MetricValue)
	switch published := e.s.Published; {
	case e.s.Group != "":
		line += fmt.Sprintf(" The decision of its group, %s, is published in its place.", e.s.Group)
	case e.s.Paused:
		line += " Nothing is published while it is paused."
	case e.dryRun:
		line += " Nothing is published by a dry run."
	case published == nil || published.Replicas != d.Replicas || published.Active != d.Active:
		line += " It is not published: it could not be stored, or another process was faster; the log says which."
	case published.Time.Equal(e.s.AttemptedAt):
		line += fmt.Sprintf(" Event %d says so.", e.s.Sequence)
	default:
		line += fmt.Sprintf(" Event %d of %s said so already.", e.s.Sequence, published.Time.UTC().Format(time.RFC3339))
	}
	return []string{line}
}
