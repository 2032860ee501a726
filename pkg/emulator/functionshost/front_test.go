package functionshost_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// web is an HTTP function, with more fields for its trigger.
func web(fields string) string {
	return `{"bindings":[{"type":"httpTrigger","direction":"in","name":"req"` + fields + `},{"type":"http","direction":"out","name":"res"}]}`
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	const prefix = `"extensions":{"http":{"routePrefix":"%"}},`
	withPrefix := func(p string) string {
		return strings.Replace(plainHost, `{"version"`, "{"+strings.Replace(prefix, "%", p, 1)+`"version"`, 1)
	}
	cases := []struct {
		name         string
		host         string
		route        string // fields of the trigger
		method, path string
		want         int
		wantParams   string
	}{
		{"the name of the function is its route", plainHost, ``, "GET", "/api/web", 200, `{}`},
		{"in any case", plainHost, ``, "GET", "/API/Web", 200, `{}`},
		{"with a slash at the end", plainHost, ``, "GET", "/api/web/", 200, `{}`},
		{"not with two", plainHost, ``, "GET", "/api/web//", 404, ``},
		{"not without the prefix", plainHost, ``, "GET", "/web", 404, ``},
		{"another prefix", withPrefix("v1"), ``, "GET", "/v1/web", 200, `{}`},
		{"no prefix", withPrefix(""), ``, "GET", "/web", 200, `{}`},
		{"a parameter", plainHost, `,"route":"processors/{name}"`, "GET", "/api/processors/orders", 200, `{"name":"orders"}`},
		{"a parameter is required", plainHost, `,"route":"processors/{name}"`, "GET", "/api/processors", 404, ``},
		{"an optional parameter that is there", plainHost, `,"route":"processors/{name?}"`, "GET", "/api/processors/orders", 200, `{"name":"orders"}`},
		{"an optional parameter that is absent is null", plainHost, `,"route":"processors/{name?}"`, "GET", "/api/processors", 200, `{"name":null}`},
		{"nothing may follow", plainHost, `,"route":"processors/{name?}"`, "GET", "/api/processors/orders/x", 404, ``},
		{"all the rest", plainHost, `,"route":"files/{*path}"`, "GET", "/api/files/a/b.css", 200, `{"path":"a/b.css"}`},
		{"a listed method", plainHost, `,"methods":["get","post"]`, "POST", "/api/web", 200, `{}`},
		{"another method is not found, rather than not allowed", plainHost, `,"methods":["get"]`, "POST", "/api/web", 404, ``},
		{"HEAD is another method than GET", plainHost, `,"methods":["get"]`, "HEAD", "/api/web", 404, ``},
		{"an unknown path", plainHost, ``, "GET", "/api/other", 404, ``},
		{"the root says that the app is up", plainHost, ``, "GET", "/", 200, ``},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := app{host: c.host, functions: map[string]string{"web": web(`,"authLevel":"anonymous"` + c.route)}}.start(t)
			got := r.do(t, c.method, c.path, "", nil)
			if got.status != c.want {
				t.Errorf("got %d, want %d", got.status, c.want)
			}
			if got.status == 404 && got.body != "" {
				t.Errorf("the 404 says %q, want nothing", got.body)
			}
			if c.wantParams == "" {
				return
			}
			var req struct{ Params json.RawMessage }
			if err := json.Unmarshal(r.lastSeen(t).payload(t).Data["req"], &req); err != nil {
				t.Fatal(err)
			}
			if string(req.Params) != c.wantParams {
				t.Errorf("got %s, want %s", req.Params, c.wantParams)
			}
		})
	}
}

func TestTheMostLiteralRouteWins(t *testing.T) {
	t.Parallel()
	r := app{functions: map[string]string{
		"a": web(`,"authLevel":"anonymous","route":"{*all}"`),
		"b": web(`,"authLevel":"anonymous","route":"processors/self"`),
		"c": web(`,"authLevel":"anonymous","route":"processors/{name}"`),
	}}.start(t)
	for path, want := range map[string]string{"/api/processors/self": "/b", "/api/processors/orders": "/c", "/api/x": "/a"} {
		r.do(t, "GET", path, "", nil)
		if got := r.lastSeen(t).URI; got != want {
			t.Errorf("%s went to %s, want %s", path, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	r := app{
		functions: map[string]string{
			"open": web(`,"authLevel":"anonymous"`), "mine": web(``), "other": web(`,"authLevel":"function"`),
			"admin": web(`,"authLevel":"admin"`), "off": web(`,"authLevel":"anonymous"`),
		},
		settings: map[string]string{"AzureWebJobs.off.Disabled": "true"},
	}.start(t)
	key := func(k string) http.Header { return http.Header{"X-Functions-Key": {k}} }
	cases := []struct {
		name   string
		path   string
		header http.Header
		want   int
	}{
		{"anonymous needs none", "/api/open", nil, 200},
		{"function is the default level", "/api/mine", nil, 401},
		{"a function's key, as header", "/api/mine", key(r.Key("mine")), 200},
		{"a function's key, in the query", "/api/mine?code=" + r.Key("mine"), nil, 200},
		{"the header wins", "/api/mine?code=" + r.Key("mine"), key("wrong"), 401},
		{"another function's key", "/api/mine", key(r.Key("other")), 401},
		{"the master key", "/api/mine", key(r.MasterKey()), 200},
		{"admin takes no function key", "/api/admin", key(r.Key("admin")), 401},
		{"admin takes the master key", "/api/admin", key(r.MasterKey()), 200},
		{"a disabled function is not there", "/api/off", nil, 404},
		{"but for the master key", "/api/off", key(r.MasterKey()), 200},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := r.do(t, "GET", c.path, "", c.header); got.status != c.want {
				t.Errorf("got %d, want %d", got.status, c.want)
			}
		})
	}
}

func TestAForwardedRequestIsTheOriginal(t *testing.T) {
	t.Parallel()
	r := app{
		host:      forwardHost,
		functions: map[string]string{"web": web(`,"authLevel":"anonymous","route":"lag/{name?}"`), "poll": timerFunction},
		settings:  map[string]string{"ANSWER_STATUS": "503", "ANSWER_TYPE": "application/problem+json", "ANSWER": `{"title":"too old"}`},
	}.start(t)
	got := r.do(t, "PUT", "/api/lag/orders?x=1&x=2", "the body", http.Header{"X-Mine": {"a", "b"}, "User-Agent": {"KEDA"}})
	if got.status != 503 || got.body != `{"title":"too old"}` || got.header.Get("Content-Type") != "application/problem+json" || got.header.Get("X-Handler") != "seen" {
		t.Errorf("the answer did not come back as it was: %+v", got)
	}
	s := r.lastSeen(t)
	if s.Method != "PUT" || s.URI != "/api/lag/orders?x=1,2" || s.Body != "the body" {
		t.Errorf("got %s %s with %q", s.Method, s.URI, s.Body)
	}
	if s.Host != strings.TrimPrefix(r.URL(), "http://") {
		t.Errorf("Host is %s", s.Host)
	}
	if got := s.Header["X-Mine"]; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("X-Mine is %v", got)
	}
	if got, want := s.Header.Get("User-Agent"), "KEDA Azure-Functions-Host/"+functionshost.Version; got != want {
		t.Errorf("User-Agent is %q, want %q", got, want)
	}
	if s.Header.Get("X-Azure-Functions-InvocationId") == "" {
		t.Error("the invocation id is missing")
	}
}

func TestAForwardedQueryIsRewritten(t *testing.T) {
	t.Parallel()
	r := app{host: forwardHost, functions: map[string]string{"web": web(`,"authLevel":"anonymous"`)}}.start(t)
	cases := []struct{ name, query, want string }{
		{"none", "", ""},
		{"as seen on the host", "?a=1&a=2&b&c=+", "?a=1,2&b=&c=%20"},
		{"names differ by more than case", "?Name=1&b=2&name=3", "?Name=1,3&b=2"},
		{"what needs no escape loses it", "?a=%2C%7E%40%61", "?a=,~@a"},
		{"and what needs one gets it", "?a=/:'x", "?a=%2F%3A%27x"},
		{"beyond ASCII", "?a=%C3%BC", "?a=%C3%BC"},
		{"an escape that is none", "?a=100%", "?a=100%25"},
		{"nothing between two &", "?a=1&&b=2&", "?a=1&b=2"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r.do(t, "GET", "/api/web"+c.query, "", nil)
			if got, want := r.lastSeen(t).URI, "/api/web"+c.want; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestForwardingTakesOnlyABodyWhoseLengthIsAnnounced(t *testing.T) {
	t.Parallel()
	r := app{host: forwardHost, functions: map[string]string{"web": web(`,"authLevel":"anonymous"`)}}.start(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL()+"/api/web", io.NopCloser(strings.NewReader("in chunks")))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "text/plain")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := r.lastSeen(t); got.Body != "" || got.Header.Get("Content-Type") != "" || len(got.TransferEncoding) != 0 {
		t.Errorf("the handler got %q of type %q, %v", got.Body, got.Header.Get("Content-Type"), got.TransferEncoding)
	}
}

func TestForwardingLeavesRedirectsAlone(t *testing.T) {
	t.Parallel()
	r := app{host: forwardHost, functions: map[string]string{"redirect": web(`,"authLevel":"anonymous"`)}}.start(t)
	got := r.do(t, "GET", "/api/redirect", "", nil)
	if got.status != http.StatusFound || got.header.Get("Location") != "/api/elsewhere" {
		t.Errorf("got %d to %q", got.status, got.header.Get("Location"))
	}
}

func TestForwardingDoesNotConcernOtherFunctions(t *testing.T) {
	t.Parallel()
	bundled := strings.Replace(forwardHost, `{"version"`, `{"extensionBundle":{"id":"b","version":"[4.*, 5.0.0)"},"version"`, 1)
	twoOutputs := strings.Replace(web(`,"authLevel":"anonymous"`), `}]}`, `},{"type":"queue","direction":"out","name":"q"}]}`, 1)
	r := app{host: bundled, functions: map[string]string{"poll": timerFunction, "web": twoOutputs}}.start(t)
	if _, err := r.Timer(t.Context(), "poll", functionshost.Tick{}); err != nil {
		t.Fatal(err)
	}
	if got := r.lastSeen(t).URI; got != "/poll" {
		t.Errorf("the timer went to %s", got)
	}
	r.do(t, "GET", "/api/web", "", nil)
	if got := r.lastSeen(t); got.URI != "/web" || got.Method != "POST" {
		t.Errorf("an HTTP function with another output went to %s %s", got.Method, got.URI)
	}
}

func TestAWrappedRequest(t *testing.T) {
	t.Parallel()
	r := app{functions: map[string]string{"web": web(`,"authLevel":"anonymous"`)}}.start(t)
	type request struct {
		Url, Method, Body string
		Query             map[string]string
		Headers           map[string][]string
		Identities        []any
	}
	cases := []struct {
		name        string
		contentType string
		body        string
		wantBody    string
	}{
		{"text stays text", "application/json", `{"a":1}`, `{"a":1}`},
		{"bytes become base64", "application/octet-stream", "hi", "aGk="},
		{"no body", "", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r.do(t, "POST", "/api/web?x=1&x=2&y=", c.body, http.Header{"Content-Type": {c.contentType}})
			var got request
			if err := json.Unmarshal(r.lastSeen(t).payload(t).Data["req"], &got); err != nil {
				t.Fatal(err)
			}
			if got.Url != r.URL()+"/api/web?x=1&x=2&y=" || got.Method != "POST" || got.Body != c.wantBody {
				t.Errorf("got %+v", got)
			}
			if got.Query["x"] != "1,2" || len(got.Query) != 2 || !slices.Equal(got.Headers["Content-Type"], []string{c.contentType}) || len(got.Identities) != 1 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAWrappedResponse(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name            string
		output          string // name of the binding
		answer          string
		want            int
		wantBody        string
		wantContentType string
	}{
		{"status as text, body and headers", "res", `{"Outputs":{"res":{"statusCode":"201","body":"made","headers":{"Content-Type":"text/html"}}}}`, 201, "made", "text/html"},
		{"status as number", "res", `{"Outputs":{"res":{"status":404,"body":"no"}}}`, 404, "no", "text/plain; charset=utf-8"},
		{"a body of JSON", "res", `{"Outputs":{"res":{"body":{"a":1}}}}`, 200, `{"a":1}`, "application/json; charset=utf-8"},
		{"text is not taken for base64", "res", `{"Outputs":{"res":{"body":"abcd"}}}`, 200, "abcd", "text/plain; charset=utf-8"},
		{"no output", "res", `{}`, 200, "", ""},
		{"as ReturnValue", "$return", `{"ReturnValue":{"statusCode":"202","body":"soon"}}`, 202, "soon", "text/plain; charset=utf-8"},
		{"a failed invocation is a 500", "res", `[]`, 500, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			function := strings.Replace(web(`,"authLevel":"anonymous"`), `"name":"res"`, `"name":"`+c.output+`"`, 1)
			r := app{functions: map[string]string{"web": function}, settings: map[string]string{"ANSWER": c.answer}}.start(t)
			got := r.do(t, "GET", "/api/web", "", nil)
			if got.status != c.want || got.body != c.wantBody || got.header.Get("Content-Type") != c.wantContentType {
				t.Errorf("got %d %q of type %q", got.status, got.body, got.header.Get("Content-Type"))
			}
		})
	}
}

func TestAHandlerThatDiesIsA500(t *testing.T) {
	t.Parallel()
	r := app{host: forwardHost, functions: map[string]string{"web": web(`,"authLevel":"anonymous"`), "exit": hourlyFunction}, settings: map[string]string{"EXIT_CODE": "0"}}.start(t)
	if _, err := r.Timer(t.Context(), "exit", functionshost.Tick{}); err == nil {
		t.Fatal("an invocation whose handler died succeeded")
	}
	_ = r.awaitEnd(t)
	if got := r.do(t, "GET", "/api/web", "", nil); got.status != http.StatusInternalServerError {
		t.Errorf("got %d", got.status)
	}
}

func TestAdminRunsAFunctionByHand(t *testing.T) {
	t.Parallel()
	r := app{
		host:      bundleHost,
		functions: map[string]string{"poll": timerFunction, "take": queueFunction, "web": web(``)},
		settings:  map[string]string{"BUS": "Endpoint=sb://localhost"},
	}.start(t)
	master := http.Header{"X-Functions-Key": {r.MasterKey()}, "Content-Type": {"application/json"}}
	cases := []struct {
		name     string
		function string
		body     string
		header   http.Header
		want     int
		wantURI  string // that the handler gets
	}{
		{"a timer function", "poll", `{"input":""}`, master, 202, "/poll"},
		{"a queue function", "take", `{"input":"hi"}`, master, 202, "/take"},
		{"a function that is not there", "none", `{"input":""}`, master, 404, ""},
		{"without a key", "poll", `{"input":""}`, http.Header{"Content-Type": {"application/json"}}, 401, ""},
		{"with the function's key", "poll", `{"input":""}`, http.Header{"Content-Type": {"application/json"}, "X-Functions-Key": {r.Key("poll")}}, 403, ""},
		{"with a key of nothing", "poll", `{"input":""}`, http.Header{"Content-Type": {"application/json"}, "X-Functions-Key": {"wrong"}}, 401, ""},
		{"without a content type", "poll", `{"input":""}`, http.Header{"X-Functions-Key": {r.MasterKey()}}, 415, ""},
		{"without a body", "poll", ``, master, 400, ""},
		{"an HTTP function", "web", `{"input":""}`, master, 501, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := r.do(t, "POST", "/admin/functions/"+c.function, c.body, c.header); got.status != c.want {
				t.Errorf("got %d, want %d: %s", got.status, c.want, got.body)
			}
			if c.wantURI != "" {
				testworld.Eventually(t, "the invocation", func() bool {
					return slices.ContainsFunc(r.seen(t), func(s seen) bool { return s.URI == c.wantURI })
				})
			}
		})
	}
}
