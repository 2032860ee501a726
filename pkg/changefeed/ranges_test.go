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
				if _, ok := ranges.Find(parent); ok {
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

func TestCompareEPK(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, a, b string
		want       int
	}{
		{"the lowest bound", "", "05C1", -1},
		{"the highest bound", "05C1", "FF", -1},
		{"the same", "05C1", "05C1", 0},
		{"trailing zeros mean nothing", "05C1", "05C10000", 0},
		{"the lowest bound, spelled out", "", "0000", 0},
		{"a longer key behind its prefix", "05C1", "05C10001", -1},
		{"unlike keys of unlike length", "06", "05C1FFFF", 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := changefeed.CompareEPK(c.a, c.b); got != c.want {
				t.Errorf("CompareEPK(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
			}
			if got := changefeed.CompareEPK(c.b, c.a); got != -c.want {
				t.Errorf("CompareEPK(%q, %q) = %d, want %d", c.b, c.a, got, -c.want)
			}
		})
	}
}

func TestARangeHasNoGapWhereOthersHaveAllOfIt(t *testing.T) {
	t.Parallel()
	r := func(low, high string) changefeed.Range { return changefeed.Range{Min: low, Max: high} }
	for _, c := range []struct {
		rule   string
		others []changefeed.Range
		want   bool
	}{
		{"by none", nil, false},
		{"by its equal", []changefeed.Range{r("40", "80")}, true},
		{"by a wider one", []changefeed.Range{r("", "FF")}, true},
		{"by two that meet, in any order", []changefeed.Range{r("60", "80"), r("40", "60")}, true},
		{"by two that overlap", []changefeed.Range{r("3F", "70"), r("60", "90")}, true},
		{"not where there is a gap", []changefeed.Range{r("40", "5F"), r("60", "80")}, false},
		{"not where the end is missing", []changefeed.Range{r("40", "7F")}, false},
		{"not where the beginning is missing", []changefeed.Range{r("41", "80")}, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := len(r("40", "80").Gaps(c.others)) == 0; got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
