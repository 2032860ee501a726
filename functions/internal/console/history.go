package console

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// WriteSamplesCSV writes a line for each sample. Empty is unknown.
func WriteSamplesCSV(w io.Writer, samples []state.Sample) error {
	out := csv.NewWriter(w)
	// An error stays with the writer until the end.
	_ = out.Write([]string{
		"time", "lag", "changeAgeSeconds", "complete", "status", "partitionCount", "partitionsWithLag", "arrivalPerSecond", "drainPerReplica",
		"metricValue", "active", "previousReplicas", "desiredReplicas", "direction", "why",
	})
	for _, s := range samples {
		_ = out.Write([]string{
			s.Time.UTC().Format(time.RFC3339Nano), text(s.Lag, ""), text(s.Age, ""), strconv.FormatBool(s.Complete), string(s.Status),
			text(s.PartitionCount, ""), text(s.PartitionsWithLag, ""), text(s.Arrival, ""), text(s.DrainPerReplica, ""),
			text(s.MetricValue, ""), text(s.Active, ""), text(s.Previous, ""), text(s.Replicas, ""), text(s.Direction, ""), sheet(report.Why(s.Reasons)),
		})
	}
	out.Flush()
	return out.Error()
}

const (
	chartHeight   = 8  // lines
	mostDecisions = 20 // that are listed
)

// WriteHistory draws the lag, the age and the replicas between two times, and lists the last changes of
// the replicas. Samples are in order, the oldest first.
func WriteHistory(w io.Writer, of report.History, from, until time.Time, style Style) error {
	unknown := 0
	plots := []Plot{{Title: "lag, transactions"}, {Title: "age of the oldest change, seconds"}, {Title: "replicas"}}
	for _, s := range of.Samples {
		if s.Lag == nil {
			unknown++
		} else if s.Age == nil && *s.Lag == 0 {
			s.Age = s.Lag
		}
		for i, value := range []float64{report.Float(s.Lag), report.Float(s.Age), report.Float(s.Replicas)} {
			plots[i].Points = append(plots[i].Points, Point{s.Time, value})
		}
	}
	drawn := style.wrapLines(fmt.Sprintf("%s  %s to %s: %s, %d unknown\n\n", style.Paint(of.Processor, Bold), from.Format(time.RFC3339),
		until.Format(time.RFC3339), report.Count(len(of.Samples), "sample"), unknown))
	for _, p := range plots {
		p.Height, p.From, p.To, p.Style = chartHeight, from, until, style
		drawn += p.String() + "\n"
	}
	return style.print(w, drawn+decisions(of.Samples, style))
}

// decisions lists the changes of the replicas, the newest last. It has no lag: that of a sample may
// be from a later poll. WHY has the lag of the decision.
func decisions(samples []state.Sample, style Style) string {
	rows := [][]Cell{Head("TIME", ">REPLICAS", "WHY")}
	for _, s := range samples {
		if !s.Changed() {
			continue
		}
		row := Row(s.Time.UTC().Format(time.RFC3339), fmt.Sprintf("%s → %d", text(s.Previous, "none"), *s.Replicas), report.Why(s.Reasons))
		row[2].Color = Dim
		rows = append(rows, row)
	}
	heading, changes := "", len(rows)-1
	if changes == 0 {
		return "no decision changed the replicas\n"
	}
	if changes > mostDecisions {
		heading = fmt.Sprintf("the last %d of %d changes; --output json has all\n", mostDecisions, changes)
		rows = append(rows[:1], rows[len(rows)-mostDecisions:]...)
	}
	style.Width, style.Wrap = cmp.Or(style.Width, chartWidth), true
	return heading + style.Table(rows)
}
