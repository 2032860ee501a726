package console

import (
	"fmt"
	"io"
	"strings"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// WriteProcessors prints one line for each processor, below it one for each of its partitions where
// they are asked for, and one for each error.
func WriteProcessors(w io.Writer, polled []state.State, withPartitions bool, style Style) error {
	rows := [][]Cell{Head("PROCESSOR", "STATUS", ">LAG", ">AGE", ">CATCH-UP", ">REPLICAS", ">PARTITIONS", ">RU", "WHY")}
	var errors strings.Builder
	for _, s := range polled {
		r := report.New(s)
		rows = append(rows, []Cell{
			{r.Name, Plain, false},
			{string(r.Status), statusColor(r.Status), false},
			{Number(r.Lag), Plain, true},
			{Age(r.ChangeAgeSeconds), Plain, true},
			{CatchUp(s), Plain, true},
			{Replicas(r), Plain, true},
			{Partitions(r), Plain, true},
			{fmt.Sprintf("%.1f", r.RequestCharge), Dim, true},
			{report.Why(r.Reasons), Dim, false},
		})
		if withPartitions {
			for _, p := range r.Partitions {
				rows = append(rows, partitionRow(p))
			}
		}
		if r.Error != nil {
			errors.WriteString(style.Paint(r.Name+": ", Red) + oneLine(*r.Error) + "\n")
		}
	}
	style.Width = 0 // a person may want to copy all of WHY
	_, err := io.WriteString(w, style.Table(rows)+errors.String())
	return err
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
	if p.Error != nil {
		owner += "; " + oneLine(*p.Error)
	}
	none := Cell{"", Plain, true}
	return []Cell{
		{"  " + p.Lease, Dim, false},
		{string(p.Status), statusColor(p.Status), false},
		{lag, Plain, true},
		{Age(p.ChangeAgeSeconds), Plain, true},
		none, none, none, none,
		{owner, Dim, false},
	}
}

// WriteProcessorsJSON prints what `poll --output json` does (docs/operate.md).
func WriteProcessorsJSON(w io.Writer, polled []state.State) error {
	reports := make([]report.Processor, len(polled))
	for i, s := range polled {
		reports[i] = report.New(s)
	}
	return WriteJSON(w, struct {
		Processors []report.Processor `json:"processors"`
	}{reports})
}

// StatusCell is a status in its color.
func StatusCell(r report.Processor) Cell {
	return Cell{string(r.Status), statusColor(r.Status), false}
}
