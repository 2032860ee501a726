package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"regexp"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// newLog logs as JSON lines, with times in UTC.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(console.Lines{Writer: w}, &slog.HandlerOptions{Level: level, ReplaceAttr: UTC}))
}

// UTC writes a log record's time in UTC, as RFC 3339.
func UTC(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// newHostLog logs for a Functions host, which knows the severity of a line by where it is written: a line
// of standard output is information, one of standard error that contains "warn" is a warning, and any
// other an error (azure-functions-host, WorkerProcess.cs). So warnings and errors go to standard error.
func newHostLog(stdout, stderr io.Writer, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: UTC}
	stdout, stderr = console.Lines{Writer: stdout}, console.Lines{Writer: stderr}
	return slog.New(bySeverity{
		below: slog.NewJSONHandler(stdout, o),
		warn:  slog.NewJSONHandler(stderr, o),
		above: slog.NewJSONHandler(unwarned{stderr}, o),
	})
}

// bySeverity is a handler for each severity.
type bySeverity struct{ below, warn, above slog.Handler }

// Enabled asks the handler of the level.
func (h bySeverity) Enabled(ctx context.Context, level slog.Level) bool {
	return h.of(level).Enabled(ctx, level)
}

// Handle hands a record to the handler of its level.
func (h bySeverity) Handle(ctx context.Context, r slog.Record) error {
	return h.of(r.Level).Handle(ctx, r)
}

// WithAttrs adds attributes to every record.
func (h bySeverity) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bySeverity{h.below.WithAttrs(attrs), h.warn.WithAttrs(attrs), h.above.WithAttrs(attrs)}
}

// WithGroup puts what follows into a group.
func (h bySeverity) WithGroup(name string) slog.Handler {
	return bySeverity{h.below.WithGroup(name), h.warn.WithGroup(name), h.above.WithGroup(name)}
}

func (h bySeverity) of(level slog.Level) slog.Handler {
	switch {
	case level < slog.LevelWarn:
		return h.below
	case level < slog.LevelError:
		return h.warn
	}
	return h.above
}

// unwarned writes lines of JSON in which no text contains "warn" as it stands, so that an error that
// quotes a warning is not taken for one. The escaped letter reads the same.
type unwarned struct{ io.Writer }

var warnInText = regexp.MustCompile(`(?i)w(arn)`)

// Write writes one line.
func (w unwarned) Write(line []byte) (int, error) {
	escaped := warnInText.ReplaceAllFunc(line, func(word []byte) []byte {
		letter := []byte(`\u0077`)
		if bytes.HasPrefix(word, []byte("W")) {
			letter = []byte(`\u0057`)
		}
		return append(letter, word[1:]...)
	})
	if _, err := w.Writer.Write(escaped); err != nil {
		return 0, err
	}
	return len(line), nil
}
