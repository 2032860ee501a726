package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/state"
)

// writeNotes prints a sentence for each line of a JSON log, except those whose error WHY of the
// processor in the table says already.
func writeNotes(w io.Writer, log []byte, polled []state.State) {
	said := make(map[string]string) // by processor; "" = of all
	for i := range polled {
		says := polled[i].Lag.Problem() + "\n" + polled[i].Lag.Nearest + "\n"
		said[polled[i].Processor] = says
		said[""] += says
	}
	for line := range bytes.Lines(log) {
		var note struct{ Msg, Processor, Error, Next string }
		_ = json.Unmarshal(line, &note) // what is no text is left out
		more := cmp.Or(note.Error, note.Next)
		if more != "" && strings.Contains(said[note.Processor], more) {
			continue
		}
		texts := []string{"feedscale", note.Processor, note.Msg, more}
		texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
		fmt.Fprintln(w, strings.Join(texts, ": "))
	}
}
