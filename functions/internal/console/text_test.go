package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestADurationHasNoPartThatIsZeroAtItsEnd(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1499 * time.Millisecond: "1s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + 30*time.Second: "1h0m30s", 100 * time.Hour: "100h",
	} {
		if got := console.Brief(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestALineIsCutToTheTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"größer", 6, "größer"}, {"größer", 5, "größ…"}, {"größer", 1, "…"}, {"größer", 0, "größer"},
	} {
		if got := (console.Style{Width: c.width}).Cut(c.line); got != c.want {
			t.Errorf("%s at %d: %s, want %s", c.line, c.width, got, c.want)
		}
	}
}

func TestTheLastColumnOfATableIsCutToTheTerminal(t *testing.T) {
	t.Parallel()
	rows := [][]console.Cell{
		console.Head("NAME", ">LAG", "WHY"),
		{{Text: "orders"}, {Text: "1200"}, {Text: "it is far behind", Color: console.Dim}},
		{{Text: "a"}, {Text: "7"}, {}},
	}
	for _, c := range []struct {
		rule  string
		style console.Style
		want  string
	}{
		{"no terminal", console.Style{}, "NAME     LAG  WHY\norders  1200  it is far behind\na          7\n"},
		{"one that is wide", console.Style{Width: 30}, "NAME     LAG  WHY\norders  1200  it is far behind\na          7\n"},
		{"one that is narrow", console.Style{Width: 20}, "NAME     LAG  WHY\norders  1200  it is…\na          7\n"},
		{"one that is too narrow", console.Style{Width: 5}, "NAME     LAG  …\norders  1200  …\na          7\n"},
		{"colors take no room", console.Style{Width: 20, Colors: true},
			"\x1b[1mNAME\x1b[0m     \x1b[1mLAG\x1b[0m  \x1b[1mWHY\x1b[0m\norders  1200  \x1b[2mit is…\x1b[0m\na          7\n"},
	} {
		if got := c.style.Table(rows); got != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.rule, got, c.want)
		}
	}
}

func TestNoCellTellsATerminalWhatToDo(t *testing.T) {
	t.Parallel()
	got := console.Style{}.Table([][]console.Cell{console.Head("NAME", "OWNER"), {{Text: "a\tb"}, {Text: "wor\x1b[31mker\r\nnext"}}})
	if strings.Count(got, "\n") != 2 || strings.ContainsAny(got, "\x1b\r\t") {
		t.Errorf("%q", got)
	}
}

func TestAnInspectionKeepsItsColorsAndNoOthers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	testworld.Must(t, console.WriteInspection(&b, &discover.Inspection{Processor: "orders", Owner: new("wor\x1b[31mker")}, console.Style{Colors: true}))
	if got := b.String(); !strings.HasPrefix(got, "\x1b[2mprocessor\x1b[0m      orders\n") || strings.Contains(got, "\x1b[31m") {
		t.Errorf("%q", got)
	}
}
