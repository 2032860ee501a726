package console

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
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
			s.Time.UTC().Format(time.RFC3339Nano), field(s.Lag), field(s.Age), strconv.FormatBool(s.Complete), string(s.Status),
			field(s.PartitionCount), field(s.PartitionsWithLag), field(s.Arrival), field(s.DrainPerReplica),
			field(s.MetricValue), field(s.Active), field(s.Previous), field(s.Replicas), field(s.Direction), sheet(report.Why(s.Reasons)),
		})
	}
	out.Flush()
	return out.Error()
}

func field[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

// History is the record of one processor between two times. Samples are in order, the oldest first.
type History struct {
	Processor   string
	Samples     []state.Sample
	From, Until time.Time
}

const (
	chartHeight   = 8  // lines
	mostDecisions = 20 // that are listed
)

// Write draws the lag, the age and the replicas over time, and lists the last changes of the
// replicas.
func (h History) Write(w io.Writer, style Style) error {
	var b strings.Builder
	unknown, decisions := 0, 0
	lags, ages, counts := make([]Point, len(h.Samples)), make([]Point, len(h.Samples)), make([]Point, len(h.Samples))
	for i, s := range h.Samples {
		if s.Lag == nil {
			unknown++
		} else if s.Age == nil && *s.Lag == 0 {
			s.Age = s.Lag
		}
		if s.Changed() {
			decisions++
		}
		lags[i], ages[i], counts[i] = point(s, s.Lag), point(s, s.Age), point(s, s.Replicas)
	}
	b.WriteString(style.wrapLines(fmt.Sprintf("%s  %s to %s: %s, %d unknown, %s\n\n", style.Paint(h.Processor, Bold),
		h.From.Format(time.RFC3339), h.Until.Format(time.RFC3339), report.Count(len(h.Samples), "sample"), unknown, report.Count(decisions, "change"))))
	for _, p := range []Plot{
		{Title: "lag, transactions", Points: lags}, {Title: "age of the oldest change, seconds", Points: ages}, {Title: "replicas", Points: counts},
	} {
		p.Height, p.From, p.To, p.Style = chartHeight, h.From, h.Until, style
		b.WriteString(p.String() + "\n")
	}
	b.WriteString(h.decisions(style))
	return style.print(w, b.String())
}

func point[T int | int64](s state.Sample, n *T) Point {
	if n == nil {
		return Point{s.Time, math.NaN()}
	}
	return Point{s.Time, float64(*n)}
}

// decisions lists the changes of the replicas, the newest last. It has no lag: that of a sample may
// be from a later poll. WHY has the lag of the decision.
func (h History) decisions(style Style) string {
	rows := [][]Cell{Head("TIME", ">REPLICAS", "WHY")}
	for _, s := range h.Samples {
		if !s.Changed() {
			continue
		}
		from := "none"
		if s.Previous != nil {
			from = fmt.Sprint(*s.Previous)
		}
		row := Row(s.Time.UTC().Format(time.RFC3339), fmt.Sprintf("%s → %d", from, *s.Replicas), report.Why(s.Reasons))
		row[2].Color = Dim
		rows = append(rows, row)
	}
	heading := ""
	switch changes := len(rows) - 1; {
	case changes == 0:
		return "no decision changed the replicas\n"
	case changes > mostDecisions:
		heading = fmt.Sprintf("the last %d of %d changes; --output json has all\n", mostDecisions, changes)
		rows = append(rows[:1], rows[len(rows)-mostDecisions:]...)
	}
	style.Width, style.Wrap = cmp.Or(style.Width, chartWidth), true
	return heading + style.Table(rows)
}
