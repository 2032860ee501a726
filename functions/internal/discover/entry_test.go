package discover

import (
	"strings"
	"testing"
)

func TestAnEntryIsNamedAfterWhatItScalesAndNeverAsAnother(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 70)
	for _, c := range []struct {
		rule  string
		entry Entry
		taken []string
		want  string
	}{
		{"its processor", Entry{ProcessorName: "projection", ContainerID: "orders"}, nil, "projection"},
		{"in small letters, joined by hyphens", Entry{ProcessorName: "Audit_v2.EU", ContainerID: "orders"}, nil, "audit-v2-eu"},
		{"with its container where that is taken", Entry{ProcessorName: "projection", ContainerID: "My orders"}, []string{"projection"}, "projection-my-orders"},
		{"with a number where both are", Entry{ProcessorName: "projection", ContainerID: "orders"}, []string{"projection", "projection-orders"}, "projection-orders-2"},
		{"with the next one", Entry{ProcessorName: "projection", ContainerID: "orders"}, []string{"projection", "projection-orders", "projection-orders-2"}, "projection-orders-3"},
		{"its container where it has no name", Entry{ContainerID: "orders"}, nil, "orders"},
		{"anything where neither has a letter or digit", Entry{ProcessorName: "日本", ContainerID: "日本"}, nil, "processor"},
		{"at most 63 characters", Entry{ProcessorName: long, ContainerID: "orders"}, nil, long[:63]},
		{"with its number, too", Entry{ContainerID: long}, []string{long[:63]}, long[:61] + "-2"},
		{"which leaves no hyphen at the cut", Entry{ContainerID: long[:60] + "-b" + long}, []string{long[:60] + "-ba"}, long[:60] + "-2"},
	} {
		taken := make(map[string]bool)
		for _, name := range c.taken {
			taken[name] = true
		}
		if got := freeName(taken, &c.entry); got != c.want {
			t.Errorf("%s: got %s, want %s", c.rule, got, c.want)
		}
	}
}

func TestAHeadIsPartedWhereNoHostCanGoOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, head, name, host string }{
		{"a host alone", "shop.documents.azure.com", "", "shop.documents.azure.com"},
		{"a host may have a hyphen or an underscore", "my_app-1.internal", "", "my_app-1.internal"},
		{"a name ends with what no host has", "my app shop.documents.azure.com", "my app ", "shop.documents.azure.com"},
		{"in any alphabet", "日本shop.documents.azure.com", "日本", "shop.documents.azure.com"},
		{"a host begins with a letter or a digit", "$.shop.documents.azure.com", "$.", "shop.documents.azure.com"},
		{"no host at the end", "日本", "日本", ""},
		{"nothing that a host ends with", "shop.", "shop.", ""},
		{"nothing at all", "", "", ""},
	} {
		if name, host := splitAnywhere(c.head); name != c.name || host != c.host {
			t.Errorf("%s: got %q and %q, want %q and %q", c.rule, name, host, c.name, c.host)
		}
	}
}
