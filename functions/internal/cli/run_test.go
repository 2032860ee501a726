package cli_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// running starts feedscale run, and returns how it ended once it was interrupted.
func (p feedscale) running(t *testing.T, stdout, stderr *printed, args ...string) (interrupt func() (status int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- program.Main(ctx, p.env(stdout, stderr, append([]string{"run"}, args...)...), commands(), "")
	}()
	return func() int {
		cancel()
		return <-ended
	}
}

func TestOnATerminalRunShowsATableThatStandsStillBelowItsLines(t *testing.T) {
	t.Parallel()
	w, _, p := watching(t)
	w.Write(testworld.Orders, 25)
	p.alsoMissing("")
	p.settings["FEEDSCALE_LISTEN"], p.width, p.person = "127.0.0.1:0", 100, true
	var screen printed
	interrupt := p.running(t, &screen, &screen)
	testworld.Eventually(t, "the table", func() bool { return strings.Contains(screen.String(), "PROCESSOR") })
	if status := interrupt(); status != 0 {
		t.Errorf("status %d", status)
	}
	first, _, _ := strings.Cut(screen.String(), "\n")
	lines := testworld.Glass(screen.String(), p.width)
	at := func(begins string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, begins) })
	}
	order := []int{
		at(`{"specversion":"1.0"`), at("feedscale run  "), at("PROCESSOR  STATUS"), at("missing"), at("orders"), at("feedscale: stopped"),
	}
	if !slices.IsSorted(order) || order[0] < 0 || !strings.Contains(first, "/api/dashboard") {
		t.Errorf("lines are at %v:\n%s", order, strings.Join(lines, "\n"))
	}
	for _, above := range []string{"time=", "12:00:00Z  orders     - → 1 "} {
		if n := at(above); n < 0 || n > order[1] {
			t.Errorf("%q is line %d of\n%s", above, n, strings.Join(lines, "\n"))
		}
	}
	if warning := lines[max(0, at("time="))]; !strings.Contains(warning, `level=WARN msg="a failure begins" what="account 127.0.0.1"`) {
		t.Errorf("the line of a failure is %s", warning)
	}
	if pictures := slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "PROCESSOR") }); len(pictures) != 1 {
		t.Errorf("%d tables", len(pictures))
	}
}

func TestWithPlainOrWithoutATerminalRunPrintsLines(t *testing.T) {
	t.Parallel()
	for rule, terminal := range map[string]bool{"plain": true, "no terminal": false} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			w, _, p := watching(t)
			w.Write(testworld.Orders, 25)
			p.settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
			var args []string
			if terminal {
				p.width, p.person, args = 100, true, []string{"--plain"}
			}
			var stdout, stderr printed
			interrupt := p.running(t, &stdout, &stderr, args...)
			testworld.Eventually(t, "a tick", func() bool { return strings.Contains(stderr.String(), `"msg":"tick"`) })
			if status := interrupt(); status != 0 {
				t.Errorf("status %d", status)
			}
			if n := strings.Count(stdout.String(), "\n"); n != 1 {
				t.Errorf("%d lines on standard output: %s", n, stdout.String())
			}
			for line := range strings.Lines(stdout.String() + stderr.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%q is no JSON", line)
				}
			}
		})
	}
}
