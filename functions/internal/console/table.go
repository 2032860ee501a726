package console

import (
	"strings"
	"unicode/utf8"
)

// Cell is one field of a table.
type Cell struct {
	Text  string
	Color string
	Right bool // aligned to the right, as numbers are
}

// printed is the text as it stands in a table: an owner's name, say, is what any host chose.
func (c Cell) printed() string { return printable(c.Text) }

// Head makes the first row of a table. A name that begins with > is aligned to the right.
func Head(names ...string) []Cell {
	cells := make([]Cell, len(names))
	for i, name := range names {
		text, right := strings.CutPrefix(name, ">")
		cells[i] = Cell{text, Bold, right}
	}
	return cells
}

// columnGap is between two columns.
const columnGap = "  "

// Table aligns the columns of rows, the head first. What does not fit the width of the last column is
// cut; a width of 0 is any.
func (s Style) Table(rows [][]Cell) string {
	last := len(rows[0]) - 1
	widths := make([]int, last+1)
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.printed()))
		}
	}
	left := 0
	for _, w := range widths[:last] {
		left += w + len(columnGap)
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row[:last] {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.printed()))
			text := s.Paint(c.printed(), c.Color)
			if c.Right {
				text, pad = pad+text, ""
			}
			line.WriteString(text + pad + columnGap)
		}
		end := row[last].printed()
		if s.Width > 0 {
			end = cut(end, max(1, s.Width-left))
		}
		line.WriteString(s.Paint(end, row[last].Color))
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
