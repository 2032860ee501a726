package cli

import (
	"encoding/json"
	"fmt"
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

// newHostLog logs for a Functions host.
func newHostLog(stdout, stderr io.Writer, level slog.Level) *slog.Logger {
	lines := hostLines{console.Lines{Writer: stdout}, console.Lines{Writer: stderr}}
	return slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: level, ReplaceAttr: UTC}))
}

// hostLines writes log lines where a Functions host takes them for what they are: a line of standard
// output is information, one of standard error that contains "warn" is a warning, and any other an
// error (azure-functions-host, WorkerProcess.cs).
type hostLines struct{ stdout, stderr io.Writer }

var warnInText = regexp.MustCompile(`(?i)w(arn)`)

// Write writes one line. An error that quotes a warning has the letter escaped, which reads the same.
func (h hostLines) Write(line []byte) (int, error) {
	record := struct{ Level slog.Level }{slog.LevelError}
	_ = json.Unmarshal(line, &record) // a line that cannot be read is an error
	to, text := h.stderr, line
	switch {
	case record.Level < slog.LevelWarn:
		to = h.stdout
	case record.Level >= slog.LevelError:
		text = warnInText.ReplaceAllFunc(line, func(word []byte) []byte {
			return fmt.Appendf(nil, `\u%04x%s`, word[0], word[1:])
		})
	}
	if _, err := to.Write(text); err != nil {
		return 0, err
	}
	return len(line), nil
}
