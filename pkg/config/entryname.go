package config

import (
	"cmp"
	"fmt"
	"strings"
)

// longestName is the greatest length of the name of an entry, in characters.
const longestName = 63

// EntryName turns a text into the form of the names of entries; "" if it has no letter or digit of ASCII.
func EntryName(text string) string {
	parts := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9') })
	name := strings.Join(parts, "-")
	return strings.TrimRight(name[:min(len(name), longestName)], "-")
}

// FreeName takes the first of some texts whose EntryName is not taken. If all are taken, it adds a number to
// the last one.
func FreeName(taken map[string]bool, candidates ...string) string {
	var name string
	for _, candidate := range candidates {
		if name = cmp.Or(EntryName(candidate), "processor"); !taken[name] {
			return name
		}
	}
	for n := 2; ; n++ {
		number := fmt.Sprintf("-%d", n)
		numbered := strings.TrimRight(name[:min(len(name), longestName-len(number))], "-") + number
		if !taken[numbered] {
			return numbered
		}
	}
}
