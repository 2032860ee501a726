package console

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Narrow leaves columns out of a table, by their heads and in that order, until it fits the width and a
// fifth of that is left for the last column, which is then shortened. A width of 0 is any.
func (s Style) Narrow(rows [][]Cell, giveWay ...string) [][]Cell {
	if s.Width <= 0 {
		return rows
	}
	rows = slices.Clone(rows)
	for _, name := range giveWay {
		if left(rows)+s.Width/5 <= s.Width {
			break
		}
		at := slices.IndexFunc(rows[0], func(c Cell) bool { return c.Text == name })
		for i, row := range rows {
			rows[i] = slices.Concat(row[:at], row[at+1:])
		}
	}
	room := max(1, s.Width-left(rows))
	for i, row := range rows {
		end := len(row) - 1
		rows[i] = slices.Clone(row)
		rows[i][end].Text = shorten(row[end].printed(), room)
	}
	return rows
}

// left is the width of all columns but the last, with the gaps behind them.
func left(rows [][]Cell) int {
	sum := 0
	for i := range rows[0][:len(rows[0])-1] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(row[i].printed()))
		}
		sum += widest + len(columnGap)
	}
	return sum
}

// Shorten cuts a line to the width of the terminal behind a word.
func (s Style) Shorten(line string) string { return shorten(line, s.Width) }

// shorten cuts a line behind a word, or where that would leave less than half of the room inside one, but
// never inside a number; 0 is any width.
func shorten(line string, width int) string {
	runes := []rune(line)
	if width <= 0 || len(runes) <= width {
		return line
	}
	kept := runes[:width-1]
	if !unicode.IsSpace(runes[width-1]) {
		at := len(kept)
		for at > 0 && !unicode.IsSpace(kept[at-1]) {
			at--
		}
		if at <= len(kept)/2 {
			for at = len(kept); at > 0 && ofNumber(runes[at]) && ofNumber(runes[at-1]); at-- {
			}
		}
		kept = kept[:at]
	}
	return strings.TrimRight(string(kept), " ,;:") + "…"
}

func ofNumber(r rune) bool { return unicode.IsDigit(r) || r == '.' || r == ',' }
