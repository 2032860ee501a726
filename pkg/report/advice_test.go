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

// said is what a section of docs/status.md says behind a word in bold.
func said(section, word string) string {
	_, rest, _ := strings.Cut(section, "- **"+word+":** ")
	text, _, _ := strings.Cut(strings.ReplaceAll(rest, "\n\n", "\n- "), "\n- ")
	return strings.TrimSuffix(plain(strings.Join(strings.Fields(text), " ")), ".")
}

func TestTheAdviceIsThatOfTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/status.md")
	testworld.Must(t, err)
	sections := strings.Split(string(page), "\n## ")[1:]
	statuses := changefeed.Statuses()
	advices := report.Advices()
	if len(advices) != len(statuses) {
		t.Fatalf("%d of %d statuses have advice", len(advices), len(statuses))
	}
	for i, a := range advices {
		if a.Status != statuses[i] {
			t.Errorf("%s stands where %s belongs: worst first", a.Status, statuses[i])
		}
		if name, _, _ := strings.Cut(sections[i], "\n"); name != string(a.Status) {
			t.Errorf("docs/status.md has %s where %s belongs: worst first", name, a.Status)
		}
		if why, do := said(sections[i], "Why"), said(sections[i], "Do"); a.Why != why || a.Do != do {
			t.Errorf("%s:\n got %q, %q\nwant %q, %q", a.Status, a.Why, a.Do, why, do)
		}
	}
}
