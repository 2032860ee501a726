package console

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/feedscale/feedscale/pkg/report"
)

// throughputRow is a container in the columns of the processor that it follows. STATUS is its mode,
// and WHY its request units per second.
func throughputRow(t report.Throughput) []Cell {
	what := t.RUPerSecond() + " RU/s"
	if why := t.Why(); why != "" {
		what += "; " + oneLine(why)
	}
	cells := Row("  "+t.Container, t.Mode, "", "", "", "", "", "", what)
	cells[0].Color, cells[8].Color = Dim, Dim
	if t.AtLimit || t.Note != nil || t.Error != nil {
		cells[1].Color = Yellow
	}
	return cells
}

// throughput writes what containers have, what they need, and the RU/s-hours of both.
func (s Style) throughput(b *strings.Builder, indent string, containers []report.Throughput) {
	for _, t := range containers {
		fmt.Fprintf(b, "%sThroughput of %s: %s.\n", indent, s.Paint(t.Container, Bold), throughputHeadline(t))
		for _, r := range t.Reasons {
			fmt.Fprintf(b, "%s  %s: %d RU/s, %s.\n", indent, s.Paint(r.Step, Bold), r.RUPerSecond, oneLine(r.Why))
		}
		if t.Note != nil {
			fmt.Fprintf(b, "%s  %s %s.\n", indent, s.Paint("Left alone:", Yellow), oneLine(*t.Note))
		}
		if t.Error != nil {
			fmt.Fprintf(b, "%s  %s %s\n", indent, s.Paint("Unknown:", Red), oneLine(*t.Error))
		}
		if t.Bill.Hours > 0 { // an hour is billed by its highest throughput
			fmt.Fprintf(b, "%s  In %s: at most %d RU/s-hours, and %d as decided.\n", indent, report.Count(t.Bill.Hours, "hour"), t.Bill.ProvisionedRUHours, t.Bill.DesiredRUHours)
		}
	}
}

func throughputHeadline(t report.Throughput) string {
	if t.Provisioned == nil {
		return "it could not be read"
	}
	of := ""
	if t.Autoscale {
		of = " of autoscale"
	}
	line := fmt.Sprintf("%d RU/s%s are provisioned", *t.Provisioned, of)
	if t.Desired == nil {
		return line
	}
	bounds := "up to"
	if least := cmp.Or(t.Min, t.Found); least != nil {
		bounds = fmt.Sprintf("from %d to", *least)
	}
	mode := map[string]string{"apply": "wanted", "recommend": "recommended"}[t.Mode]
	return line + fmt.Sprintf(", and %d are %s; %s %d", *t.Desired, mode, bounds, t.Max)
}
