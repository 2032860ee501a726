package cli

import (
	"slices"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
)

// listing adds the flags by which many processors are sorted and filtered.
func (f *flags) listing(l *console.Listing) {
	f.choice(&l.Sort, "sort", "", "order", strings.Join(console.Sorts(), ", ")+" (default status, worst first, in the table; else as in the file)", console.Sorts()...)
	var names []string // worst first
	for _, s := range changefeed.Statuses() {
		names = append(names, string(s))
	}
	f.Var(value{f, "status", "word", func() string { return "" }, func(text string) string {
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(names, name) {
				return listed(names)
			}
			l.Statuses = append(l.Statuses, changefeed.Status(name))
		}
		return ""
	}}, "status", "only processors that are so; may be repeated, or a list with commas")
	f.complete("status", names...)
}
