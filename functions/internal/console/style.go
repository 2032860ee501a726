// Package console turns values into text for a terminal: tables, charts and explanations. It reads
// nothing and decides nothing.
//
// Start with [Style] and, for the table that most people see, [WriteProcessors].
//
// The package is internal to the program: its API may change in any release.
package console

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

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
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Paint colors a text, if the style has colors.
func (s Style) Paint(text, color string) string {
	if !s.Colors || color == "" || text == "" {
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

// unseen matches a character that controls a terminal, turns the direction of a text, or hides.
var unseen = regexp.MustCompile(`[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]`)

// printable is a text with blanks for invisible characters. Other blanks stay, since it may be a
// name for copying.
func printable(text string) string { return unseen.ReplaceAllString(text, " ") }

// oneLine is a text with a single blank for all blanks and invisible characters in a row.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

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

// hidden matches the codes of [Style.Paint] and, except line breaks and tabs, unseen characters.
var hidden = regexp.MustCompile(`\x1b\[(?:0|` + strings.Join([]string{Bold, Dim, Red, Green, Yellow}, "|") + `)m|[\x00-\x08\x0b-\x1f\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]`)

// Lines writes lines of text for a terminal. Invisible characters, except line breaks and tabs,
// become \uXXXX, which means the same in JSON. Each call has to write whole characters.
type Lines struct{ io.Writer }

// Write writes text.
func (l Lines) Write(text []byte) (int, error) {
	return len(text), Style{}.print(l.Writer, string(text))
}

// print writes a text as [Lines] does, and keeps its colors.
func (s Style) print(w io.Writer, text string) error {
	_, err := io.WriteString(w, hidden.ReplaceAllStringFunc(strings.ToValidUTF8(text, "\ufffd"), func(found string) string {
		if s.Colors && strings.HasPrefix(found, "\x1b[") {
			return found
		}
		first, size := utf8.DecodeRuneInString(found)
		escaped := ""
		for _, unit := range utf16.AppendRune(nil, first) {
			escaped += fmt.Sprintf(`\u%04x`, unit)
		}
		return escaped + found[size:]
	}))
	return err
}

// sheet is a text for a cell of CSV that no spreadsheet takes for a formula
// (https://owasp.org/www-community/attacks/CSV_Injection).
func sheet(text string) string {
	text = printable(text)
	if begins := strings.TrimLeft(text, " "); begins != "" && strings.Contains("=+-@", begins[:1]) {
		return "'" + text
	}
	return text
}
