package console

import (
	"fmt"
	"strings"

	"github.com/feedscale/feedscale/pkg/report"
)

// throughputRow is a container in the columns of the processor that it follows: what only a processor has
// is empty, and its request units a second stand where the reasons do.
func throughputRow(t report.Throughput) []Cell {
	mode := Cell{t.Mode, Plain, false}
	if t.AtLimit || t.Note != nil || t.Error != nil {
		mode.Color = Yellow
	}
	what := t.RUPerSecond() + " RU/s"
	if why := t.Why(); why != "" {
		what += "; " + oneLine(why)
	}
	cells := row("  "+t.Container, "", nil, nil, what)
	cells[0].Color, cells[1], cells[2].Text, cells[3].Text = Dim, mode, "", ""
	return cells
}

// throughput says what containers have, what they need, and what that costs.
func (s Style) throughput(b *strings.Builder, indent string, containers []report.Throughput) {
	for _, t := range containers {
		s.sentence(b, indent, "Throughput of "+s.Paint(t.Container, Bold)+": "+throughputHeadline(t)+".")
		for _, r := range t.Reasons {
			s.sentence(b, indent+"  ", fmt.Sprintf("%s: %d RU/s, %s.", s.Paint(r.Step, Bold), r.RUPerSecond, oneLine(r.Why)))
		}
		if t.Note != nil {
			s.sentence(b, indent+"  ", s.Paint("Left alone:", Yellow)+" "+oneLine(*t.Note)+".")
		}
		if t.Error != nil {
			s.sentence(b, indent+"  ", s.Paint("Unknown:", Red)+" "+oneLine(*t.Error))
		}
		if most := ""; t.Bill.Hours > 0 { // each hour by its highest throughput
			if t.Autoscale {
				most = "at most "
			}
			s.sentence(b, indent+"  ", fmt.Sprintf("In %s: %s%d RU/s-hours, and %d as decided.", report.Count(t.Bill.Hours, "hour"), most, t.Bill.ProvisionedRUHours, t.Bill.DesiredRUHours))
		}
	}
}

func throughputHeadline(t report.Throughput) string {
	switch {
	case t.Provisioned == nil:
		return "it could not be read"
	case t.Desired == nil:
		return fmt.Sprintf("%d RU/s are provisioned", *t.Provisioned)
	}
	bounds := fmt.Sprintf("up to %d", t.Max)
	switch {
	case t.Min != nil:
		bounds = fmt.Sprintf("from %d to %d", *t.Min, t.Max)
	case t.Found != nil:
		bounds = fmt.Sprintf("from the %d that were found up to %d", *t.Found, t.Max)
	}
	if t.Autoscale {
		bounds += ", the maximum of what scales itself"
	}
	doing := "are recommended"
	if t.Mode == "apply" {
		doing = "are to be provisioned"
	}
	if *t.Desired == *t.Provisioned {
		return fmt.Sprintf("%d RU/s are provisioned, and stay; %s", *t.Provisioned, bounds)
	}
	return fmt.Sprintf("%d RU/s are provisioned, and %d %s; %s", *t.Provisioned, *t.Desired, doing, bounds)
}
