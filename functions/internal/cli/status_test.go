package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
)

// told is the JSON of status.
type told struct {
	report.List
	Problems []struct{ Name, Kind, Says, Do, Page string }
}

func TestStatusSaysWhatThePollerLeft(t *testing.T) {
	t.Parallel()
	w, clock, p := watching(t)
	w.Write(testworld.Orders, 25)
	p.alsoMissing("")
	never := p.run(t, "status", "orders")
	if never.Status != 1 || !strings.Contains(never.Stdout, "orders: it was never polled") {
		t.Errorf("before the first poll: %+v", never)
	}
	p.leavesNoFile(t)
	if r := p.run(t, "poll"); r.Status != 1 {
		t.Fatalf("%+v", r)
	}
	clock.Advance(5 * time.Second)

	if r := p.run(t, "status", "orders"); r.Status != 0 || !strings.Contains(r.Stdout, "5s ago") || strings.Contains(r.Stdout, "missing") {
		t.Errorf("a processor that is known: %+v", r)
	}
	r := p.run(t, "status")
	if r.Status != 1 || r.Stderr != "" || !strings.Contains(r.Stdout, "missing: it could not be measured") || strings.Index(r.Stdout, "missing") > strings.Index(r.Stdout, "orders") {
		t.Errorf("one that is unknown: %+v", r)
	}
	all := testworld.Decode[told](t, []byte(p.run(t, "status", "--output", "json").Stdout))
	if len(all.Processors) != 2 || all.Processors[0].Name != "missing" || len(all.Problems) != 1 || all.Problems[0].Name != "missing" || *all.Processors[1].Partitions[0].CheckpointLSN != 0 {
		t.Errorf("%+v", all)
	}
	if r := p.run(t, "status", "ordes"); r.Status != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, `no processor or group is named "ordes"`) || !strings.Contains(r.Stderr, "did you mean orders?") {
		t.Errorf("another name: %+v", r)
	}
	clock.Advance(time.Hour)
	if r := p.run(t, "status", "orders"); r.Status != 1 || !strings.Contains(r.Stdout, "it was last polled at 2026-03-01 12:00 UTC") {
		t.Errorf("where the poller is gone: %+v", r)
	}
}

func TestStatusAsksAFeedscaleThatRunsElsewhere(t *testing.T) {
	t.Parallel()
	answer := func(status int, contentType, body string) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/processors" || r.Header.Get("x-functions-key") != "k-1" {
				t.Errorf("it was asked for %s with %v", r.URL, r.Header)
			}
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			if r.FormValue("name") == "nobody" {
				body = `{"processors":[],"groups":[]}`
			}
			_, err := w.Write([]byte(body))
			testworld.Must(t, err)
		}))
		t.Cleanup(server.Close)
		return server
	}
	const orders = `{"time":"2026-03-01T12:00:00Z","processors":[{"name":"orders","status":"ok","lag":0,"complete":true,"desiredReplicas":2,"direction":"none","attemptedAt":"2026-03-01T11:59:50Z"}],"groups":[]}`
	for _, c := range []struct {
		rule, contentType, body string
		answers                 int
		args                    []string
		status                  int
		says                    string
	}{
		{"it tells", "application/json", orders, 200, nil, 0, "orders     ok             2    0    -  10s ago"},
		{"it has no findings, which is not the same as none", "application/json", orders, 200, nil, 0, "has no findings: it is of an earlier release"},
		{"it has no such processor", "application/json", orders, 200, []string{"nobody"}, 2, `no processor or group is named "nobody"`},
		{"it refuses the key", "", "", 401, nil, 1, "refuses the key in FEEDSCALE_API_KEY"},
		{"it is another program", "text/html", "<html>", 200, nil, 1, "answers something else than feedscale"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			server := answer(c.answers, c.contentType, c.body)
			p := feedscale{settings: map[string]string{"FEEDSCALE_API_KEY": "k-1"}}
			byFlag := p.run(t, append([]string{"status", "--url", server.URL}, c.args...)...)
			p.settings["FEEDSCALE_URL"] = server.URL
			bySetting := p.run(t, append([]string{"status"}, c.args...)...)
			for _, r := range []testworld.Result{byFlag, bySetting} {
				if r.Status != c.status || !strings.Contains(r.Stdout+r.Stderr, c.says) {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

func TestWrongUsageOfStatusIsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--output", "xml"}, "allowed are table and json"},
		{[]string{"--url", "http://127.0.0.1:1", "--config", "p.yaml"}, "leave one of the two out"},
		{[]string{"--url", "app.example"}, "--url, or FEEDSCALE_URL"},
	} {
		if r := (feedscale{}).run(t, append([]string{"status"}, c.args...)...); r.Status != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, c.says) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}
