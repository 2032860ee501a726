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
	style.Wrap = true // a person may want to copy all of WHY
	text := ProcessorTable(ProcessorRows(polled, decided, withPartitions), style)
	if len(polled) > 1 {
		text += "\n" + style.wrapLines(summary(polled)+"\n")
	}
	return style.print(w, text)
}

// ProcessorTable is the table of ProcessorRows, whose columns give way where a terminal is narrow.
func ProcessorTable(rows [][]Cell, style Style) string {
	return style.Table(rows, "RU", "WRITTEN", "DONE", "CATCH-UP", "PARTITIONS", "AGE", "RUNNING")
}

// ProcessorRows are a head, PROCESSOR, STATUS, LAG, AGE, CATCH-UP, REPLICAS, PARTITIONS, RU and WHY, and
// the lines of WriteProcessors.
func ProcessorRows(polled, decided []state.State, withPartitions bool) [][]Cell {
	rows := [][]Cell{Head("PROCESSOR", "STATUS", ">LAG", ">AGE", ">CATCH-UP", ">REPLICAS", ">PARTITIONS", ">RU", "WHY")}
	for _, s := range polled {
		r := report.New(s)
		why := report.Why(r.Reasons)
		if r.Error != nil && !(withPartitions && len(r.Partitions) > 0) { // each says its own error
			why = strings.TrimSuffix(oneLine(*r.Error)+"; "+why, "; ")
		}
		rows = append(rows, row(r.Name, r.Status, r.Lag, r.ChangeAgeSeconds, why,
			catchUp(s), replicas(r.DesiredReplicas, r.Direction), partitions(r), fmt.Sprintf("%.1f", r.RequestCharge)))
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
		rows = append(rows, row("group "+g.Name, g.Status, g.Lag, g.ChangeAgeSeconds, report.Why(g.Reasons), "", replicas(g.DesiredReplicas, g.Direction)))
	}
	return rows
}

// row is a line of ProcessorRows. numbers are CATCH-UP, REPLICAS, PARTITIONS and RU, as far as it has them.
func row(name string, status changefeed.Status, lag, age *int64, why string, numbers ...string) []Cell {
	cells := []Cell{{Text: name}, {string(status), statusColor(status), false}, {Number(lag), Plain, true}, {report.Age(age), Plain, true}}
	for i := range 4 {
		cell := Cell{Right: true}
		if i < len(numbers) {
			cell.Text = numbers[i]
		}
		cells = append(cells, cell)
	}
	cells[7].Color = Dim
	return append(cells, Cell{why, Dim, false})
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

// partitionRow is a partition, whose owner and error stand where the reasons of its processor do.
func partitionRow(p report.Partition) []Cell {
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
	cells := row("  "+p.Lease, p.Status, p.Lag, p.ChangeAgeSeconds, owner)
	cells[0].Color = Dim
	if p.Approximate && p.Lag != nil {
		cells[2].Text = "~" + cells[2].Text
	}
	return cells
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
