package changefeed_test

import (
	"reflect"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

func TestNewRanges(t *testing.T) {
	t.Parallel()
	r := func(id, low, high string, parents ...string) changefeed.PartitionKeyRange {
		return changefeed.PartitionKeyRange{ID: id, Min: low, Max: high, Parents: parents}
	}
	for _, c := range []struct {
		rule      string
		revisions []changefeed.PartitionKeyRange
		want      []string
		children  map[string][]string
	}{
		{"in key order", []changefeed.PartitionKeyRange{r("1", "80", "FF"), r("0", "", "80")}, []string{"0", "1"}, nil},
		{"a second revision of a range is the same range", []changefeed.PartitionKeyRange{r("0", "", "FF"), r("0", "", "FF")}, []string{"0"}, nil},
		{
			"children stand for their parent",
			[]changefeed.PartitionKeyRange{r("0", "", "FF"), r("1", "", "80", "0"), r("2", "80", "FF", "0")},
			[]string{"1", "2"}, map[string][]string{"0": {"1", "2"}},
		},
		{
			"grandchildren stand for a grandparent",
			[]changefeed.PartitionKeyRange{r("2", "80", "FF", "0"), r("3", "", "40", "0", "1"), r("4", "40", "80", "0", "1")},
			[]string{"3", "4", "2"}, map[string][]string{"0": {"3", "4", "2"}, "1": {"3", "4"}},
		},
		{
			"a merged range stands for both its parents",
			[]changefeed.PartitionKeyRange{r("0", "", "80"), r("1", "80", "FF"), r("2", "", "FF", "0", "1")},
			[]string{"2"}, map[string][]string{"0": {"2"}, "1": {"2"}},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			ranges := changefeed.NewRanges(c.revisions)
			if got := ids(ranges); !reflect.DeepEqual(got, c.want) {
				t.Errorf("ranges %q, want %q", got, c.want)
			}
			for parent, want := range c.children {
				if got := ids(ranges.Children(parent)); !reflect.DeepEqual(got, want) {
					t.Errorf("children of %s: %q, want %q", parent, got, want)
				}
				if ranges.Has(parent) {
					t.Errorf("%s is gone, but listed", parent)
				}
			}
		})
	}
}

func ids(ranges changefeed.Ranges) []string {
	var ids []string
	for _, r := range ranges {
		ids = append(ids, r.ID)
	}
	return ids
}
