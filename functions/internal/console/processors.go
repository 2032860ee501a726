package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// WriteProcessors prints a line for each processor and group, and a summary of several. Below a
// processor it prints the containers whose throughput follows it and, on request, its partitions,
// the worst first.
func WriteProcessors(w io.Writer, polled, decided []state.State, withPartitions bool, style Style) error {
	style.Wrap = true // WHY is for copying
	text := ProcessorTable(ProcessorRows(polled, decided, withPartitions), style)
	if len(polled) > 1 {
		text += "\n" + style.wrapLines(summary(polled)+"\n")
	}
	return style.print(w, text)
}

// ProcessorTable is the table of ProcessorRows. A narrow terminal has fewer columns.
func ProcessorTable(rows [][]Cell, style Style) string {
	return style.Table(rows, "RU", "CATCH-UP", "PARTITIONS", "AGE", "RUNNING")
}

// ProcessorRows are the rows of WriteProcessors: a head, then PROCESSOR, STATUS, LAG, AGE,
// CATCH-UP, REPLICAS, PARTITIONS, RU and WHY.
func ProcessorRows(polled, decided []state.State, withPartitions bool) [][]Cell {
	rows := [][]Cell{Head("PROCESSOR", "STATUS", ">LAG", ">AGE", ">CATCH-UP", ">REPLICAS", ">PARTITIONS", ">RU", "WHY")}
	for _, s := range polled {
		r := report.New(s)
		why := report.Why(r.Reasons)
		if r.Error != nil && !(withPartitions && len(r.Partitions) > 0) { // their rows have it
			why = strings.TrimSuffix(oneLine(*r.Error)+"; "+why, "; ")
		}
		rows = append(rows, row(r.Name, r.Subject, catchUp(s), partitions(r), fmt.Sprintf("%.1f", r.RequestCharge), why))
		if withPartitions {
			slices.SortStableFunc(r.Partitions, func(a, b report.Partition) int {
				return slices.Compare(worst(a.Status, a.Lag), worst(b.Status, b.Lag))
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
		rows = append(rows, row("group "+g.Name, g.Subject, "", "", "", report.Why(g.Reasons)))
	}
	return rows
}

// row is a line of ProcessorRows.
func row(name string, of report.Subject, catchUp, partitions, charge, why string) []Cell {
	cells := Row(name, string(of.Status), Number(of.Lag), report.Age(of.ChangeAgeSeconds), catchUp, replicas(of), partitions, charge, why)
	cells[1].Color, cells[7].Color, cells[8].Color = statusColor(of.Status), Dim, Dim
	return cells
}

// summary counts processors by status.
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

// partitionRow is a partition. WHY is its owner and its error.
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
	cells := row("  "+p.Lease, report.Subject{Status: p.Status, Lag: p.Lag, ChangeAgeSeconds: p.ChangeAgeSeconds}, "", "", "", owner)
	cells[5].Text = ""
	cells[0].Color = Dim
	if p.Approximate && p.Lag != nil {
		cells[2].Text = "~" + cells[2].Text
	}
	return cells
}

// WriteProcessorsJSON prints the JSON of `poll --output json` (docs/operate.md).
func WriteProcessorsJSON(w io.Writer, polled, decided []state.State) error {
	processors, groups := []report.Processor{}, []report.Group{}
	for _, s := range polled {
		processors = append(processors, report.New(s))
	}
	for _, s := range decided {
		groups = append(groups, report.NewGroup(s))
	}
	return WriteJSON(w, struct {
		Processors []report.Processor `json:"processors"`
		Groups     []report.Group     `json:"groups"`
	}{processors, groups})
}

// Listing selects and sorts processors.
type Listing struct {
	Sort     string              // one of Sorts; "" = as they come
	Statuses []changefeed.Status // none = any
	All      bool                // also those that a status of many processors leaves out
}

// Sorts are the orders of a Listing: status, then lag, the worst first; the greatest number first;
// or name.
func Sorts() []string { return []string{"status", "lag", "age", "replicas", "name"} }

// Arrange returns the values that a listing shows, in its order. of returns the processor of a
// value.
func Arrange[T any](l Listing, all []T, of func(T) report.Processor) []T {
	type entry struct {
		value T
		report.Processor
	}
	var shown []entry
	for _, value := range all {
		e := entry{value, of(value)}
		if len(l.Statuses) == 0 || slices.Contains(l.Statuses, e.Status) {
			shown = append(shown, e)
		}
	}
	slices.SortStableFunc(shown, func(a, b entry) int {
		if l.Sort == "name" {
			return strings.Compare(a.Name, b.Name)
		}
		return slices.Compare(l.keys(a.Processor), l.keys(b.Processor))
	})
	values := make([]T, len(shown))
	for i, e := range shown {
		values[i] = e.value
	}
	return values
}

// keys order processors by numbers, the lowest first. An unknown one is NaN, the lowest of all.
func (l Listing) keys(p report.Processor) []float64 {
	switch l.Sort {
	case "status":
		return worst(p.Status, p.Lag)
	case "lag":
		return []float64{-report.Float(p.Lag)}
	case "age":
		if p.ChangeAgeSeconds == nil && p.Lag != nil { // nothing is pending
			return []float64{0}
		}
		return []float64{-report.Float(p.ChangeAgeSeconds)}
	case "replicas":
		return []float64{-report.Float(p.DesiredReplicas)}
	}
	return nil
}

// worst orders by status, then by lag, the worst first.
func worst(s changefeed.Status, lag *int64) []float64 {
	all := changefeed.Statuses()
	return []float64{float64(slices.Index(all[:], s)), -report.Float(lag)}
}
