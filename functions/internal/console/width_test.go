package console_test

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// forCopying matches the lines that are not wrapped, so that a command can be copied in one piece:
// the fix of a failed check.
var forCopying = regexp.MustCompile(`^        fix: `)

var painted = regexp.MustCompile("\x1b\\[[0-9]*m")

// TestNothingIsWiderThanTheTerminal also captures what each terminal shows.
func TestNothingIsWiderThanTheTerminal(t *testing.T) {
	t.Parallel()
	worstFirst := func() []state.State {
		return console.Arrange(console.Listing{Sort: "status"}, polled(), report.New)
	}
	for name, write := range map[string]func(io.Writer, console.Style) error{
		"poll": func(w io.Writer, style console.Style) error {
			return console.WriteProcessors(w, worstFirst(), groups(), false, style)
		},
		"poll-partitions": func(w io.Writer, style console.Style) error {
			return console.WriteProcessors(w, worstFirst(), groups(), true, style)
		},
		"poll-explain": func(w io.Writer, style console.Style) error {
			return console.WriteExplanations(w, append(worstFirst(), groups()...), false, style)
		},
		"status": func(w io.Writer, style console.Style) error {
			return console.WriteStatus(w, held(worstFirst(), groups()), console.Listing{All: true}, style)
		},
		"leases": func(w io.Writer, style console.Style) error { return console.WriteLeases(w, found(), style) },
		"check":  func(w io.Writer, style console.Style) error { return console.WriteChecks(w, checked(), false, style) },
		"history": func(w io.Writer, style console.Style) error {
			return console.WriteHistory(w, report.History{Processor: "orders", Samples: hour()}, noon.Add(-time.Hour), noon, style)
		},
		"report": func(w io.Writer, style console.Style) error {
			return console.WriteReport(w, reported(), false, style)
		},
		"simulate": func(w io.Writer, style console.Style) error { return simulation().Write(w, style) },
	} {
		for _, width := range []int{1, 2, 5, 13, 34} { // hardly room for anything: it need not fit, and nothing breaks
			for _, wrap := range []bool{true, false} {
				testworld.Must(t, write(io.Discard, console.Style{Width: width, Wrap: wrap}))
			}
		}
		for _, size := range []struct{ width, height int }{{60, 14}, {80, 24}, {120, 40}, {200, 50}} {
			t.Run(fmt.Sprintf("%s at %dx%d", name, size.width, size.height), func(t *testing.T) {
				t.Parallel()
				var b strings.Builder
				testworld.Must(t, write(&b, console.Style{Width: size.width, Colors: true}))
				shown := painted.ReplaceAllString(b.String(), "")
				for line := range strings.Lines(shown) {
					if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > size.width && !forCopying.MatchString(line) {
						t.Errorf("a line of %d characters: %s", utf8.RuneCountInString(line), line)
					}
				}
				testworld.Golden(t, *update, fmt.Sprintf("captures/%s-%dx%d", name, size.width, size.height), shown)
			})
		}
	}
}
