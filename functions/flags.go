package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// flagMistakes is what is wrong with the flags of a command, so that all of it
// is said at once.
type flagMistakes []string

func (m *flagMistakes) add(format string, args ...any) {
	*m = append(*m, fmt.Sprintf(format, args...))
}

// choice adds a flag whose value is none of those allowed.
func (m *flagMistakes) choice(name, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		last := len(allowed) - 1
		m.add("--%s is %q; allowed are %s and %s", name, value, strings.Join(allowed[:last], ", "), allowed[last])
	}
}

// refuse prints the mistakes of a command, and tells whether there are any.
func (p program) refuse(command string, mistakes flagMistakes) bool {
	for _, m := range mistakes {
		fmt.Fprintf(p.stderr, "feedscale %s: %s\n", command, m)
	}
	return len(mistakes) > 0
}

// writeJSON writes a value as one line of JSON, in which < and > stand as they are.
func writeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
