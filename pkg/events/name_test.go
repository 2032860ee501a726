package events_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/events"
)

func TestANameIsThatOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, name string
		want       bool
	}{
		{"letters, digits and hyphens", "shop-orders-2", true},
		{"one character", "a", true},
		{"a digit first", "2-orders", true},
		{"the longest", strings.Repeat("a", 63), true},
		{"longer", strings.Repeat("a", 64), false},
		{"none", "", false},
		{"capital letters", "Orders", false},
		{"a hyphen first", "-orders", false},
		{"a hyphen last", "orders-", false},
		{"a path", "../../admin/host/keys", false},
		{"a space", "or ders", false},
		{"a line end", "orders\r\n", false},
		{"letters beyond ASCII", "b\u00fccher", false},
	} {
		if got := events.IsName(c.name); got != c.want {
			t.Errorf("%s: %q is a name: %v", c.rule, c.name, got)
		}
	}
}
