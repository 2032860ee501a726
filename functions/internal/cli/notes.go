package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/feedscale/feedscale/pkg/state"
)

// noted keeps what is logged as a warning or an error, for a person to read below the table.
type noted struct {
	mu      sync.Mutex
	records []slog.Record
}

// Enabled reports whether a record is kept.
func (n *noted) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle keeps a record.
func (n *noted) Handle(_ context.Context, r slog.Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records = append(n.records, r)
	return nil
}

// WithAttrs and WithGroup return n: who logs here puts all into the record.
func (n *noted) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup returns n.
func (n *noted) WithGroup(string) slog.Handler { return n }

// write prints a sentence for each record, but for what WHY of its processor says.
func (n *noted) write(w io.Writer, polled []state.State) {
	said := make(map[string]string)
	for i := range polled {
		said[polled[i].Processor] = polled[i].Lag.Problem() + "\n" + polled[i].Lag.Nearest
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.records {
		attributes := make(map[string]string)
		r.Attrs(func(a slog.Attr) bool {
			attributes[a.Key] = a.Value.String()
			return true
		})
		more := cmp.Or(attributes["error"], attributes["next"])
		if why := said[attributes["processor"]]; more != "" && strings.Contains(why, more) {
			continue
		}
		line := "feedscale: "
		if name := attributes["processor"]; name != "" {
			line += name + ": "
		}
		line += r.Message
		if more != "" {
			line += ": " + more
		}
		fmt.Fprintln(w, line)
	}
}
