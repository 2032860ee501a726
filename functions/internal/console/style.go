// Package console turns values into text for a terminal: tables, charts and explanations. It reads
// nothing and decides nothing.
//
// Start with [Style] and, for the table that most people see, [WriteProcessors].
//
// The package is internal to the program: its API may change in any release.
package console

import (
	"strings"
	"unicode"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

// Style is the width and the colors of an output.
type Style struct {
	Width  int // in characters; 0 = unlimited
	Colors bool
	Wrap   bool // texts of a table continue in the next line, and are not cut
}

// The colors of a terminal, as SGR parameters (ECMA-48).
const (
	Plain  = ""
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Paint colors a text, if the style has colors.
func (s Style) Paint(text, color string) string {
	if !s.Colors || color == Plain || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Cut shortens a line to the width. A line that is shortened loses its colors.
func (s Style) Cut(line string) string {
	if room(line) <= s.Width {
		return line
	}
	return cut(color.ReplaceAllString(line, ""), s.Width)
}

// printable is a text with blanks for invisible characters. Other blanks stay, since it may be a
// name for copying.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return ' '
		}
		return r
	}, text)
}

// oneLine is a text with a single blank for all blanks and invisible characters in a row.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unseen(r) }), " ")
}

func statusColor(s changefeed.Status) string {
	switch report.SeverityOf(s) {
	case report.OK:
		return Green
	case report.Critical:
		return Red
	default:
		return Yellow
	}
}
