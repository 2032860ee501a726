package refusal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/refusal"
)

func TestARefusalSaysWhatWasRefusedWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	sentinel := errors.New("gone")
	for _, c := range []struct {
		rule    string
		refused refusal.Error
		text    string
		says    string // of its Cause
		remedy  string // of its Cause
	}{
		{"all that there is", refusal.Error{Kind: "throttled", Status: 429, Given: "429/3200", Words: "slow down", Meaning: "it throttles", Remedy: "poll less", Command: "az x", Of: "account a"},
			`account a: it says "slow down": it throttles (429/3200): poll less`, "refuses (429, throttled)", "poll less: az x"},
		{"no answer of HTTP", refusal.Error{Kind: "full", Meaning: "queue q is full", Remedy: "raise its size"},
			"queue q is full: raise its size", "refuses (full)", "raise its size"},
		{"a status without a name", refusal.Error{Status: 418, Given: "418", Meaning: "it refuses", Remedy: "look it up"},
			"it refuses (418): look it up", "refuses (418)", "look it up"},
	} {
		c.refused.Sentinel = sentinel
		cause, ok := changefeed.CauseOf(&c.refused)
		if got := c.refused.Error(); got != c.text || !ok || cause.Says != c.says || cause.Remedy != c.remedy || !errors.Is(&c.refused, sentinel) {
			t.Errorf("%s: got %q, %+v", c.rule, got, cause)
		}
	}
}

func TestTheWordsOfAServiceAreOneLineWithoutSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"One\r\n\ttwo\x1b[31m three":                      "One two [31m three",
		"?sv=1&sig=aGVsbG8%3D&se=2":                       "?sv=1&sig=REDACTED&se=2",
		"AccountKey=aGVsbG8=;x":                           "AccountKey=REDACTED;x",
		"Authorization: Bearer eyJ0.eyJ1.c2ln is refused": "Authorization: Bearer REDACTED is refused",
		strings.Repeat("ö", 400):                          strings.Repeat("ö", 300) + "…",
	} {
		if got := refusal.Words(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
