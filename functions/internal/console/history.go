package console

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
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

// History is what was recorded of one processor between two times, oldest first.
type History struct {
	Processor   string
	Samples     []state.Sample
	From, Until time.Time
}

const (
	chartHeight   = 8   // lines
	chartWidth    = 100 // characters, where the terminal does not say how wide it is
	mostDecisions = 20  // that are listed
)

// Write draws the lag, the age and the replicas over time, and lists the last decisions that changed
// something.
func (h History) Write(w io.Writer, style Style) error {
	style.Width = cmp.Or(style.Width, chartWidth)
	var b strings.Builder
	unknown, decisions := 0, 0
	for _, s := range h.Samples {
		if s.Lag == nil {
			unknown++
		}
		if s.Changed() {
			decisions++
		}
	}
	b.WriteString(style.wrapLines(fmt.Sprintf("%s  %s to %s: %s, %d unknown, %s\n\n", style.Paint(h.Processor, Bold),
		h.From.Format(time.RFC3339), h.Until.Format(time.RFC3339), report.Count(len(h.Samples), "sample"), unknown, report.Count(decisions, "change"))))
	for _, series := range []struct {
		title string
		value func(state.Sample) float64
	}{
		{"lag, transactions", func(s state.Sample) float64 { return orUnknown(s.Lag) }},
		{"age of the oldest change, seconds", func(s state.Sample) float64 {
			if s.Age == nil && s.Lag != nil && *s.Lag == 0 {
				return 0
			}
			return orUnknown(s.Age)
		}},
		{"replicas", func(s state.Sample) float64 { return orUnknown(s.Replicas) }},
	} {
		b.WriteString(Plot{
			Title: series.title, Values: h.columns(max(1, style.Width-scaleWidth-axisWidth), series.value),
			Height: chartHeight, From: h.From, To: h.Until, Style: style,
		}.String() + "\n")
	}
	b.WriteString(h.decisions(style))
	return style.print(w, b.String())
}

func orUnknown[T int | int64](n *T) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

// columns spreads the samples over as many columns: the greatest value of each.
// Where samples follow each other as usual, a column between two shows the
// earlier one; where polls are missing, or did not know the value, it is a gap.
func (h History) columns(n int, value func(state.Sample) float64) []float64 {
	columns := make([]float64, n)
	for i := range columns {
		columns[i] = math.NaN()
	}
	span, usual := float64(h.Until.Sub(h.From)), h.usualStep()
	for i, s := range h.Samples {
		v := value(s)
		first := int(float64(n) * float64(s.Time.Sub(h.From)) / span)
		end := first + 1
		if i+1 < len(h.Samples) {
			if next := h.Samples[i+1].Time; next.Sub(s.Time) <= 2*usual {
				end = max(end, int(float64(n)*float64(next.Sub(h.From))/span))
			}
		}
		for column := first; column < min(end, n); column++ {
			if !(columns[column] >= v) {
				columns[column] = v
			}
		}
	}
	return columns
}

// usualStep is the median time between two samples.
func (h History) usualStep() time.Duration {
	var steps []time.Duration
	for i := 1; i < len(h.Samples); i++ {
		steps = append(steps, h.Samples[i].Time.Sub(h.Samples[i-1].Time))
	}
	if len(steps) == 0 {
		return 0
	}
	slices.Sort(steps)
	return steps[len(steps)/2]
}

// decisions lists those that changed something, the newest last.
func (h History) decisions(style Style) string {
	rows := [][]Cell{Head("TIME", ">REPLICAS", ">LAG", ">AGE", "STATUS", "WHY")}
	for _, s := range h.Samples {
		if !s.Changed() {
			continue
		}
		from := "none"
		if s.Previous != nil {
			from = fmt.Sprint(*s.Previous)
		}
		rows = append(rows, []Cell{
			{s.Time.UTC().Format(time.RFC3339), Plain, false},
			{fmt.Sprintf("%s → %d", from, *s.Replicas), Plain, true},
			{Number(s.Lag), Plain, true},
			{report.Age(s.Age), Plain, true},
			{string(s.Status), statusColor(s.Status), false},
			{report.Why(s.Reasons), Dim, false},
		})
	}
	heading := ""
	switch changes := len(rows) - 1; {
	case changes == 0:
		return "no decision changed the replicas\n"
	case changes > mostDecisions:
		heading = fmt.Sprintf("the last %d of %d changes; --output json has all\n", mostDecisions, changes)
		rows = append(rows[:1], rows[len(rows)-mostDecisions:]...)
	}
	style.Wrap = true
	return heading + style.Table(rows, "AGE", "STATUS", "LAG")
}
