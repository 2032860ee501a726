package console

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/shadow"
)

// WriteReport prints the measured replicas and, below them, the modelled ones, as tables or as
// Markdown.
func WriteReport(w io.Writer, r shadow.Report, markdown bool, style Style) error {
	table, lines := style.Table, style.wrapLines
	if markdown {
		table = markdownTable
		lines = func(text string) string { return strings.ReplaceAll(text, "\n", "\n\n") }
		style = Style{}
	}
	var b, notes strings.Builder
	b.WriteString(lines(fmt.Sprintf("Measured: %s\n%s to %s, %s\n", r.Note, r.Since.Format(time.RFC3339), r.Until.Format(time.RFC3339),
		Brief(r.Until.Sub(r.Since)))) + "\n")
	rows := [][]Cell{Head("PROCESSOR", ">REPLICA-HOURS", ">OVER", ">WORST AGE", ">ACTIONS", ">RU", ">NOT RECORDED", "TROUBLE")}
	for _, p := range r.Processors {
		rows = append(rows, measuredRow(p.Name, p.Measurement))
		if p.Error != nil {
			fmt.Fprintf(&notes, "%s: %s\n", p.Name, *p.Error)
		}
		for _, g := range p.Gaps {
			fmt.Fprintf(&notes, "%s: nothing, or less than half, is recorded from %s to %s\n", p.Name, g.Since.Format(time.RFC3339), g.Until.Format(time.RFC3339))
		}
	}
	for _, g := range r.Groups {
		rows = append(rows, Row("group "+g.Name, replicaHours(g.ReplicaHours), "", "", fmt.Sprint(g.ScaleActions), "", "", ""))
	}
	if len(r.Processors) > 1 {
		rows = append(rows, measuredRow("total", r.Total))
	}
	b.WriteString(table(rows, "RU", "WORST AGE", "NOT RECORDED") + lines(notes.String()))
	writeModels(&b, r.Processors, table, lines)
	return style.print(w, b.String())
}

func replicaHours(n *float64) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprintf("%.1f", *n)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func measuredRow(name string, m shadow.Measurement) []Cell {
	over, gaps := seconds(m.OverObjective), Brief(seconds(m.GapSeconds))
	row := Row(name, unknown, unknown, unknown, unknown, unknown, gaps, "")
	if m.RecordedSeconds > 0 { // else a zero would be a measurement
		row = Row(name, replicaHours(m.ReplicaHours), Brief(over), report.Age(m.WorstAge), fmt.Sprint(m.ScaleActions), compact(m.RequestUnits), gaps, trouble(m))
		row[2].Color = overColor(over)
	}
	row[5].Color, row[6].Color = Dim, Dim
	return row
}

// trouble is how long each urgent status lasted.
func trouble(m shadow.Measurement) string {
	var parts []string
	for _, s := range []changefeed.Status{changefeed.StatusExpiring, changefeed.StatusStalled, changefeed.StatusUncovered, changefeed.StatusUnclaimed} {
		if of := m.StatusSeconds[s]; of > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", s, Brief(seconds(of))))
		}
	}
	return strings.Join(parts, ", ")
}

// writeModels writes the models, if there are any.
func writeModels(b *strings.Builder, shown []shadow.Processor, table func([][]Cell, ...string) string, lines func(string) string) {
	rows := [][]Cell{Head("PROCESSOR", "POLICY", ">REPLICA-HOURS", ">OVER", ">WORST AGE", ">ACTIONS")}
	notes := ""
	for _, p := range shown {
		switch m := p.Model; {
		case m == nil:
		case m.Error != nil:
			notes += fmt.Sprintf("%s: not modelled: %s\n", p.Name, *m.Error)
		default:
			for _, of := range m.Policies {
				over := seconds(float64(of.OverObjective))
				row := Row(p.Name, of.Policy, fmt.Sprintf("%.1f", of.ReplicaHours), Brief(over), report.Age(&of.WorstAge), fmt.Sprint(of.ScaleActions))
				row[3].Color = overColor(over)
				rows = append(rows, row)
			}
			notes += p.Name + ": " + conditions(*m) + "\n"
		}
	}
	if notes == "" {
		return
	}
	b.WriteString("\n" + lines("Modelled, not measured: what a policy would have run for the same changes\n") + "\n")
	if len(rows) > 1 {
		b.WriteString(table(rows, "WORST AGE"))
	}
	b.WriteString(lines(notes))
}

// conditions is the inputs of a model, and its error.
func conditions(m shadow.Model) string {
	from := map[bool]string{true: "measured", false: "a default"}
	text := fmt.Sprintf("%s from %s; a replica does %.4g transactions/s (%s) after %s (%s)", Brief(seconds(float64(m.Seconds))),
		m.Since.Format(time.RFC3339), m.Throughput, from[m.ThroughputMeasured], Brief(seconds(m.StartUpSeconds)), from[m.StartUpMeasured])
	if m.GuessedSeconds > 0 {
		text += fmt.Sprintf("; for %s no arrival rate is recorded, and the last one is used", Brief(seconds(float64(m.GuessedSeconds))))
	}
	switch {
	case m.Ran == nil:
		return text + "; the model is unchecked: --ran says what did run"
	case m.ErrorPercent == nil:
		return text + "; the model is unchecked: no live owner is recorded"
	}
	return text + fmt.Sprintf("; checked: the model of %s is %+.0f %% off the %.2f replicas by the leases", *m.Ran, *m.ErrorPercent, *m.MeasuredReplicas)
}

// markdownTable is a table of GitHub's Markdown. It leaves no column out.
func markdownTable(rows [][]Cell, _ ...string) string {
	rows, right := clipped(rows)
	text, rule := "", "|"
	for i, row := range rows {
		for column, c := range row {
			text += "| " + strings.ReplaceAll(c.Text, "|", `\|`) + " "
			if i == 0 {
				rule += map[bool]string{true: " ---: |", false: " --- |"}[right[column]]
			}
		}
		if text += "|\n"; i == 0 {
			text += rule + "\n"
		}
	}
	return text + "\n"
}
