package console

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Plot draws numbers from zero upwards as bars, of which each column is the greatest of its time. What
// is unknown is a gap, never zero: there the axis shows a question mark and nothing stands on it.
type Plot struct {
	Title    string
	Values   []float64 // evenly apart; NaN is unknown
	Height   int       // in characters, without title, axis and times
	From, To time.Time // zero: no times
	Top      float64   // value of the upper edge; 0 = the greatest there is
	Limit    float64   // what is above it is yellow; 0 = none
	Style    Style     // its Width bounds the lines
}

const (
	scaleWidth = 6 // of the numbers on the left
	axisWidth  = 2 // of the line beside them, and the space before it
)

// eighths fill a character from below.
var eighths = []rune(" ▁▂▃▄▅▆▇█")

// String is the drawing, which ends with a line break.
func (p Plot) String() string {
	columns := greatest(p.Values, max(1, p.Style.Width-scaleWidth-axisWidth))
	top := p.Top
	for _, v := range columns {
		if p.Top == 0 && v > top { // not so where v is unknown
			top = v
		}
	}
	if top == 0 {
		top = 1
	}
	var b strings.Builder
	if p.Title != "" {
		b.WriteString(p.Style.Paint(p.Title, Bold) + "\n")
	}
	for line := p.Height - 1; line >= 0; line-- {
		scale := ""
		if line == p.Height-1 {
			scale = compact(top)
		}
		color := Plain
		if p.Limit > 0 && top*float64(line) >= p.Limit*float64(p.Height) {
			color = Yellow
		}
		b.WriteString(p.Style.Paint(fmt.Sprintf("%*s │", scaleWidth, scale), Dim) + p.Style.Paint(p.bars(columns, top, line), color) + "\n")
	}
	ticks := p.ticks(len(columns))
	b.WriteString(p.Style.Paint(fmt.Sprintf("%*d └%s", scaleWidth, 0, axis(columns, ticks)), Dim) + "\n")
	if len(ticks) > 0 {
		b.WriteString(strings.Repeat(" ", scaleWidth+axisWidth) + p.Style.Paint(times(ticks), Dim) + "\n")
	}
	return b.String()
}

// greatest spreads values over columns. A column is unknown where all of its
// values are.
func greatest(values []float64, columns int) []float64 {
	spread := make([]float64, columns)
	for i := range spread {
		spread[i] = math.NaN()
		from := i * len(values) / columns
		to := max(from+1, (i+1)*len(values)/columns)
		for _, v := range values[from:min(to, len(values))] {
			if !(spread[i] >= v) && !math.IsNaN(v) {
				spread[i] = v
			}
		}
	}
	return spread
}

// bars is one line of them, counted from below. What is above zero shows, however
// little it is.
func (p Plot) bars(columns []float64, top float64, line int) string {
	full := len(eighths) - 1
	var b strings.Builder
	for _, v := range columns {
		fill := 0
		if v > 0 {
			fill = max(1, int(math.Round(min(v/top, 1)*float64(full*p.Height))))
		}
		b.WriteRune(eighths[min(max(0, fill-full*line), full)])
	}
	return strings.TrimRight(b.String(), " ")
}

// axis is the line below the bars.
func axis(columns []float64, ticks []tick) string {
	line := make([]string, len(columns))
	for i, v := range columns {
		if line[i] = "─"; math.IsNaN(v) {
			line[i] = unknown
		}
	}
	for _, t := range ticks {
		if line[t.column] == "─" {
			line[t.column] = "┬"
		}
	}
	return strings.Join(line, "")
}

// tick is a time on the axis, whose label begins in its column.
type tick struct {
	column int
	label  string
}

// tickSteps are the distances that ticks may have.
var tickSteps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 84 * day,
}

const day = 24 * time.Hour

// ticks finds round times, in UTC, as many as there is room for.
func (p Plot) ticks(columns int) []tick {
	span := p.To.Sub(p.From)
	if p.From.IsZero() || span <= 0 {
		return nil
	}
	for _, step := range tickSteps {
		layout := "15:04"
		switch {
		case step < time.Minute:
			layout = "15:04:05"
		case step >= day:
			layout = "Jan 2"
		}
		if room := float64(columns) * float64(step) / float64(span); room < float64(len(layout)+4) {
			continue
		}
		var ticks []tick
		for at := p.From.UTC().Add(step - 1).Truncate(step); at.Before(p.To); at = at.Add(step) {
			t := tick{column: int(float64(columns) * float64(at.Sub(p.From)) / float64(span)), label: at.Format(layout)}
			if t.column+len(t.label) <= columns {
				ticks = append(ticks, t)
			}
		}
		return ticks
	}
	return nil
}

// times is the line of labels below an axis.
func times(ticks []tick) string {
	var b strings.Builder
	for _, t := range ticks {
		b.WriteString(strings.Repeat(" ", t.column-b.Len()) + t.label)
	}
	return b.String()
}
