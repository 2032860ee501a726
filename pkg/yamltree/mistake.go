package yamltree

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mistake is one thing that is wrong with a file or with a setting.
type Mistake struct {
	File  string // "" for a setting
	Line  int    // from 1; 0 for a setting, and for a whole file
	Field string // "processors[2] (orders).minReplicaCount", or the name of the setting; "" for a whole file
	Text  string // what is wrong; what is allowed
}

// String returns the mistake in one line: "file:line: field: what is wrong; what is allowed".
func (m Mistake) String() string {
	place := m.File
	if place != "" && m.Line > 0 {
		place += fmt.Sprintf(":%d", m.Line)
	}
	parts := slices.DeleteFunc([]string{place, m.Field, m.Text}, func(part string) bool { return part == "" })
	return strings.Join(parts, ": ")
}

// Mistakes is everything that is wrong: first the settings, then each file. None has a secret.
type Mistakes []Mistake

// Error returns the mistakes, one per line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, mistake := range m {
		lines[i] = mistake.String()
	}
	return strings.Join(lines, "\n")
}

// Add adds a mistake.
func (m *Mistakes) Add(mistake Mistake) { *m = append(*m, mistake) }

// Err sorts the mistakes and returns them as an error, each once; nil if there are none.
func (m Mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Text, b.Text))
	})
	return slices.Compact(m)
}

// Quote returns a text as a mistake may show it. It hides a text of more than 64 characters, or
// with a '=': it may be a key or a connection string in the wrong field.
func Quote(text string) string {
	if n := utf8.RuneCountInString(text); n > 64 || strings.Contains(text, "=") {
		return fmt.Sprintf("a text of %d characters", n)
	}
	return fmt.Sprintf("%q", text)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9$+._:/-]{1,64}$`)

// QuoteName returns a name or a number as a mistake may show it: without quotes if it is short and
// has no special characters, else as Quote does.
func QuoteName(text string) string {
	if plainName.MatchString(text) {
		return text
	}
	return Quote(text)
}

// OneOf joins names for a sentence: "a, b or c".
func OneOf(names []string) string { return joined(names, " or ") }

// AllOf joins names for a sentence: "a, b and c".
func AllOf(names []string) string { return joined(names, " and ") }

func joined(names []string, conjunction string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + conjunction + names[last]
}
