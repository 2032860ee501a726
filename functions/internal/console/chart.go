package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Plot draws numbers as bars from zero upwards. A column is the greatest value of its time. Where a
// value is unknown, the axis has a question mark and no bar; where nothing was recorded, there is
// no axis.
type Plot struct {
	Title    string
	Points   []Point   // oldest first
	Height   int       // in characters, without title, axis and times
	From, To time.Time // To is later
	Top      float64   // value of the upper edge; a greater value raises it
	Style    Style     // its Width bounds the lines; 0 = 100
}

// Point is a value from its time to that of the next Point, unless that is more than twice as far as the mean.
type Point struct {
	Time  time.Time
	Value float64 // NaN is unknown
}

const (
	chartWidth = 100 // default width of a Plot, in characters
	scaleWidth = 6   // of the numbers on the left
	axisWidth  = 2   // of the line beside them, and the space before it
)

// eighths fill a character from below.
var eighths = []rune(" ▁▂▃▄▅▆▇█")

// String is the drawing, which ends with a line break.
func (p Plot) String() string {
	columns := p.columns(max(1, cmp.Or(p.Style.Width, chartWidth)-scaleWidth-axisWidth))
	top, axis := p.Top, ""
	for _, v := range columns {
		switch {
		case math.IsNaN(v):
			axis += "?"
		case v == nothing:
			axis += " "
		default:
			top, axis = max(top, v), axis+"─"
		}
	}
	text, scale := p.Style.Paint(p.Title, Bold)+"\n", compact(cmp.Or(top, 1))
	for line := p.Height - 1; line >= 0; line-- {
		text += p.Style.Paint(fmt.Sprintf("%*s │", scaleWidth, scale), Dim) + p.bars(columns, cmp.Or(top, 1), line) + "\n"
		scale = ""
	}
	text += p.Style.Paint(fmt.Sprintf("%*d └%s", scaleWidth, 0, strings.TrimRight(axis, " ")), Dim) + "\n"
	const clock = "Jan 2 15:04"
	from := p.From.UTC().Format(clock)
	times := fmt.Sprintf("%s%*s", from, len(columns)-len(from), p.To.UTC().Format(clock))
	return text + strings.Repeat(" ", scaleWidth+axisWidth) + p.Style.Paint(Style{Width: len(columns)}.Cut(times), Dim) + "\n"
}

// nothing is the value of a column without a record.
var nothing = math.Inf(-1)

// column is the place of a time among n columns.
func (p Plot) column(t time.Time, n int) int {
	return int(float64(n) * float64(t.Sub(p.From)) / float64(p.To.Sub(p.From)))
}

// columns spreads the points over n columns.
func (p Plot) columns(n int) []float64 {
	columns := slices.Repeat([]float64{nothing}, n)
	last, mean := len(p.Points)-1, time.Duration(0) // between two points
	if last > 0 {
		mean = p.Points[last].Time.Sub(p.Points[0].Time) / time.Duration(last)
	}
	for i, point := range p.Points {
		next := p.To
		if i < last {
			next = p.Points[i+1].Time
		}
		first := p.column(point.Time, n)
		end := first + 1
		if next.Sub(point.Time) <= 2*mean {
			end = max(end, p.column(next, n))
		}
		for column := max(0, first); column < min(end, n); column++ {
			if was := columns[column]; was == nothing || !(was >= point.Value || math.IsNaN(point.Value)) {
				columns[column] = point.Value
			}
		}
	}
	return columns
}

// bars is one line of them, counted from below. A value above zero is always visible.
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
