package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
)

// listing are the flags by which many processors are sorted and filtered.
type listing struct {
	sort     *string
	status   *[]string
	statuses []changefeed.Status // of status, once it was checked
}

func addListing(c *cobra.Command) *listing {
	l := &listing{
		sort:   c.Flags().String("sort", "", "`order`: "+strings.Join(console.Sorts(), ", ")+" (default status, worst first, in the table; else as in the file)"),
		status: c.Flags().StringSlice("status", nil, "only processors of this `status`; may be repeated, or a list with commas"),
	}
	complete(c, "sort", console.Sorts()...)
	complete(c, "status", statuses()...)
	return l
}

// check adds what is wrong with the flags.
func (l *listing) check(m *flagMistakes) {
	if *l.sort != "" {
		m.choice("sort", *l.sort, console.Sorts()...)
	}
	for _, status := range *l.status {
		if !slices.Contains(statuses(), status) {
			m.choice("status", status, statuses()...)
		}
		l.statuses = append(l.statuses, changefeed.Status(status))
	}
}

// statuses are the names of all, worst first.
func statuses() (names []string) {
	for _, s := range changefeed.Statuses() {
		names = append(names, string(s))
	}
	return names
}
