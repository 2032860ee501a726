package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/report"
)

// WriteInspection prints a line for each fact.
func WriteInspection(w io.Writer, f *discover.Inspection, style Style) error {
	style.Wrap = true
	var b strings.Builder
	table := func(facts ...string) { // a name and a value, in turn; those without a value are left out
		var rows [][]Cell
		for fact := range slices.Chunk(facts, 2) {
			if fact[1] != "" {
				rows = append(rows, []Cell{{Text: fmt.Sprintf("%-13s", fact[0]), Color: Dim}, {Text: fact[1]}})
			}
		}
		b.WriteString(style.Table(rows))
	}
	table("processor", f.Processor, "partition", f.Lease, "owner", text(f.Owner, "nobody"), "position", text(f.Position, "no checkpoint"), "note", text(f.Note, ""))
	for _, d := range f.Documents {
		keys := make([]string, len(d.Key))
		for i, k := range d.Key {
			keys[i] = string(k)
		}
		size, written := "?", "?"
		if d.Bytes != nil {
			size = fmt.Sprintf("%d bytes", *d.Bytes)
		}
		if d.Written != nil && d.Age != nil {
			written = d.Written.Format(time.RFC3339) + ", " + report.Age(d.Age) + " ago"
		}
		b.WriteString("\n")
		table("document", text(d.ID, "?"), "partition key", strings.Join(keys, ", "), "size", size, "written", written,
			"LSN", Number(d.LSN), "range", d.RangeID, "operation", text(d.Operation, ""))
		if d.Document != nil {
			contents := bytes.NewBufferString("\n")
			if err := json.Indent(contents, d.Document, "", "  "); err != nil {
				return err
			}
			b.WriteString(contents.String() + "\n")
		}
	}
	return style.print(w, b.String())
}
