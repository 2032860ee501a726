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

// unseen reports whether a character is none that shows: what tells a terminal what to do, turns the
// direction of a text, or hides.
func unseen(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// Lines writes lines of text for a terminal: characters that do not show, other than line breaks and
// tabs, stand as \uXXXX, which within JSON means the same. What is written in one call has to be whole
// characters.
type Lines struct{ io.Writer }

// Write writes text.
func (l Lines) Write(text []byte) (int, error) {
	if _, err := io.WriteString(l.Writer, visible(string(text), false)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// print writes a text with its colors, where there are any, as [Lines] writes it.
func (s Style) print(w io.Writer, text string) error {
	_, err := io.WriteString(w, visible(text, s.Colors))
	return err
}

// paint matches what [Style.Paint] adds.
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
			b.WriteRune(r) // U+FFFD where it is no character
		} else {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
		rest = rest[size:]
	}
	return b.String()
}

// sheet is a text as it may stand in a cell of CSV: no spreadsheet takes it for a formula
// (https://owasp.org/www-community/attacks/CSV_Injection).
func sheet(text string) string {
	text = printable(text)
	if begins := strings.TrimLeft(text, " "); begins != "" && strings.Contains("=+-@", begins[:1]) {
		return "'" + text
	}
	return text
}
