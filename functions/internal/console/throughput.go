package console

import (
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
		if most := ""; t.Bill.Hours > 0 { // an hour is billed by its highest throughput
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
