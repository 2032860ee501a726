package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
)

// hostLog logs as the handler does, and returns what is on which stream.
func hostLog(level slog.Level, say func(*slog.Logger)) (stdout, stderr string) {
	var out, err bytes.Buffer
	say(NewHostLog(&out, &err, level))
	return out.String(), err.String()
}

func TestAFunctionsHostTakesEachLevelForWhatItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule           string
		level          slog.Level
		stderr, warned bool // as the host reads it: on standard error, and with "warn" in the line
	}{
		{"debug", slog.LevelDebug, false, false},
		{"information", slog.LevelInfo, false, false},
		{"between information and a warning", slog.LevelInfo + 1, false, false},
		{"a warning", slog.LevelWarn, true, true},
		{"between a warning and an error", slog.LevelWarn + 1, true, true},
		{"an error", slog.LevelError, true, false},
		{"worse than an error", slog.LevelError + 4, true, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			stdout, stderr := hostLog(slog.LevelDebug, func(log *slog.Logger) {
				log.Log(t.Context(), c.level, "it happened", "error", "of no consequence")
			})
			line := stdout + stderr
			if (stdout == "") != c.stderr || (stderr == "") == c.stderr || strings.Count(line, "\n") != 1 {
				t.Fatalf("stdout %q, stderr %q", stdout, stderr)
			}
			if c.stderr && strings.Contains(strings.ToLower(line), "warn") != c.warned {
				t.Errorf("the host takes it for the wrong level: %s", line)
			}
		})
	}
}

func TestBelowItsLevelNothingIsLogged(t *testing.T) {
	t.Parallel()
	stdout, stderr := hostLog(slog.LevelError, func(log *slog.Logger) {
		log.Info("not this")
		log.Warn("nor this")
		log.Error("but this")
	})
	if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "but this") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
}

// TestAnErrorThatQuotesAWarningReadsTheSameAndIsNone compares a line with what the plain handler writes.
func TestAnErrorThatQuotesAWarningReadsTheSameAndIsNone(t *testing.T) {
	t.Parallel()
	for rule, say := range map[string]func(*slog.Logger){
		"in its message":                     func(log *slog.Logger) { log.Error("a Warning, a WARNING, a warning: wArN") },
		"in a value":                         func(log *slog.Logger) { log.Error("m", "error", errors.New("status 400: warnings").Error()) },
		"in a key":                           func(log *slog.Logger) { log.Error("m", "warned", true, "Warn", 1) },
		"behind a backslash":                 func(log *slog.Logger) { log.Error("m", "path", `C:\warn\\warn\"warn"`) },
		"behind what is an escape":           func(log *slog.Logger) { log.Error("m", "text", "\u0001warn\nwarn\u2028warn") },
		"in a text that is the escape":       func(log *slog.Logger) { log.Error("m", "text", `\u0077arn`) },
		"in an attribute of all its lines":   func(log *slog.Logger) { log.With("of", "warn").Error("m") },
		"in the name of a group and in it":   func(log *slog.Logger) { log.WithGroup("warn").Error("m", "warn", "warn") },
		"in a value that is JSON by itself":  func(log *slog.Logger) { log.Error("m", "body", json.RawMessage(`{"warn":["Warn"]}`)) },
		"in a list, as mistakes are":         func(log *slog.Logger) { log.Error("m", "mistakes", []string{"warn", "is no setting"}) },
		"nowhere, with letters of the word":  func(log *slog.Logger) { log.Error("raw wart war n", "w", "arn") },
		"where it is more than once in each": func(log *slog.Logger) { log.Error("warnwarnWARN", "warnwarn", "warnwarn") },
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			_, line := hostLog(slog.LevelInfo, say)
			var plain bytes.Buffer
			say(NewLog(&plain, slog.LevelInfo))
			if strings.Contains(strings.ToLower(line), "warn") || strings.Count(line, "\n") != 1 {
				t.Errorf("the host takes it for a warning, or for several lines: %s", line)
			}
			if got, want := fields(t, line), fields(t, plain.String()); !maps.Equal(got, want) {
				t.Errorf("it reads %v, want %v", got, want)
			}
		})
	}
}

// fields are those of a line but for its time, each as JSON.
func fields(t *testing.T, line string) map[string]string {
	t.Helper()
	var values map[string]any
	if err := json.Unmarshal([]byte(line), &values); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	delete(values, slog.TimeKey)
	texts := make(map[string]string, len(values))
	for name, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

func TestGroupsAndAttributesAreThoseOfEveryLevel(t *testing.T) {
	t.Parallel()
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		stdout, stderr := hostLog(slog.LevelInfo, func(log *slog.Logger) {
			log.With("processor", "orders").WithGroup("of").With("container", "o").Log(t.Context(), level, "m", "n", 1)
		})
		if got := fields(t, stdout+stderr); got["processor"] != `"orders"` || got["of"] != `{"container":"o","n":1}` {
			t.Errorf("%s: %v", level, got)
		}
	}
}
