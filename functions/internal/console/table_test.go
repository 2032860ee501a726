package console_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

func TestColumnsGiveWayInTheOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	rows := [][]console.Cell{
		console.Head("NAME", ">LAG", ">RU", ">AGE", "WHY"),
		{{Text: "orders"}, {Text: "1200"}, {Text: "3.5"}, {Text: "50s"}, {Text: "lag 1200 at 100 per replica, capped to 8 partitions"}},
	}
	for _, c := range []struct {
		rule  string
		style console.Style
		want  string
	}{
		{"all where there is room", console.Style{Width: 80}, "NAME     LAG   RU  AGE  WHY"},
		{"the first, then", console.Style{Width: 45}, "NAME     LAG  AGE  WHY"},
		{"the second", console.Style{Width: 39}, "NAME     LAG  WHY"},
		{"and none for text that can stand below", console.Style{Width: 27, Wrap: true}, "NAME     LAG   RU  AGE"},
	} {
		head, _, _ := strings.Cut(c.style.Table(rows, "RU", "AGE"), "\n")
		if head != c.want {
			t.Errorf("%s: %q, want %q", c.rule, head, c.want)
		}
	}
}

// TestACellIsClipped, as that of a lease whose owner has a name of 1 KiB.
func TestACellIsClipped(t *testing.T) {
	t.Parallel()
	name, why := strings.Repeat("x", 1000), strings.TrimSpace(strings.Repeat("why ", 1000))
	for _, width := range []int{0, 80} {
		for _, wrap := range []bool{true, false} {
			table := console.Style{Width: width, Wrap: wrap}.Table([][]console.Cell{console.Head("NAME", "WHY"), {{Text: name}, {Text: why}}})
			if names, whys := strings.Count(table, "x"), strings.Count(table, "why"); names > 119 || whys > 500 || !strings.Contains(table, "…") {
				t.Errorf("at %d, wrapped: %t: %d characters of a name and %d words", width, wrap, names, whys)
			}
		}
	}
}

// TestNoNumberIsBroken looks at every width.
func TestNoNumberIsBroken(t *testing.T) {
	t.Parallel()
	const why = "lag 1200070 at 12.75 per replica, from account-4711.documents.azure.com/shop/leases-20260301, capped to 1,024 partitions"
	whole := regexp.MustCompile(`[0-9.,]*[0-9]`)
	numbers := whole.FindAllString(why, -1)
	rows := [][]console.Cell{console.Head("NAME", ">LAG", "WHY"), {{Text: "orders-2026"}, {Text: "1200070"}, {Text: why}}}
	allowed := append(slices.Clone(numbers), "2026")
	for width := 24; width < 150; width++ {
		for _, wrap := range []bool{true, false} {
			table := console.Style{Width: width, Wrap: wrap}.Table(rows)
			for _, found := range whole.FindAllString(table, -1) {
				if !slices.Contains(allowed, found) {
					t.Errorf("at %d: %s in\n%s", width, found, table)
				}
			}
			if wrap && len(whole.FindAllString(table, -1)) != len(numbers)+2 {
				t.Errorf("at %d a number is missing in\n%s", width, table)
			}
		}
	}
}

func TestWhatIsWrappedKeepsEachWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, text, indent string
		width              int
		want               string
	}{
		{"no terminal", "one two three", "  ", 0, "one two three"},
		{"enough room", "one two three", "  ", 13, "one two three"},
		{"one character too few", "one two three", "  ", 12, "one two\n  three"},
		{"two blanks in a row", "a  one two", "   ", 6, "a  one\n   two"},
		{"a word that is longer than a line", "see shop/orders:leases-4711", "", 12, "see\nshop/orders:\nleases-4711"},
		{"a word without signs", "abcdefghij", "", 4, "abcd\nefgh\nij"},
		{"colors take no room", "\x1b[1mone\x1b[0m two", "", 7, "\x1b[1mone\x1b[0m two"},
	} {
		if got := console.Wrap(c.text, c.indent, c.width); got != c.want {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestAListingSortsAndFilters(t *testing.T) {
	t.Parallel()
	entry := func(name string, status changefeed.Status, lag, age *int64, replicas *int) report.Processor {
		return report.Processor{Name: name, Subject: report.Subject{Status: status, Lag: lag, ChangeAgeSeconds: age, DesiredReplicas: replicas}}
	}
	number := func(n int64) *int64 { return &n }
	all := []report.Processor{
		entry("b", changefeed.StatusOK, number(0), nil, new(2)),
		entry("a", changefeed.StatusLagging, number(7), number(9), new(3)),
		entry("d", changefeed.StatusStalled, number(5), number(90), new(1)),
		entry("c", changefeed.StatusLagging, number(70), number(8), nil),
		entry("e", changefeed.StatusUnknown, nil, nil, new(3)),
	}
	for _, c := range []struct {
		listing console.Listing
		want    string
	}{
		{console.Listing{}, "b a d c e"},
		{console.Listing{Sort: "status"}, "e d c a b"},
		{console.Listing{Sort: "lag"}, "e c a d b"},
		{console.Listing{Sort: "age"}, "e d a c b"},
		{console.Listing{Sort: "replicas"}, "c a e b d"},
		{console.Listing{Sort: "name"}, "a b c d e"},
		{console.Listing{Sort: "name", Statuses: []changefeed.Status{changefeed.StatusLagging, changefeed.StatusOK}}, "a b c"},
	} {
		var names []string
		for _, p := range console.Arrange(c.listing, all, func(p report.Processor) report.Processor { return p }) {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.listing, got, c.want)
		}
	}
	for _, name := range console.Sorts() {
		if fmt.Sprint(console.Arrange(console.Listing{Sort: name}, all, func(p report.Processor) report.Processor { return p })) == fmt.Sprint(all) {
			t.Errorf("%s does not sort", name)
		}
	}
}
