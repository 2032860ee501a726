package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mistake is one thing that is wrong with a configuration.
type Mistake struct {
	File   string // the document; "" for a setting
	Line   int    // from 1; 0 for a setting, and for a whole file
	Column int    // from 1, as Line
	Field  string // "processors[2] (orders).minReplicaCount", or the name of the setting; "" for a whole file
	Text   string // what is wrong; what is allowed
}

// String returns the mistake in one line: "file:line: field: what is wrong; what is allowed".
func (m Mistake) String() string {
	var b strings.Builder
	if m.File != "" {
		b.WriteString(m.File)
		if m.Line > 0 {
			fmt.Fprintf(&b, ":%d", m.Line)
		}
		b.WriteString(": ")
	}
	if m.Field != "" {
		b.WriteString(m.Field + ": ")
	}
	b.WriteString(m.Text)
	return b.String()
}

// Mistakes is everything that is wrong with a configuration: first the settings, then the document
// in its order. No mistake contains a secret.
type Mistakes []Mistake

// Error returns the mistakes, one per line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, mistake := range m {
		lines[i] = mistake.String()
	}
	return strings.Join(lines, "\n")
}

func (m *Mistakes) add(mistake Mistake) { *m = append(*m, mistake) }

// err sorts the mistakes and returns them as an error, nil where there are none. A mistake in
// defaults, which is found for every processor that inherits it, is listed once.
func (m Mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Text, b.Text),
		)
	})
	return slices.Compact(m)
}

// shown returns a text as a mistake may quote it. Keys and connection strings are sometimes put
// into the wrong field, so a text that is longer than 64 characters or contains a '=', as they do,
// is not quoted.
func shown(text string) string {
	if n := utf8.RuneCountInString(text); n > 64 || strings.Contains(text, "=") {
		return fmt.Sprintf("a text of %d characters", n)
	}
	return fmt.Sprintf("%q", text)
}

// plain returns a name or a number as a mistake may quote it: without quotes where it is short and
// has no special characters, else as shown.
func plain(text string) string {
	foreign := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("$+-._:", r) }
	if text == "" || len(text) > 64 || strings.ContainsFunc(text, foreign) {
		return shown(text)
	}
	return text
}

// oneOf joins names for a sentence: "a, b or c".
func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
