package dashboard_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/dashboard"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

func request(t *testing.T, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	dashboard.Register(mux, false)
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
		"Cache-Control":          "private, no-cache",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if w.Header().Get("Set-Cookie") != "" {
		t.Error("it sets a cookie")
	}
	if got := request(t, http.MethodGet, dashboard.Route+"?code=k").Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("a browser may keep the address with the key: %q", got)
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
		if link[1] != "processors" && !strings.HasPrefix(link[1], "#/") && !strings.HasPrefix(link[1], "data:") {
			t.Errorf("it refers to %s", link[1])
		}
	}
	if style := part(t, page, "style"); strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("its style loads something")
	}
	script := part(t, page, "script")
	if strings.Count(script, "fetch(") != 1 || !strings.Contains(script, "fetch(beside + path,") || strings.Contains(script, "import") || strings.Contains(script, "://") {
		t.Error("its script loads more than what is beside it")
	}
	if strings.Contains(page, "{{") {
		t.Error("a part is missing")
	}
}

// TestControlsAreInThePageOfAProgramThatHasThem holds that no other page has code that changes anything.
func TestControlsAreInThePageOfAProgramThatHasThem(t *testing.T) {
	t.Parallel()
	for _, controls := range []bool{false, true} {
		mux := http.NewServeMux()
		dashboard.Register(mux, controls)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, dashboard.Route, nil))
		script := part(t, w.Body.String(), "script")
		if has := strings.Contains(script, "'POST'"); has != controls {
			t.Errorf("with controls %t, and it can send a POST: %t", controls, has)
		}
		sum := sha256.Sum256([]byte(script))
		if !strings.Contains(w.Header().Get("Content-Security-Policy"), "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Errorf("with controls %t the policy does not allow the script", controls)
		}
		for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "eval("} {
			if strings.Contains(script, sink) {
				t.Errorf("it uses %s", sink)
			}
		}
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
		{"a status has a while", `since({since: '2026-01-01T00:00:00Z'}, Date.parse('2026-01-01T00:03:00.5Z'))`, `" 3 min"`},
		{"a status since nobody knows when", `since({since: null}, 0) + since({}, 0)`, `""`},
		{"a rate", `[rate(null), rate(0), rate(12.345), rate(1234.5)].join(' ')`, `"? 0/s 12.3/s 1,235/s"`},
		{"a count of one", `[count(1, 'replica'), count(2, 'replica'), count(null, 'replica')].join(', ')`, `"1 replica, 2 replicas, ? replicas"`},
		{"a time is UTC, with its day where that is another", `[clock('2026-01-02T03:04:05Z', Date.parse('2026-01-02T23:00:00Z')), clock('2026-01-02T03:04:05Z', Date.parse('2026-01-03T00:00:00Z'))].join(', ')`, `"03:04:05 UTC, 01-02 03:04:05 UTC"`},
		{"nothing pending needs no catching up", `catchUp({lag: 0, catchUpSeconds: null})`, `"–"`},
		{"the time to catch up", `catchUp({lag: 5, catchUpSeconds: 90.4})`, `"90 s"`},
		{"a lag that does not shrink", `catchUp({lag: 5, catchUpSeconds: null, arrivalPerSecond: 9, drainPerReplica: 2})`, `"?"`},
		{"members in place of partitions", `partitions({members: [{}, {}]})`, `"2 members"`},
		{"the highest member, or several", `highest([{processor: 'a', desiredReplicas: 2}, {processor: 'b', desiredReplicas: 3}, {processor: 'c', desiredReplicas: 3}, {processor: 'd', desiredReplicas: null}]).join(' ')`, `"b c"`},
		{"no member was ever decided", `highest([{processor: 'a', desiredReplicas: null}]).length`, `0`},
		{"a note of a stall", `note({stall: {kind: 'flapping', since: '2026-01-01T02:00:00Z', owners: ['a', 'b']}, error: null}, Date.parse('2026-01-01T03:00:00Z'))`, `"flapping since 02:00:00 UTC, owners seen: a, b"`},
		{"a note of all the rest", `note({rewound: {from: 9, to: 0, time: '2026-01-01T02:00:00Z'}, carried: '2026-01-01T01:00:00Z', approximate: true, error: 'gone'}, Date.parse('2026-01-01T03:00:00Z'))`, `"rewound from LSN 9 to 0 at 02:00:00 UTC; carried: measured at 01:00:00 UTC; approximate; gone"`},
		{"measured by a clock that is ahead", `measured({polledAt: '2026-01-01T00:00:09Z'}, Date.parse('2026-01-01T00:00:00Z'))`, `"0 s ago"`},
		{"the worst that was found is why, with what to do", `why({error: "e", findings: [{severity: "info", sentence: "a", remedy: "b"}, {severity: "critical", sentence: "no role", remedy: "give it"}]}).join(" ")`, `"No role. Give it."`},
		{"the error is why", `why({error: 'no role', reasons: [{step: 'failure', why: 'it holds'}], polledAt: null})[0]`, `"no role"`},
		{"else the last reason", `why({error: null, reasons: [{step: 'threshold', why: 'lag 4'}, {step: 'clamp', why: 'to 2'}], polledAt: 'x'}).join('')`, `"clamp: to 2"`},
		{"never polled is why", `why({error: null, reasons: [], polledAt: null})[0]`, `"never polled"`},

		{
			"the worst status first, then an unknown lag, then the greatest, then the name",
			`[['c', 'ok', 0], ['b', 'lagging', 9], ['orders-10', 'lagging', 70], ['orders-9', 'lagging', 70], ['u', 'unknown', 5], ['v', 'unknown', null],
				['e', 'expiring', 1], ['s', 'stalled', 1], ['x', 'uncheckpointed', 1], ['w', 'unclaimed', 1], ['p', 'splitting', 1], ['t', 'bootstrap', 1], ['new', 'melting', 1]]
				.map(([name, status, lag]) => ({name, status, lag})).sort(worstFirst).map((p) => p.name).join(' ')`,
			`"new v u s e t p w x orders-9 orders-10 b c"`,
		},
		{"partitions are ordered by the same", `[{lease: '1', status: 'ok', lag: 0}, {lease: '0', status: 'ok', lag: 0}].sort(worstFirst)[0].lease`, `"0"`},

		{"no filter matches all", `matches({name: 'orders', status: 'ok', error: null}, ' ', [])`, `true`},
		{"a part of the name", `matches({name: 'orders', status: 'ok', error: null}, 'RDE', [])`, `true`},
		{"every word has to be found", `matches({name: 'orders', status: 'stalled', error: null}, 'ord stall', [])`, `true`},
		{"one word is not there", `matches({name: 'orders', status: 'ok', error: null}, 'ord stall', [])`, `false`},
		{"a word of the error", `matches({name: 'orders', status: 'unknown', error: 'the identity may not'}, 'identity', [])`, `true`},
		{"a word of the group", `matches({name: 'orders', group: 'workers', status: 'ok', error: null}, 'workers', [])`, `true`},
		{"a status is itself alone", `matches({name: 'bookings', status: 'stalled', error: null}, '', ['ok', 'lagging'])`, `false`},
		{"one of several statuses", `matches({name: 'bookings', status: 'stalled', error: null}, 'book', ['ok', 'stalled'])`, `true`},
		{"a paused processor", `matches({name: 'orders', status: 'ok', error: null, paused: true}, 'paused', [])`, `true`},

		{"a sort by a column, what is equal by worst first", `sorted([['a', 'ok', 3], ['b', 'stalled', 1], ['c', 'unknown', 1], ['d', 'ok', null]].map(([name, status, lag]) => ({name, status, lag})), 'lag').map((p) => p.name).join(' ')`, `"c b a d"`},
		{"from the most down, unknown is the most", `sorted([['a', 'ok', 3], ['b', 'stalled', 1], ['c', 'unknown', 1], ['d', 'ok', null]].map(([name, status, lag]) => ({name, status, lag})), '-lag').map((p) => p.name).join(' ')`, `"d a c b"`},
		{"nothing pending is younger than any age", `sorted([{name: 'a', status: 'ok', lag: 0, changeAgeSeconds: null}, {name: 'b', status: 'lagging', lag: 5, changeAgeSeconds: null}, {name: 'c', status: 'lagging', lag: 5, changeAgeSeconds: 0}], 'age').map((p) => p.name).join(' ')`, `"a c b"`},
		{"a click on a number begins with the most", `[nextSort('status', 'lag'), nextSort('-lag', 'lag'), nextSort('lag', 'lag'), nextSort('status', 'name'), nextSort('name', 'name')].join(' ')`, `"-lag lag -lag name -name"`},

		{"an address of the list, and back", `writeRoute(readRoute('#/?q=ord%20ers&status=stalled,unknown&sort=-lag&page=3'))`, `"#/?q=ord%20ers&status=stalled,unknown&sort=-lag&page=3"`},
		{"an address of a processor, and back", `writeRoute(readRoute('#/processors/orders?range=24h&at=2026-01-01T00:00:00.000Z&policy=keda'))`, `"#/processors/orders?range=24h&at=2026-01-01T00:00:00.000Z&policy=keda"`},
		{"an address of the report, and back", `writeRoute(readRoute('#/report?range=24h&page=2')) + writeRoute(readRoute('#/report?range=6h'))`, `"#/report?range=24h&page=2#/report"`},
		{"the trouble of a report", `ranTrouble({statusSeconds: {stalled: 7300, ok: 9, unclaimed: 60}})`, `"stalled 2 h, unclaimed 60 s"`},
		{"what goes without saying is not said", `writeRoute(readRoute('#/?q=&status=&sort=status&page=1'))`, `"#/"`},
		{"what is not understood is left out", `writeRoute(readRoute('#/processors/a%2Fb?range=9y&at=noon&policy=best')) + writeRoute(readRoute('#/?sort=constructor&page=-7'))`, `"#/processors/a%2Fb#/"`},
		{"an address that cannot be read is the list", `[readRoute('#/processors/%E0%A4%A').name, readRoute('').name, readRoute('#/processors/').name].every((n) => n === null)`, `true`},

		{"a decision is the first, or changes the replicas", `[[null, 2], [2, 2], [2, 3], [2, null]].map(([previousReplicas, desiredReplicas]) => changed({previousReplicas, desiredReplicas})).join()`, `"true,false,true,false"`},
		{"a sample holds to the next, and not over missing polls", `runs([0, 60, 120, 900].map((s) => ({ms: s * 1000})), 960_000, 15_000).map((r) => (r.to - r.from) / 1000).join()`, `"60,60,60,60"`},
		{"decisions between the steps make no gaps", `runs([0, 10, 20, 30, 630, 1230].map((s) => ({ms: s * 1000})), 1_800_000, 600_000).map((r) => (r.to - r.from) / 1000).join()`, `"10,10,10,600,600,570"`},
		{"newer samples replace those from the same time on, and old ones go", `merge([1, 2, 3, 4].map((ms) => ({ms})), [{ms: 4, new: true}, {ms: 5}], 4, 2).map((s) => s.ms + (s.new ? 'n' : '')).join()`, `"2,3,4n,5"`},
		{"a scale has round numbers", `[ticksUpTo(0), ticksUpTo(7, true), ticksUpTo(1, true), ticksUpTo(123456, true)].map((t) => t.join()).join(' ')`, `"0,1 0,2,4,6,8 0,1 0,50000,100000,150000"`},
		{"a scale of seconds has whole minutes and hours", `[secondTicks(100), secondTicks(4000), secondTicks(200000)].map((t) => t.map(shortSpan).join()).join(' ')`, `"0 s,30 s,1 min,90 s,2 min 0 s,20 min,40 min,1 h,80 min 0 s,1 d,2 d,3 d"`},
		{"a chart that is half full has all of its time", `beginning(5_000_000, 10_000_000, 10_000_000)`, `0`},
		{"a short history is drawn from its beginning", `beginning(8_000_000, 10_000_000, 10_000_000)`, `8000000`},
		{"over at least five minutes", `beginning(9_990_000, 10_000_000, 10_000_000)`, `9700000`},
		{"a gap is no line", `line([{from: 0, to: 1, value: 5}, {from: 1, to: 2, value: 6}, {from: 2, to: 3, value: null}, {from: 3, to: 4, value: 7}], (x) => x, (y) => y)`, `"M0,5H1V6H2M3,7H4"`},
		{"a chart in words", `summary('Lag', number, [{ms: 0, v: 5}, {ms: 60000, v: null}, {ms: 120000, v: 9}], (s) => s.v, 0)`, `"Lag: last 9, most 9 at 00:02:00 UTC, least 5; unknown in 1 of 3 samples."`},
		{"a chart of which nothing is known", `summary('Lag', number, [{ms: 0, v: null}], (s) => s.v, 0)`, `"Lag: nothing is known in this time."`},
		{"what happened is summed up", `JSON.stringify(totals([[null, 2, 5], [2, 4, 9], [4, 4, null]].map(([previousReplicas, desiredReplicas, lag], i) => ({ms: i * 1_800_000, previousReplicas, desiredReplicas, lag, changeAgeSeconds: null})), 5_400_000, 15_000))`, `"{\"replicaHours\":5,\"maxLag\":9,\"maxAgeSeconds\":0,\"actions\":1}"`},
		{"what is slow or fails is asked less", `[pause(100, 0), pause(3000, 0), pause(30000, 1), pause(10, 1), pause(10, 9)].join()`, `"10000,30000,60000,20000,60000"`},
		{"what turned bad is news, once", `[news([{name: 'a', status: 'ok'}, {name: 'b', status: 'stalled'}], [{name: 'a', status: 'unknown'}, {name: 'b', status: 'stalled'}]), news([], [])].join()`, `"a is unknown.,"`},
		{"many are counted", `news([], ['a', 'b', 'c', 'd'].map((name) => ({name, status: 'stalled'})))`, `"4 processors turned bad."`},

		{"fresh data needs no word", `tooOld([{polledAt: null}, {polledAt: '2026-01-01T00:00:00Z'}], [], Date.parse('2026-01-01T00:04:59Z'))`, `""`},
		{"old data does", `tooOld([{polledAt: '2026-01-01T00:00:00Z'}], [], Date.parse('2026-01-01T00:05:00Z')).startsWith('Nothing was measured since 00:00:00 UTC.')`, `true`},
		{"no data at all does", `tooOld([{polledAt: null}], [], 0).startsWith('No processor was ever measured.')`, `true`},
		{"where there is no processor nothing is old", `tooOld([], [], 0)`, `""`},
		{"a cause says why all are old", `tooOld([{polledAt: null}], [{}], 0)`, `""`},
		{
			"first is what several processors share, with what to do",
			`JSON.stringify(firstSentences({processors: [], groups: [], causes: [{shared: false, names: ['a'], sentence: 'x', remedy: 'y'}, {shared: true, names: ['a', 'b'], beside: false, sentence: 's', remedy: 'r'}]}))`,
			`"[{\"severity\":\"critical\",\"sentence\":\"s\",\"remedy\":\"r\"}]"`,
		},
		{
			"else the worst that was found, and how many more there are",
			`(({severity, name, sentence, remedy, more}) => [severity, name, sentence, remedy, more].join('; '))(firstSentences({groups: [{name: 'g', status: 'stalled', members: [], findings: [{severity: 'critical'}]}],
				processors: [{name: 'b', status: 'lagging', findings: [{severity: 'warning'}]}, {name: 'a', status: 'stalled', findings: [{severity: 'critical', sentence: 's', remedy: 'r'}]}]})[0])`,
			`"critical; a; s; r; 1 other below needs help as well."`,
		},
		{"else that nothing is", `firstSentences({processors: [{status: 'ok', findings: []}, {status: 'lagging', findings: [{severity: 'info'}]}], groups: []})[0].sentence`, `"nothing is wrong with any of 2 processors"`},
		{"without findings nothing is said of what is critical", `firstSentences({processors: [{status: 'stalled'}], groups: []}).length`, `0`},
		{"a trend in words", `trendWords([null, 3, 1200, 5, null], 0, 120000, 0) + '; ' + trendWords([null], 0, 1, 0)`, `"most 1,200 at 00:04, last 5; nothing is known"`},
		{"a refused key says which one is needed", `refusal(401, undefined).includes('host key')`, `true`},
		{"another refusal says why", `refusal(503, 'the state cannot be read')`, `"The server answers 503: the state cannot be read."`},
		{"or nothing", `refusal(502, undefined)`, `"The server answers 502."`},
	}
	var program strings.Builder
	program.WriteString(severities(t))
	for _, name := range []string{"rules.js", "route.js", "series.js", "chart.js"} { // which know no page
		rules, err := os.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		program.Write(rules)
	}
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

func TestThePageKnowsEveryStatusAndItsSeverity(t *testing.T) {
	t.Parallel()
	known := regexp.MustCompile(`(\w+): '(\w+)'`).FindAllStringSubmatch(severities(t), -1)
	statuses := changefeed.Statuses()
	if len(known) != len(statuses) {
		t.Fatalf("the page knows %q", known)
	}
	for i, s := range statuses { // worst first
		if known[i][1] != string(s) || known[i][2] != string(report.SeverityOf(s)) {
			t.Errorf("the page has %q, want %s, which is %s", known[i], s, report.SeverityOf(s))
		}
	}
}

// severities is the line of the script that package report makes.
func severities(t *testing.T) string {
	t.Helper()
	script := part(t, request(t, http.MethodGet, dashboard.Route).Body.String(), "script")
	line := regexp.MustCompile(`const SEVERITY = .*\n`).FindString(script)
	if line == "" {
		t.Fatal("the script has no severities")
	}
	return line
}

func TestTheScriptIsWellFormed(t *testing.T) {
	t.Parallel()
	check := exec.CommandContext(t.Context(), "node", "--check", "-")
	check.Stdin = strings.NewReader(part(t, request(t, http.MethodGet, dashboard.Route).Body.String(), "script"))
	if output, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
