package console

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// unseen reports whether a character is invisible: it controls a terminal, turns the direction of a
// text, or hides.
func unseen(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// Lines writes lines of text for a terminal. Invisible characters, except line breaks and tabs,
// become \uXXXX, which means the same in JSON. Each call has to write whole characters.
type Lines struct{ io.Writer }

// Write writes text.
func (l Lines) Write(text []byte) (int, error) {
	if _, err := io.WriteString(l.Writer, visible(string(text), false)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// print writes a text as [Lines] does, and keeps its colors.
func (s Style) print(w io.Writer, text string) error {
	_, err := io.WriteString(w, visible(text, s.Colors))
	return err
}

// paint matches the codes of [Style.Paint].
var paint = regexp.MustCompile("^\x1b\\[(?:0|" + strings.Join([]string{Bold, Dim, Red, Green, Yellow}, "|") + ")m")

func visible(text string, colors bool) string {
	shows := func(r rune) bool { return r == '\n' || r == '\t' || !unseen(r) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !shows(r) }) {
		return text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if color := paint.FindString(rest); colors && color != "" {
			b.WriteString(color)
			size = len(color)
		} else if shows(r) {
			b.WriteRune(r) // U+FFFD for an invalid byte
		} else {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
		rest = rest[size:]
	}
	return b.String()
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
