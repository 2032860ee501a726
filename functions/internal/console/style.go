// Package console turns values into text for a terminal: tables, charts and explanations. It reads
// nothing and decides nothing.
//
// Start with [Style] and, for the table that most people see, [WriteProcessors].
//
// The package is internal to the program: its API may change in any release.
package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
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

// severityColors are the colors of a status by its severity; any other is yellow.
var severityColors = map[report.Severity]string{report.OK: Green, report.Critical: Red}

func statusColor(s changefeed.Status) string {
	return cmp.Or(severityColors[report.SeverityOf(s)], Yellow)
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

// unknown is the text of a value that could not be measured.
const unknown = "?"

// text is a value, or what is shown if there is none.
func text[T any](value *T, none string) string {
	if value == nil {
		return none
	}
	return fmt.Sprint(*value)
}

// Number is a count; "?" if it is unknown.
func Number(n *int64) string { return text(n, unknown) }

// catchUp is how long the lag takes to drain with the replicas that were decided; "-" if that is
// not known.
func catchUp(s state.State) string {
	seconds := report.CatchUpSeconds(s)
	switch {
	case seconds == nil:
		return "-"
	case math.IsInf(*seconds, 1):
		return "never"
	}
	return report.Age(new(int64(math.Ceil(*seconds))))
}

// replicas is the decision, with an arrow if it is a change; "?" if there is none.
func replicas(of report.Subject) string {
	if of.DesiredReplicas == nil {
		return unknown
	}
	arrow := map[scaling.Direction]string{scaling.Out: "↑", scaling.In: "↓"}[*of.Direction]
	return fmt.Sprintf("%s%d", arrow, *of.DesiredReplicas)
}

// partitions is how many partitions have lag, of all.
func partitions(r report.Processor) string {
	if r.PartitionCount == nil {
		return unknown
	}
	return fmt.Sprintf("%s/%d", text(r.PartitionsWithLag, unknown), *r.PartitionCount)
}

// Brief is a duration to the second, as 1h30m and not 1h30m0s.
func Brief(d time.Duration) string {
	if d < time.Second {
		return d.String()
	}
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.Round(time.Second).String())
}

// compact writes a number with three digits.
func compact(n float64) string {
	for _, unit := range []string{"", "k", "M", "G", "T", "P"} {
		if n < 999.5 {
			return fmt.Sprintf("%.3g%s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.0e", n*1e18)
}

// WriteJSON writes a value as one line of JSON. It does not escape < and >.
func WriteJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(Lines{w})
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
