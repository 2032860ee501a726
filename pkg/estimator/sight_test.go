package estimator

import (
	"slices"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// TestAHoleCountsOnceItIsCertain has one letter for each poll: h saw a hole and m no marker, s another set
// of leases than before, r a range that was split, f could not read the ranges.
func TestAHoleCountsOnceItIsCertain(t *testing.T) {
	t.Parallel()
	hole := changefeed.Range{Min: "40", Max: "80"}
	for _, c := range []struct {
		rule  string
		polls []string
		want  string // for each poll: ? unknown, - none, h the hole
	}{
		{"with a marker, at the first poll of all", []string{"h", "h"}, "hh"},
		{"with a marker, a lease that goes counts at the next poll", []string{"", "hs", "h"}, "--h"},
		{"without a marker, at the third poll", []string{"hms", "hm", "hm"}, "--h"},
		{"without a marker, leases that come begin anew", []string{"hms", "hm", "hms", "hm", "hm"}, "----h"},
		{"not while a split or merge is taken over", []string{"", "hr", "hr", "h"}, "---h"},
		{"a hole that was seen stays through a split", []string{"h", "hsr", ""}, "hh-"},
		{"a read that fails keeps it", []string{"f", "h", "f", "f", ""}, "?hhh-"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var coverage changefeed.Coverage
			got := ""
			for i, poll := range c.polls {
				has := func(what rune) bool { return slices.Contains([]rune(poll), what) }
				s := sight{first: i == 0, same: i > 0 && !has('s'), marked: !has('m'), splitting: has('r'), known: !has('f')}
				if has('h') {
					s.holes = []changefeed.Range{hole}
				}
				switch coverage = s.next(coverage); {
				case coverage.Holes == nil:
					got += "?"
				case len(coverage.Holes) == 0:
					got += "-"
				default:
					got += "h"
				}
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
