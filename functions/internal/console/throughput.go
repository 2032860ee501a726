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
	none := Cell{"", Plain, true}
	return []Cell{{"  " + t.Container, Dim, false}, mode, none, none, none, none, none, none, {what, Dim, false}}
}

// throughput says what the containers need.
func (e explanation) throughput(b *strings.Builder, containers []report.Throughput) {
	for _, t := range containers {
		fmt.Fprintf(b, "  Throughput of %s: %s.\n", e.style.Paint(t.Container, Bold), throughputHeadline(t))
		for _, r := range t.Reasons {
			fmt.Fprintf(b, "    %s: %d RU/s, %s.\n", e.style.Paint(r.Step, Bold), r.RUPerSecond, r.Why)
		}
		if t.Note != nil {
			fmt.Fprintf(b, "    %s %s.\n", e.style.Paint("Left alone:", Yellow), oneLine(*t.Note))
		}
		if t.Error != nil {
			fmt.Fprintf(b, "    %s %s\n", e.style.Paint("Unknown:", Red), oneLine(*t.Error))
		}
		if bill := t.Bill; bill.Hours > 0 {
			fmt.Fprintf(b, "    %s\n", throughputBill(t))
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

// throughputBill sums up the hours, each by its highest throughput.
func throughputBill(t report.Throughput) string {
	most := ""
	if t.Autoscale {
		most = "at most "
	}
	return fmt.Sprintf("In %s: %s%d RU/s-hours, and %d as decided.", report.Count(t.Bill.Hours, "hour"), most, t.Bill.ProvisionedRUHours, t.Bill.DesiredRUHours)
}
