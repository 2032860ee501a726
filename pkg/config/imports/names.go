package imports

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxName is how long the name of a processor or a group may be.
const maxName = 63

// freeName returns the first of some names, in the form that names of entries have, that is not
// taken; the first of them with a number where all are.
func (c *converter) freeName(candidates ...string) string {
	var first string
	for _, candidate := range candidates {
		name := entryName(candidate)
		if name != "" && !c.names[name] {
			c.names[name] = true
			return name
		}
		first = cmp.Or(first, name)
	}
	first = cmp.Or(first, "processor")
	name := first
	for n := 2; c.names[name]; n++ {
		number := fmt.Sprintf("-%d", n)
		name = strings.TrimRight(first[:min(len(first), maxName-len(number))], "-") + number
	}
	c.names[name] = true
	return name
}

// entryName turns a text into the form that names of entries have; "" where nothing is left.
func entryName(text string) string {
	name := strings.Join(strings.FieldsFunc(strings.ToLower(text), notAlphanumeric), "-")
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}

// settingName makes the name of a setting from words.
func settingName(words ...string) string {
	name := strings.ToUpper(strings.Join(strings.FieldsFunc(strings.Join(words, "_"), notAlphanumeric), "_"))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = strings.TrimRight("COSMOS_"+name, "_")
	}
	return name[:min(len(name), 100)] // leaves room for __accountEndpoint
}

func notAlphanumeric(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
}

// named is a name of something as a line may show it. A connection string or a key may stand where a
// name belongs, so that what does not look like a name is not shown.
func named(text string) string {
	foreign := func(r rune) bool { return notAlphanumeric(r) && !strings.ContainsRune("._-/ ", r) }
	if len(text) > 64 || strings.ContainsFunc(text, foreign) {
		return fmt.Sprintf("(a text of %d characters)", utf8.RuneCountInString(text))
	}
	return text
}
