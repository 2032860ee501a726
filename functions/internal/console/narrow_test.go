package console_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/console"
)

func TestALineIsCutBehindAWordAndNeverInsideANumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		line  string
		width int
		want  string
	}{
		{"what fits stays", "lag 412 at 100", 14, "lag 412 at 100"},
		{"no terminal, no cut", "lag 412 at 100", 0, "lag 412 at 100"},
		{"behind a word", "threshold: lag 412", 16, "threshold: lag…"},
		{"a number goes as a whole", "threshold: lag 412", 17, "threshold: lag…"},
		{"a word that ends at the edge stays", "threshold: lag 412", 15, "threshold: lag…"},
		{"no comma before the ellipsis", "lag 412, capped", 12, "lag 412…"},
		{"one long word is cut inside", "shop-projection-orders", 10, "shop-proj…"},
		{"but not inside its number", "partition-123456-of-orders", 14, "partition-…"},
		{"nor inside a decimal", "about-1234.567-units", 12, "about-…"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := (console.Style{Width: c.width}).Shorten(c.line); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestColumnsGiveWayInTheirOrderAndTheLastOneIsShortened(t *testing.T) {
	t.Parallel()
	rows := [][]console.Cell{
		console.Head("PROCESSOR", ">LAG", ">RU", "WHY"),
		{{Text: "orders"}, {Text: "412", Right: true}, {Text: "2.8", Right: true}, {Text: "threshold: lag 412 at 100 per replica"}},
	}
	for _, c := range []struct {
		rule  string
		width int
		want  string
	}{
		{"no terminal", 0, "PROCESSOR  LAG   RU  WHY\norders     412  2.8  threshold: lag 412 at 100 per replica\n"},
		{"all fit", 60, "PROCESSOR  LAG   RU  WHY\norders     412  2.8  threshold: lag 412 at 100 per replica\n"},
		{"the last is shortened first", 40, "PROCESSOR  LAG   RU  WHY\norders     412  2.8  threshold: lag 412…\n"},
		{"then the first that gives way", 25, "PROCESSOR  LAG  WHY\norders     412  threshol…\n"},
		{"then the next", 18, "PROCESSOR  WHY\norders     thresh…\n"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			style := console.Style{Width: c.width}
			if got := style.Table(style.Narrow(rows, "RU", "LAG")); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if rows[1][3].Text != "threshold: lag 412 at 100 per replica" || len(rows[0]) != 4 {
				t.Error("the rows that were given have changed")
			}
		})
	}
	if strings.Contains(rows[0][0].Text, "…") {
		t.Error("a head was shortened")
	}
}
