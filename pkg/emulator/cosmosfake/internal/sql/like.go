package sql

import (
	"regexp"
	"strings"
)

// like compares a text with a pattern: % is any number of characters, _ is one, [a-f] one of some,
// [^a-f] none of some. See https://learn.microsoft.com/azure/cosmos-db/nosql/query/keywords#like.
type like struct {
	text, pattern expression
	escape        rune // 0: none
}

func (e like) eval(s *scope) any {
	value, ok := e.text.eval(s).(string)
	pattern, also := e.pattern.eval(s).(string)
	if !ok || !also {
		return Undefined{}
	}
	matcher, err := regexp.Compile(e.expression(pattern))
	if err != nil {
		return Undefined{} // a set that is no set, such as [z-a]
	}
	return matcher.MatchString(value)
}

// expression is the pattern as a regular expression for the whole text.
func (e like) expression(pattern string) string {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for rest := []rune(pattern); len(rest) > 0; {
		r := rest[0]
		rest = rest[1:]
		switch {
		case r == e.escape && r != 0 && len(rest) > 0:
			b.WriteString(regexp.QuoteMeta(string(rest[0])))
			rest = rest[1:]
		case r == '%':
			b.WriteString(".*")
		case r == '_':
			b.WriteString(".")
		case r == '[':
			set, after, ok := strings.Cut(string(rest), "]")
			if !ok || set == "" {
				b.WriteString(`\[`)
				continue
			}
			b.WriteString("[" + strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(set) + "]")
			rest = []rune(after)
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return b.String() + `\z`
}
