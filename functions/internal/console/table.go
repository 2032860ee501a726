package console

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Cell is one field of a table.
type Cell struct {
	Text  string
	Color string
}

// Head makes the first row of a table. The column of a name that begins with > is aligned to the
// right, as numbers are.
func Head(names ...string) []Cell {
	cells := Row(names...)
	for i := range cells {
		cells[i].Color = Bold
	}
	return cells
}

// Row makes a row without colors.
func Row(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	return cells
}

const (
	gap       = "  "
	leastText = 24   // characters that a last column of text keeps, while others can give way
	leastName = 14   // characters that any other column of text keeps
	mostText  = 1000 // characters of a cell in the last column, and of a comment
	mostName  = 120  // characters of any other cell
)

// clipped returns rows with bounded texts, since any host may choose the name of an owner, and
// which columns are aligned to the right.
func clipped(rows [][]Cell) (shown [][]Cell, right []bool) {
	shown, right = make([][]Cell, len(rows)), make([]bool, len(rows[0]))
	for r, row := range rows {
		shown[r] = slices.Clone(row)
		for i, c := range row {
			if r == 0 {
				c.Text, right[i] = strings.CutPrefix(c.Text, ">")
			}
			most := mostName
			if i == len(row)-1 {
				most = mostText
			}
			shown[r][i].Text = cut(printable(c.Text), most)
		}
	}
	return shown, right
}

// Table aligns the columns of rows, the head first. If they are wider than the terminal, the
// columns of leastFirst are left out, in their order; then texts become narrower. A narrow text is
// cut at a word. If the style wraps, it continues in the next line instead, and a last column
// without room stands below the others. Numbers are never broken. A width of 0 is unlimited.
func (s Style) Table(rows [][]Cell, leastFirst ...string) string {
	return strings.Join(s.Rows(rows, leastFirst...), "")
}

// Rows are the rows of a Table one by one, each with its line breaks.
func (s Style) Rows(rows [][]Cell, leastFirst ...string) []string {
	rows, right := clipped(rows)
	widths, below := s.fit(rows, right, leastFirst)
	texts := make([]string, len(rows))
	for r, row := range rows {
		cells, height := make([][]string, len(row)), 1
		for i, c := range row {
			cells[i] = []string{cut(c.Text, widths[i])}
			if s.Wrap && !right[i] && widths[i] > 0 {
				cells[i] = wrap(c.Text, widths[i], widths[i])
			}
			height = max(height, len(cells[i]))
		}
		var b strings.Builder
		for l := range height {
			var line strings.Builder
			for i, c := range row {
				if widths[i] == 0 {
					continue
				}
				text := ""
				if l < len(cells[i]) {
					text = cells[i][l]
				}
				pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
				text = s.Paint(text, c.Color)
				if right[i] {
					text, pad = pad+text, ""
				}
				line.WriteString(text + pad + gap)
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		if last := row[len(row)-1]; below && last.Text != "" {
			for _, text := range wrap(last.Text, s.Width-2*len(gap), s.Width-2*len(gap)) {
				b.WriteString(gap + gap + s.Paint(text, last.Color) + "\n")
			}
		}
		texts[r] = b.String()
	}
	return texts
}

// fit returns the width of each column, 0 for one that is left out, and whether the last column
// stands below the others: beside all of them it would have too little room.
func (s Style) fit(rows [][]Cell, right []bool, leastFirst []string) (widths []int, below bool) {
	last := len(right) - 1
	widths = make([]int, last+1)
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	if s.Width <= 0 {
		return widths, false
	}
	natural := widths[last]
	if !right[last] {
		room := s.Width - lineWidth(widths[:last]) - len(gap)
		if below = s.Wrap && room < min(natural, leastText); below {
			natural = 0
		}
		widths[last] = min(natural, leastText)
	}
	for _, name := range leastFirst {
		for i, c := range rows[0] {
			if c.Text == name && lineWidth(widths) > s.Width {
				widths[i] = 0
			}
		}
	}
	for i := range last {
		if over := lineWidth(widths) - s.Width; over > 0 && !right[i] {
			widths[i] = max(min(widths[i], leastName), widths[i]-over)
		}
	}
	if !right[last] && widths[last] > 0 {
		widths[last] = max(1, min(natural, widths[last]+s.Width-lineWidth(widths)))
	}
	return widths, below
}

// lineWidth is the width of columns beside each other.
func lineWidth(widths []int) int {
	sum := 0
	for _, w := range widths {
		if w > 0 {
			sum += w + len(gap)
		}
	}
	return max(0, sum-len(gap))
}

// Wrap breaks a line at its blanks. Lines after the first have an indent. A width of 0 is
// unlimited.
func Wrap(line, indent string, width int) string {
	if width <= 0 {
		return line
	}
	return strings.Join(wrap(line, width, width-len(indent)), "\n"+indent)
}

// wrapLines wraps each line of a text to the width, and indents what follows by two more
// characters.
func (s Style) wrapLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		own := len(line) - len(strings.TrimLeft(line, " "))
		b.WriteString(Wrap(line, strings.Repeat(" ", own+2), s.Width) + "\n")
	}
	return b.String()
}

// color matches any code that colors; it takes no room.
var color = regexp.MustCompile("\x1b\\[[0-9;]*m")

// room is how many characters of a line a text takes.
func room(text string) int { return utf8.RuneCountInString(color.ReplaceAllString(text, "")) }

// wrap breaks a text into lines at its blanks; first is the width of the first line. A word that is
// longer than a line is broken after a sign, such as those in an address, or at the end of the
// line.
func wrap(text string, first, others int) (lines []string) {
	line, width := "", max(1, first)
	for i, word := range strings.Split(strings.TrimRight(text, " "), " ") {
		if i > 0 && room(line+" "+word) <= width {
			line += " " + word
			continue
		}
		if i > 0 {
			lines, width = append(lines, line), max(1, others)
		}
		for room(word) > width && !color.MatchString(word) {
			part := string([]rune(word)[:width])
			if sign := strings.LastIndexAny(part, "/:-_="); sign > width/3 {
				part = part[:sign+1]
			}
			lines, word, width = append(lines, part), strings.TrimPrefix(word, part), max(1, others)
		}
		line = word
	}
	return append(lines, line)
}

// cut shortens a line to a width in characters, never inside a number; 0 is any.
func cut(line string, width int) string {
	runes := []rune(line)
	if width <= 0 || len(runes) <= width {
		return line
	}
	const number = "0123456789.,"
	line = string(runes[:width-1])
	if strings.ContainsRune(number, runes[width-1]) {
		line = strings.TrimRight(line, number)
	}
	return strings.TrimRight(line, " ") + "…"
}
