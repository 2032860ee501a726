package functionshost

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Level is a log level of .NET.
type Level string

// The levels at which the host writes.
const (
	Debug       Level = "Debug"
	Information Level = "Information"
	Warning     Level = "Warning"
	Error       Level = "Error"
)

// Categories of log lines.
const (
	CategoryHost    = "Host"                  // the host's own
	CategoryConsole = "Host.Function.Console" // what the handler prints
	CategoryWorker  = "Worker"                // what it prints with the prefix of system logs
)

// LogLine is one line of the host's log.
type LogLine struct {
	Level    Level
	Category string // one of the above, or "Function.NAME.User" for the Logs of an answer
	Text     string
}

// log collects lines.
type log struct {
	mu    sync.Mutex
	lines []LogLine
}

func (l *log) add(level Level, category, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, LogLine{level, category, fmt.Sprintf(format, args...)})
}

func (l *log) snapshot() []LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// console is one output stream of the handler: it logs whole lines.
type console struct {
	log   *log
	level func(line string) Level

	mu      sync.Mutex
	partial []byte
}

// systemPrefix marks console lines that are not the user's.
const systemPrefix = "LanguageWorkerConsoleLog"

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partial = append(c.partial, p...)
	for {
		line, rest, whole := bytes.Cut(c.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		c.write(string(line))
		c.partial = rest
	}
}

// flush logs a last line that had no end.
func (c *console) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.partial) > 0 {
		c.write(string(c.partial))
		c.partial = nil
	}
}

func (c *console) write(line string) {
	line = strings.TrimSuffix(line, "\r")
	if text, ok := cutPrefixFold(line, systemPrefix); ok {
		c.log.add(c.level(line), CategoryWorker, "%s", text)
		return
	}
	c.log.add(c.level(line), CategoryConsole, "%s", line)
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

// stdoutLevel is how the host reads stdout (Workers/ProcessManagement/WorkerProcess.cs:198-204).
func stdoutLevel(string) Level { return Information }

// stderrLevel is how the host reads stderr: an error, unless the line warns, or unless host.json
// says that stderr is not for errors alone (Workers/ProcessManagement/WorkerProcess.cs:119-148).
func stderrLevel(errorsOnly bool) func(string) Level {
	return func(line string) Level {
		line = strings.ToLower(line)
		switch {
		case strings.Contains(line, "warn"):
			return Warning
		case errorsOnly, strings.Contains(line, "error"), strings.Contains(line, "fail"), strings.Contains(line, "severe"):
			return Error
		}
		return Information
	}
}
