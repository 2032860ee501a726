package cli_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

func TestExplainSaysWhatAWordMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		words  []string
		status int
		begins string
		has    string
	}{
		{"a status", []string{"stalled"}, 0, "stalled\n", "**Do:** look at the change at that position: `feedscale inspect NAME PARTITION` names it."},
		{"a finding", []string{"paused"}, 0, "paused\n", "**Do:**"},
		{"a term of two words, in any case", []string{"Drain", "rate"}, 0, "drain rate: LSNs per second", "two polls"},
		{"one of several names", []string{"etag"}, 0, "ETag: ", ""},
		{"no word", nil, 0, "", "stalled"},
		{"no such word", []string{"staled"}, 2, "feedscale: there is no explanation of \"staled\"; did you mean stale?", ""},
		{"no such word, and none is near", []string{"xyzzyxyzzy"}, 2, "feedscale: there is no explanation of \"xyzzyxyzzy\"; allowed are ", " more"},
	} {
		r := (feedscale{}).run(t, append([]string{"explain"}, c.words...)...)
		if text := r.Stdout + r.Stderr; r.Status != c.status || !strings.HasPrefix(text, c.begins) || !strings.Contains(text, c.has) || strings.Contains(text, "](") {
			t.Errorf("%s: %+v", c.rule, r)
		}
	}
	for _, status := range changefeed.Statuses() {
		if r := (feedscale{}).run(t, "explain", string(status)); r.Status != 0 {
			t.Errorf("%s: %s", status, r.Stderr)
		}
	}
}
