package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// WriteProcessors prints one line for each processor, below it one for each of its partitions, worst
// first, where they are asked for, and for each container that follows it, one for each group, and how
// several processors stand in sum.
func WriteProcessors(w io.Writer, polled, decided []state.State, withPartitions bool, style Style) error {
	rows := [][]Cell{Head("PROCESSOR", "STATUS", ">LAG", ">AGE", ">CATCH-UP", ">REPLICAS", ">PARTITIONS", ">RU", "WHY")}
	for _, s := range polled {
		r := report.New(s)
		row := ProcessorRow(s)
		if withPartitions && len(r.Partitions) > 0 { // each says its own error
			row[len(row)-1].Text = report.Why(r.Reasons)
		}
		rows = append(rows, row)
		if withPartitions {
			slices.SortStableFunc(r.Partitions, func(a, b report.Partition) int {
				return cmp.Or(cmp.Compare(severity(a.Status), severity(b.Status)), descending(a.Lag, b.Lag))
			})
			for _, p := range r.Partitions {
				rows = append(rows, partitionRow(p))
			}
		}
		for _, t := range r.Throughput {
			rows = append(rows, throughputRow(t))
		}
	}
	for _, s := range decided {
		g := report.NewGroup(s)
		none := Cell{"", Plain, true}
		rows = append(rows, []Cell{
			{"group " + g.Name, Plain, false},
			{string(g.Status), statusColor(g.Status), false},
			{Number(g.Lag), Plain, true},
			{report.Age(g.ChangeAgeSeconds), Plain, true},
			none,
			{replicas(g.DesiredReplicas, g.Direction), Plain, true},
			none, none,
			{report.Why(g.Reasons), Dim, false},
		})
	}
	style.Wrap = true // a person may want to copy all of WHY
	text := style.Table(rows, "RU", "CATCH-UP", "PARTITIONS", "AGE")
	if len(polled) > 1 {
		text += "\n" + style.wrapLines(summary(polled)+"\n")
	}
	return style.print(w, text)
}

// ProcessorRow is a processor in the columns PROCESSOR, STATUS, LAG, AGE, CATCH-UP, REPLICAS, PARTITIONS,
// RU and WHY. The last is what could not be measured, and what the decision came from.
func ProcessorRow(s state.State) []Cell {
	r := report.New(s)
	why := report.Why(r.Reasons)
	if r.Error != nil {
		why = strings.TrimSuffix(oneLine(*r.Error)+"; "+why, "; ")
	}
	return []Cell{
		{r.Name, Plain, false},
		{string(r.Status), statusColor(r.Status), false},
		{Number(r.Lag), Plain, true},
		{report.Age(r.ChangeAgeSeconds), Plain, true},
		{catchUp(s), Plain, true},
		{replicas(r.DesiredReplicas, r.Direction), Plain, true},
		{partitions(r), Plain, true},
		{fmt.Sprintf("%.1f", r.RequestCharge), Dim, true},
		{why, Dim, false},
	}
}

// summary says how processors stand in sum.
func summary(polled []state.State) string {
	counts, charge := make(map[changefeed.Status]int), 0.0
	for _, s := range polled {
		r := report.New(s)
		counts[r.Status]++
		charge += r.RequestCharge
	}
	parts := []string{report.Count(len(polled), "processor")}
	if counts[changefeed.StatusOK] == len(polled) {
		parts = append(parts, "all ok")
	}
	for _, status := range changefeed.Statuses() {
		if n := counts[status]; n > 0 && status != changefeed.StatusOK {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return strings.Join(append(parts, compact(charge)+" RU"), ", ")
}

// partitionRow is a partition in the columns of its processor: what only a processor has is empty, and
// the owner and the error stand where the reasons do.
func partitionRow(p report.Partition) []Cell {
	lag := Number(p.Lag)
	if p.Approximate && p.Lag != nil {
		lag = "~" + lag
	}
	owner := "no owner"
	if p.Owner != nil {
		owner = "owner " + *p.Owner
	}
	if p.Stall != nil {
		owner += fmt.Sprintf("; %s since %s", p.Stall.Kind, p.Stall.Since.UTC().Format(time.RFC3339))
	}
	if p.Error != nil {
		owner += "; " + oneLine(*p.Error)
	}
	none := Cell{"", Plain, true}
	return []Cell{
		{"  " + p.Lease, Dim, false},
		{string(p.Status), statusColor(p.Status), false},
		{lag, Plain, true},
		{report.Age(p.ChangeAgeSeconds), Plain, true},
		none, none, none, none,
		{owner, Dim, false},
	}
}

// WriteProcessorsJSON prints what `poll --output json` does (docs/operate.md).
func WriteProcessorsJSON(w io.Writer, polled, decided []state.State) error {
	processors, groups := make([]report.Processor, len(polled)), make([]report.Group, len(decided))
	for i, s := range polled {
		processors[i] = report.New(s)
	}
	for i, s := range decided {
		groups[i] = report.NewGroup(s)
	}
	return WriteJSON(w, struct {
		Processors []report.Processor `json:"processors"`
		Groups     []report.Group     `json:"groups"`
	}{processors, groups})
}
