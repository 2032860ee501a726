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
