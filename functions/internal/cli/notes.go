package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// sentences writes the lines of a JSON log as sentences for a person, except those whose error was said of
// the processor already.
type sentences struct {
	to   io.Writer
	said map[string]string // by processor; "" = of all
}

// Write writes one line.
func (s sentences) Write(line []byte) (int, error) {
	var note struct{ Msg, Processor, Error, Next string }
	_ = json.Unmarshal(line, &note) // what is no text is left out
	more := cmp.Or(note.Error, note.Next)
	if more == "" || !strings.Contains(s.said[note.Processor], more) {
		texts := []string{"feedscale", note.Processor, note.Msg, more}
		texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
		if _, err := fmt.Fprintln(s.to, strings.Join(texts, ": ")); err != nil {
			return 0, err
		}
	}
	return len(line), nil
}
