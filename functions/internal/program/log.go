package program

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// NewLog logs as JSON lines, with times in UTC.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	utc := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			a.Value = slog.TimeValue(a.Value.Time().UTC())
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(console.Lines{Writer: w}, &slog.HandlerOptions{Level: level, ReplaceAttr: utc}))
}

// NewHostLog logs for a Functions host.
func NewHostLog(stdout, stderr io.Writer, level slog.Level) *slog.Logger {
	return NewLog(hostLines{stdout, stderr}, level)
}

// hostLines writes log lines to the stream from which a Functions host reads their level. To the
// host, a line of standard output is information, a line of standard error with "warn" in it is a
// warning, and any other line an error (azure-functions-host, WorkerProcess.cs).
type hostLines struct{ stdout, stderr io.Writer }

var warnInText = regexp.MustCompile(`(?i)w(arn)`)

// Write writes one line. In an error, the letter of a quoted "warn" becomes an escape, which means
// the same.
func (h hostLines) Write(line []byte) (int, error) {
	record := struct{ Level slog.Level }{slog.LevelError}
	_ = json.Unmarshal(line, &record) // an unreadable line is an error
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
