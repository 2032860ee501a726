package epk_test

import (
	"math"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/epk"
)

// The digests are those the service's SDKs publish for their own tests, with the two top bits
// cleared.
func TestPositionsAgreeWithTheSDKs(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name         string
		components   []any
		hierarchical bool
		want         string
	}{
		{"undefined", []any{epk.Undefined{}}, false, "11622DAA78F835834610ABE56EFF5CB5"},
		{"null", []any{nil}, false, "378867E4430E67857ACE5C908374FE16"},
		{"true", []any{true}, false, "0E711127C5B5A8E4726AC6DD306A3E59"},
		{"false", []any{false}, false, "2FE1BE91E90A3439635E0E9E37361EF2"},
		{"zero", []any{0.0}, false, "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"},
		{"negative zero is another key", []any{math.Copysign(0, -1)}, false, "3D018BB1DF3DB27235766E81FD10406E"},
		{"a number", []any{1.0}, false, "20CD98B339BA78A5D0CF6953B87070B0"},
		{"a negative number", []any{-1.0}, false, "19938E7A936C1C5B9E3AE842BBC16839"},
		{"a string longer than a block", []any{strings.Repeat("a", 99)}, false, "3C02F609961C32AAC2B912B940D1209A"},
		{"a string", []any{"/path1"}, false, "3499FD5198AE0F1EB6B77F6E428D2FF0"},
		{"a hierarchy, each level masked by itself", []any{"/path1", "/path2"}, true, "3499FD5198AE0F1EB6B77F6E428D2FF0" + "27A1848BD1102A3B65AFF266874D0FF5"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := epk.Of(c.components, c.hierarchical); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestBoundsOfLengthsThatDifferCompareAsFilledWithZeros(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, a, b string
		want       int
	}{
		{"equal", "1F", "1F", 0},
		{"zeros do not count", "1F", "1F0000", 0},
		{"a longer one is greater", "1F", "1F0001", -1},
		{"and the other way round", "1F01", "1F", 1},
		{"the start sorts first", "", "00A0", -1},
		{"the end sorts last", "FF", "3FFF", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := epk.Compare(c.a, c.b); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestTwoPartsMeetWhereTheServiceLetsThemMeet(t *testing.T) {
	t.Parallel()
	got := strings.Join(epk.Bounds(2), " ")
	if want := " 1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF FF"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if middle, ok := epk.Middle("", "FF"); !ok || middle != "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF" {
		t.Errorf("got %s, %v", middle, ok)
	}
	if _, ok := epk.Middle("1F", "1F00000000000000000000000000000001"); ok {
		t.Error("a part of one position was halved")
	}
}
