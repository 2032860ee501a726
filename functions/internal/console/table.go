package console

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cell is one field of a table.
type Cell struct {
	Text  string
	Color string
	Right bool // aligned to the right, as numbers are
}

// Head makes the first row of a table. A name that begins with > is aligned to the right.
func Head(names ...string) []Cell {
	cells := make([]Cell, len(names))
	for i, name := range names {
		text, right := strings.CutPrefix(name, ">")
		cells[i] = Cell{text, Bold, right}
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

// clipped returns rows as they stand in a table: the name of an owner, say, is what any host chose.
func clipped(rows [][]Cell) [][]Cell {
	shown := make([][]Cell, len(rows))
	for r, row := range rows {
		shown[r] = slices.Clone(row)
		for i, c := range row {
			most := mostName
			if i == len(row)-1 {
				most = mostText
			}
			shown[r][i].Text = cut(printable(c.Text), most)
		}
	}
	return shown
}

// Table aligns the columns of rows, the head first. Where they are wider than the terminal, those columns
// give way that are worth least, in the order of their names; then text becomes narrower. It is cut at a
// word or, where the style wraps, goes on in the next line: that of the last column below the others, where
// that takes fewer lines. Numbers are never broken. A width of 0 is any.
func (s Style) Table(rows [][]Cell, leastFirst ...string) string {
	return strings.Join(s.Rows(rows, leastFirst...), "")
}

// Rows are the rows of a Table one by one, each with its line breaks.
func (s Style) Rows(rows [][]Cell, leastFirst ...string) []string {
	rows = clipped(rows)
	widths, below := s.fit(rows, leastFirst)
	texts := make([]string, len(rows))
	for r, row := range rows {
		cells, height := make([][]string, len(row)), 1
		for i, c := range row {
			cells[i] = []string{cut(c.Text, widths[i])}
			if s.Wrap && !c.Right && widths[i] > 0 {
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
				if c.Right {
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

// fit returns the width of each column, 0 for one that gives way, and whether the last column stands below
// the others.
func (s Style) fit(rows [][]Cell, leastFirst []string) (widths []int, below bool) {
	head := rows[0]
	last := len(head) - 1
	natural := make([]int, last+1)
	for _, row := range rows {
		for i, c := range row {
			natural[i] = max(natural[i], utf8.RuneCountInString(c.Text))
		}
	}
	if s.Width <= 0 {
		return natural, false
	}
	least := natural[last]
	if !head[last].Right {
		least = min(least, leastText)
	}
	widths = s.giveWay(head, natural, least, leastFirst)
	if s.Wrap && !head[last].Right {
		room := widths[last] + s.Width - lineWidth(widths)
		if below = room < least || s.height(rows, s.Width-2*len(gap))+len(rows) < s.height(rows, room); below {
			widths = s.giveWay(head, natural, 0, leastFirst)
		}
	}
	for lineWidth(widths) > s.Width {
		widest := -1
		for i := range last {
			if !head[i].Right && widths[i] > leastName && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	if !head[last].Right && widths[last] > 0 {
		widths[last] = max(1, min(natural[last], widths[last]+s.Width-lineWidth(widths)))
	}
	return widths, below
}

// height is how many lines the texts of the last column take in a width.
func (s Style) height(rows [][]Cell, width int) (lines int) {
	for _, row := range rows {
		lines += len(wrap(row[len(row)-1].Text, width, width))
	}
	return lines
}

// giveWay leaves out columns, in the order of their names, until the others fit beside the last one, of a
// width.
func (s Style) giveWay(head []Cell, natural []int, last int, leastFirst []string) []int {
	widths := slices.Clone(natural)
	widths[len(widths)-1] = last
	for _, name := range leastFirst {
		for i, c := range head {
			if c.Text == name && lineWidth(widths) > s.Width {
				widths[i] = 0
			}
		}
	}
	return widths
}

// lineWidth is that of columns beside each other.
func lineWidth(widths []int) int {
	sum := 0
	for _, w := range widths {
		if w > 0 {
			sum += w + len(gap)
		}
	}
	return max(0, sum-len(gap))
}

// Wrap breaks a line at its blanks, those behind the first with an indent. A width of 0 is any.
func Wrap(line, indent string, width int) string {
	if width <= 0 {
		return line
	}
	return strings.Join(wrap(line, width, width-len(indent)), "\n"+indent)
}

// wrapLines breaks each line of a text to the width of the terminal; what follows is indented by two more.
func (s Style) wrapLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		own := len(line) - len(strings.TrimLeft(line, " "))
		b.WriteString(Wrap(line, strings.Repeat(" ", own+2), s.Width) + "\n")
	}
	return b.String()
}

// color is what paints, and takes no room.
var color = regexp.MustCompile("\x1b\\[[0-9;]*m")

// room is how many characters of a line a text takes.
func room(text string) int { return utf8.RuneCountInString(color.ReplaceAllString(text, "")) }

// wrap breaks a text into lines at its blanks; first is the width of the first line. A word that is longer
// than a line is broken after a sign, such as those in an address, or at the end of the line.
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

// cut shortens a line to a width in characters, at a blank in its second half if there is one, and never
// inside a number; 0 is any.
func cut(line string, width int) string {
	runes := []rune(line)
	if width <= 0 || len(runes) <= width {
		return line
	}
	line = string(runes[:width-1])
	if blank := strings.LastIndex(line, " "); blank > width/2 && runes[width-1] != ' ' {
		line = line[:blank]
	} else if unicode.IsDigit(runes[width-1]) {
		line = strings.TrimRight(line, "0123456789.,")
	}
	return strings.TrimRight(line, " ") + "…"
}
