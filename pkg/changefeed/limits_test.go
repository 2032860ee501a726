package changefeed_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// hostile is what somebody with access to a lease container may write: a color, a line, a bell, a C1
// control sequence introducer, an override of the direction, and a character that cannot be seen.
const hostile = "a\x1b[31m\r\nb\a\u009b2J\u202ec\u200bd\u2028e"

func TestWhatIsOddInALeaseIsBoundedAndCannotBeAnInstruction(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		rule                       string
		token, owner, continuation string
		fails                      string // "" = it is read
		wantToken, wantOwner       string
	}{
		{"a usual one", "0", "host-1", `"12"`, "", "0", "host-1"},
		{"letters of any script", "0", "gërät-機-ا", `"12"`, "", "0", "gërät-機-ا"},
		{"an owner that is an instruction", "0", hostile, `"12"`, "", "0", "a\ufffd[31m\ufffd\ufffdb\ufffd\ufffd2J\ufffdc\ufffdd\ufffde"},
		{"the longest owner", "0", long(1 << 10), `"12"`, "", "0", long(1 << 10)},
		{"a longer one", "0", long(1<<10 + 1), `"12"`, "", "0", long(1<<10) + "…"},
		{"the longest token", long(1 << 10), "h", `"12"`, "", long(1 << 10), "h"},
		{"a longer one", long(1<<10 + 1), "h", `"12"`, "its token is longer", long(1<<10) + "…", "h"},
		{"a token with a line break", "0\nx", "h", `"12"`, "characters that cannot be seen", "0\ufffdx", "h"},
		{"the longest position", "0", "h", long(16 << 10), "", "0", "h"},
		{"a longer one", "0", "h", long(16<<10 + 1), "position in its ContinuationToken is longer", "0", "h"},
		{"a longer continuation", "0", "h", long(256<<10 + 1), "ContinuationToken is longer", "0", "h"},
		{"a position with a line break, which would be another header", "0", "h", "\"12\"\r\nx-ms-date: 0", "control characters", "0", "h"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			document, err := json.Marshal(map[string]string{"id": "p..0", "LeaseToken": c.token, "Owner": c.owner, "ContinuationToken": c.continuation})
			if err != nil {
				t.Fatal(err)
			}
			l, err := changefeed.ParseLease(document)
			if c.fails == "" && (err != nil || l.Continuation != c.continuation) || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || l.Continuation != "") {
				t.Errorf("error %v, continuation of %d bytes", err, len(l.Continuation))
			}
			if l.Token != c.wantToken || l.Owner != c.wantOwner {
				t.Errorf("token %q, owner %q", l.Token, l.Owner)
			}
		})
	}
}
