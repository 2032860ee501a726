package report_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
)

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain is a cell of a table in Markdown as a reader sees it.
func plain(cell string) string {
	return strings.TrimSpace(strings.NewReplacer("`", "", "*", "").Replace(link.ReplaceAllString(cell, "$1")))
}

func TestTheAdviceIsThatOfTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/lag.md")
	testworld.Must(t, err)
	_, rest, _ := strings.Cut(string(page), "## Statuses and what to do")
	table, _, _ := strings.Cut(rest, "Three more words")
	documented := make(map[string][]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 6 {
			documented[plain(cells[1])] = cells
		}
	}
	statuses := changefeed.Statuses()
	advices := report.Advices()
	if len(advices) != len(statuses) {
		t.Fatalf("%d of %d statuses have advice", len(advices), len(statuses))
	}
	for i, a := range advices {
		if a.Status != statuses[i] {
			t.Errorf("%s stands where %s belongs: worst first", a.Status, statuses[i])
		}
		cells := documented[string(a.Status)]
		if cells == nil {
			t.Errorf("docs/lag.md has no line for %s", a.Status)
			continue
		}
		if why, do := plain(cells[3]), plain(cells[4]); a.Why != why || a.Do != do {
			t.Errorf("%s:\n got %q, %q\nwant %q, %q", a.Status, a.Why, a.Do, why, do)
		}
	}
}
