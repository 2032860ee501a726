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
