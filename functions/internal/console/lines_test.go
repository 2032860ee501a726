package console_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

func TestLinesShowWhatTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, text, want string }{
		{"text of any script", "gërät 機 ا 👍\n\tnext\n", "gërät 機 ا 👍\n\tnext\n"},
		{"an escape sequence", "a\x1b[2Jb", `a\u001b[2Jb`},
		{"that of a link", "\x1b]8;;http://attacker.example\a", `\u001b]8;;http://attacker.example\u0007`},
		{"a return to the beginning of the line", "bad\rgood", `bad\u000dgood`},
		{"a control character of C1, which is an escape sequence, too", "a\u009b2Jb", `a\u009b2Jb`},
		{"an override of the direction", "\u202egnp.exe", `\u202egnp.exe`},
		{"what cannot be seen", "ad\u200bmin\ufeff\u2028", `ad\u200bmin\ufeff\u2028`},
		{"a character of two units", "x\U000e0041", `x\udb40\udc41`},
		{"bytes that are no text", "a\x9bb", "a\ufffdb"},
	} {
		var out bytes.Buffer
		if n, err := (console.Lines{Writer: &out}).Write([]byte(c.text)); n != len(c.text) || err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %d, %v", c.rule, out.String(), n, err)
		}
		if !utf8.ValidString(c.text) {
			continue // JSON has none
		}
		out.Reset()
		if err := console.WriteJSON(&out, c.text); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != c.text {
			t.Errorf("%s: JSON %s is %q, %v", c.rule, out.String(), back, err)
		}
	}
}

func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"lag 12":              "lag 12",
		"=1+1":                "'=1+1",
		" =1+1":               "' =1+1",
		"+1":                  "'+1",
		"-1":                  "'-1",
		"@SUM(A1)":            "'@SUM(A1)",
		"\t=1":                "' =1",
		"a=1\x1b[31m\u202e-1": "a=1 [31m -1",
	} {
		var out bytes.Buffer
		sample := state.Sample{Reasons: []scaling.Reason{{Step: text, Why: "x"}}}
		if err := console.WriteSamplesCSV(&out, []state.Sample{sample}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.String(), ","+want+": x\n") && !strings.HasSuffix(out.String(), `,"`+want+": x\"\n") {
			t.Errorf("%q: %s", text, out.String())
		}
	}
}
