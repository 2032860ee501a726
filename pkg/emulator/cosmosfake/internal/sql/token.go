package sql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SyntaxError is a query text that cannot be read, or that uses what the package does not offer.
type SyntaxError struct {
	Start, End int // the offending bytes of the text
	Near       string
	Composed   bool   // aggregates beside or within something else
	Refused    string // what the language has and this package has not
}

func (e *SyntaxError) Error() string {
	if e.Refused != "" {
		return fmt.Sprintf("The stand-in does not offer %s: https://github.com/feedscale/feedscale/blob/main/docs/stand-ins.md lists what it does not.", e.Refused)
	}
	if e.Composed {
		return "Compositions of aggregates and other expressions are not allowed."
	}
	if e.Near == "" {
		return "Syntax error, unexpected end of the query."
	}
	return fmt.Sprintf("Syntax error, incorrect syntax near '%s'.", e.Near)
}

type kind int

const (
	end kind = iota
	word
	parameter
	number
	text
	symbol
)

type token struct {
	kind       kind
	text       string // as written; for text tokens the decoded string
	start, end int
}

// is reports whether the token is the given symbol or, in any case, the given keyword.
func (t token) is(want string) bool {
	return t.kind == symbol && t.text == want || t.kind == word && strings.EqualFold(t.text, want)
}

var longSymbols = [...]string{"<=", ">=", "!=", "<>", "||"}

func scan(query string) ([]token, error) {
	var tokens []token
	for at := 0; at < len(query); {
		r, size := utf8.DecodeRuneInString(query[at:])
		if unicode.IsSpace(r) {
			at += size
			continue
		}
		t := token{start: at}
		switch {
		case letter(r):
			t.kind, t.end = word, at+span(query[at:], wordPart)
			t.text = query[at:t.end]
		case r == '@':
			t.kind, t.end = parameter, at+1+span(query[at+1:], wordPart)
			t.text = query[at:t.end]
		case unicode.IsDigit(r):
			t.kind, t.end = number, at+numberLength(query[at:])
			t.text = query[at:t.end]
		case r == '\'' || r == '"':
			decoded, n, ok := scanText(query[at:])
			if !ok {
				return nil, &SyntaxError{Start: at, End: len(query), Near: query[at:]}
			}
			t.kind, t.text, t.end = text, decoded, at+n
		default:
			t.kind, t.text = symbol, query[at:at+size]
			for _, long := range longSymbols {
				if strings.HasPrefix(query[at:], long) {
					t.text = long
				}
			}
			t.end = at + len(t.text)
		}
		tokens = append(tokens, t)
		at = t.end
	}
	return append(tokens, token{kind: end, start: len(query), end: len(query)}), nil
}

func letter(r rune) bool { return unicode.IsLetter(r) || r == '_' || r == '$' }

func wordPart(r rune) bool { return letter(r) || unicode.IsDigit(r) }

func span(s string, belongs func(rune) bool) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return !belongs(r) }); n >= 0 {
		return n
	}
	return len(s)
}

func numberLength(s string) int {
	n := span(s, unicode.IsDigit)
	if n < len(s)-1 && s[n] == '.' && s[n+1] >= '0' && s[n+1] <= '9' {
		n += 1 + span(s[n+1:], unicode.IsDigit)
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		sign := 1
		if n+1 < len(s) && (s[n+1] == '+' || s[n+1] == '-') {
			sign = 2
		}
		if digits := span(s[min(n+sign, len(s)):], unicode.IsDigit); digits > 0 {
			n += sign + digits
		}
	}
	return n
}

// scanText decodes a quoted string; n is its length in the source, quotes included.
func scanText(s string) (decoded string, n int, ok bool) {
	quote := s[0]
	var b strings.Builder
	for at := 1; at < len(s); {
		switch c := s[at]; {
		case c == quote:
			return b.String(), at + 1, true
		case c != '\\':
			b.WriteByte(c)
			at++
		default:
			r, _, rest, err := strconv.UnquoteChar(unescapeSlash(s[at:]), quote)
			if err != nil {
				return "", 0, false
			}
			b.WriteRune(r)
			at = len(s) - len(rest)
		}
	}
	return "", 0, false
}

// unescapeSlash drops the backslash of the escapes that the query language knows and Go does not,
// keeping the length of what follows.
func unescapeSlash(s string) string {
	if len(s) > 1 && (s[1] == '/' || s[1] == '\'' || s[1] == '"') {
		return `\` + map[byte]string{'/': `x2f`, '\'': `x27`, '"': `x22`}[s[1]] + s[2:]
	}
	return s
}
