package dashboard_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/dashboard"
)

func request(t *testing.T, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	dashboard.New(slog.New(slog.DiscardHandler)).Register(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
	return w
}

// part is what stands in the only element of a name.
func part(t *testing.T, page, element string) string {
	t.Helper()
	_, rest, _ := strings.Cut(page, "<"+element+">")
	text, _, ok := strings.Cut(rest, "</"+element+">")
	if !ok || strings.Count(page, "<"+element) != 1 || text == "" {
		t.Fatalf("the page has not one <%s>", element)
	}
	return text
}

func TestThePageIsServedWithHeadersThatKeepTheKeyAtHome(t *testing.T) {
	t.Parallel()
	w := request(t, http.MethodGet, dashboard.Route)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	for name, want := range map[string]string{
		"Content-Type":           "text/html; charset=utf-8",
		"Referrer-Policy":        "no-referrer",
		"X-Content-Type-Options": "nosniff",
		"Cache-Control":          "no-store",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if w.Header().Get("Set-Cookie") != "" {
		t.Error("it sets a cookie")
	}
}

func TestThePolicyAllowsTheTwoPartsOfThePageAndNothingElse(t *testing.T) {
	t.Parallel()
	w := request(t, http.MethodGet, dashboard.Route)
	hash := func(element string) string {
		sum := sha256.Sum256([]byte(part(t, w.Body.String(), element)))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	wanted := map[string]string{
		"default-src": "'none'", "style-src": hash("style"), "script-src": hash("script"), "img-src": "data:", "connect-src": "'self'",
		"base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'", "trusted-types": "'none'",
	}
	directives := strings.Split(w.Header().Get("Content-Security-Policy"), "; ")
	for _, directive := range directives {
		name, sources, _ := strings.Cut(directive, " ")
		if want := wanted[name]; sources != want {
			t.Errorf("%s: %q, want %q", name, sources, want)
		}
	}
	if len(directives) != len(wanted) {
		t.Errorf("directives %q", directives)
	}
}

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	page := request(t, http.MethodGet, dashboard.Route).Body.String()
	for _, link := range regexp.MustCompile(`\s(?:src|href|srcset|action|data)\s*=\s*["']([^"']*)`).FindAllStringSubmatch(page, -1) {
		if link[1] != "processors" && !strings.HasPrefix(link[1], "data:") {
			t.Errorf("it refers to %s", link[1])
		}
	}
	if style := part(t, page, "style"); strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("its style loads something")
	}
	script := part(t, page, "script")
	if strings.Count(script, "fetch(") != 1 || !strings.Contains(script, "fetch('processors'") || strings.Contains(script, "import") || strings.Contains(script, "://") {
		t.Error("its script loads more than processors")
	}
	if strings.Contains(page, "{{") {
		t.Error("a part is missing")
	}
}

func TestDataNeverBecomesMarkup(t *testing.T) {
	t.Parallel()
	script := part(t, request(t, http.MethodGet, dashboard.Route).Body.String(), "script")
	for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage", "sessionStorage", "cookie"} {
		if strings.Contains(script, sink) {
			t.Errorf("it uses %s", sink)
		}
	}
}

func TestTheKeyIsNotInThePage(t *testing.T) {
	t.Parallel()
	if with, without := request(t, http.MethodGet, dashboard.Route+"?code=secret").Body.String(), request(t, http.MethodGet, dashboard.Route).Body.String(); with != without {
		t.Error("the page depends on its address")
	}
}

func TestOnlyGETIsAllowed(t *testing.T) {
	t.Parallel()
	w := request(t, http.MethodPost, dashboard.Route)
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// TestWhatThePageShows runs the rules of the page in Node.js.
func TestWhatThePageShows(t *testing.T) {
	t.Parallel()
	cases := []struct{ rule, expression, want string }{
		{"an unknown lag is a question mark", `number(null)`, `"?"`},
		{"no lag is zero", `number(0)`, `"0"`},
		{"thousands are grouped", `number(1234567)`, `"1,234,567"`},
		{"nothing pending has no age", `age({lag: 0, changeAgeSeconds: null})`, `"–"`},
		{"the age of what is pending may be unknown", `age({lag: 5, changeAgeSeconds: null})`, `"?"`},
		{"the age of an unknown lag is unknown", `age({lag: null, changeAgeSeconds: null})`, `"?"`},
		{"an age in seconds", `age({lag: 5, changeAgeSeconds: 119})`, `"119 s"`},
		{"an age in minutes", `age({lag: 5, changeAgeSeconds: 120})`, `"2 min"`},
		{"an age in hours", `age({lag: 5, changeAgeSeconds: 7200})`, `"2 h"`},
		{"an age in days", `age({lag: 5, changeAgeSeconds: 172800})`, `"2 d"`},
		{"replicas go out", `replicas({desiredReplicas: 5, direction: 'out'})`, `"↑5"`},
		{"replicas go in", `replicas({desiredReplicas: 0, direction: 'in'})`, `"↓0"`},
		{"replicas stay", `replicas({desiredReplicas: 3, direction: 'none'})`, `"3"`},
		{"nothing was decided", `replicas({desiredReplicas: null, direction: null})`, `"?"`},
		{"partitions", `partitions({partitionCount: 8, partitionsWithLag: 5})`, `"5 / 8"`},
		{"how many partitions have lag is unknown", `partitions({partitionCount: 8, partitionsWithLag: null})`, `"? / 8"`},
		{"how many partitions there are is unknown", `partitions({partitionCount: null, partitionsWithLag: null})`, `"?"`},
		{"no request was made", `charge({requests: 0, requestCharge: 0})`, `"–"`},
		{"a request charge", `charge({requests: 2, requestCharge: 2.84})`, `"2.8"`},
		{"never measured", `measured({polledAt: null}, 0)`, `"never"`},
		{"measured a while ago", `measured({polledAt: '2026-01-01T00:00:00Z'}, Date.parse('2026-01-01T00:03:00.5Z'))`, `"3 min ago"`},
		{"measured by a clock that is ahead", `measured({polledAt: '2026-01-01T00:00:09Z'}, Date.parse('2026-01-01T00:00:00Z'))`, `"0 s ago"`},
		{"the error is why", `why({error: 'no role', reasons: [{step: 'failure', why: 'it holds'}], polledAt: null})`, `"no role"`},
		{"else the last reason", `why({error: null, reasons: [{step: 'threshold', why: 'lag 4'}, {step: 'clamp', why: 'to 2'}], polledAt: 'x'})`, `"clamp: to 2"`},
		{"never polled is why", `why({error: null, reasons: [], polledAt: null})`, `"never polled"`},

		{
			"the worst status first, then an unknown lag, then the greatest, then the name",
			`[['c', 'ok', 0], ['b', 'lagging', 9], ['orders-10', 'lagging', 70], ['orders-9', 'lagging', 70], ['u', 'unknown', 5], ['v', 'unknown', null],
				['s', 'stalled', 1], ['x', 'uncheckpointed', 1], ['w', 'unclaimed', 1], ['p', 'splitting', 1], ['t', 'bootstrap', 1], ['new', 'melting', 1]]
				.map(([name, status, lag]) => ({name, status, lag})).sort(worstFirst).map((p) => p.name).join(' ')`,
			`"new v u t p s w x orders-9 orders-10 b c"`,
		},
		{"partitions are ordered by the same", `[{lease: '1', status: 'ok', lag: 0}, {lease: '0', status: 'ok', lag: 0}].sort(worstFirst)[0].lease`, `"0"`},

		{"no filter matches all", `matches({name: 'orders', status: 'ok', error: null}, ' ')`, `true`},
		{"a part of the name", `matches({name: 'orders', status: 'ok', error: null}, 'RDE')`, `true`},
		{"every word has to be found", `matches({name: 'orders', status: 'stalled', error: null}, 'ord stall')`, `true`},
		{"one word is not there", `matches({name: 'orders', status: 'ok', error: null}, 'ord stall')`, `false`},
		{"a word of the error", `matches({name: 'orders', status: 'unknown', error: 'the identity may not'}, 'identity')`, `true`},
		{"a status is itself alone", `matches({name: 'bookings', status: 'stalled', error: null}, 'ok')`, `false`},
		{"a paused processor", `matches({name: 'orders', status: 'ok', error: null, paused: true}, 'paused')`, `true`},

		{"fresh data needs no word", `tooOld([{polledAt: null}, {polledAt: '2026-01-01T00:00:00Z'}], Date.parse('2026-01-01T00:04:59Z'))`, `""`},
		{"old data does", `tooOld([{polledAt: '2026-01-01T00:00:00Z'}], Date.parse('2026-01-01T00:05:00Z')).startsWith('Nothing was measured for 5 min.')`, `true`},
		{"no data at all does", `tooOld([{polledAt: null}], 0).startsWith('No processor was ever measured.')`, `true`},
		{"where there is no processor nothing is old", `tooOld([], 0)`, `""`},
		{"a refused key says which one is needed", `refusal(401, undefined).includes('host key')`, `true`},
		{"another refusal says why", `refusal(503, 'the state cannot be read')`, `"The server answers 503: the state cannot be read."`},
		{"or nothing", `refusal(502, undefined)`, `"The server answers 502."`},
	}
	rules, err := os.ReadFile("page/rules.js")
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	program.Write(rules)
	program.WriteString("\nconsole.log(JSON.stringify([\n")
	for _, c := range cases {
		program.WriteString(c.expression + ",\n")
	}
	program.WriteString("].map((x) => JSON.stringify(x))))\n")
	node := exec.CommandContext(t.Context(), "node", "-")
	node.Stdin = strings.NewReader(program.String())
	output, err := node.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var got []string
	if err := json.Unmarshal(output, &got); err != nil || len(got) != len(cases) {
		t.Fatalf("%v in %s", err, output)
	}
	for i, c := range cases {
		if got[i] != c.want {
			t.Errorf("%s: %s is %s, want %s", c.rule, c.expression, got[i], c.want)
		}
	}
}

func TestTheScriptIsWellFormed(t *testing.T) {
	t.Parallel()
	check := exec.CommandContext(t.Context(), "node", "--check", "-")
	check.Stdin = strings.NewReader(part(t, request(t, http.MethodGet, dashboard.Route).Body.String(), "script"))
	if output, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
