package cosmosfake_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestAControlFunctionSeesEveryRequestAndAnswersWhatItLikes(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	testworld.Must(t, s.Upsert("db", "c", doc("a")))
	var seen []string
	removeWatch := s.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		seen = append(seen, string(r.Kind)+" "+r.Database+"/"+r.Container+"/"+r.Document+" "+r.RangeID+" "+r.Region)
		return nil
	})
	r, changes := c.feed("c", "0", "")
	if c.expect(r, "200"); ids(changes) != "a" {
		t.Errorf("got %s", ids(changes))
	}
	removeWatch()

	s.Control(cosmosfake.Times(2, cosmosfake.ReadChangeFeed, cosmosfake.Answer{Status: 429, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"7"}}}))
	for range 2 {
		r, _ := c.feed("c", "0", "")
		if c.expect(r, "429/3200"); r.header.Get("x-ms-retry-after-ms") != "7" {
			t.Errorf("headers %v", r.header)
		}
	}
	r, _ = c.feed("c", "0", "")
	c.expect(r, "200")

	s.Control(cosmosfake.Once(cosmosfake.ReadChangeFeed, cosmosfake.Answer{Status: 200, Body: `{"Documents":[`}))
	if r := c.do("GET", "dbs/db/colls/c/docs", headers{"A-IM", "Incremental Feed"}, nil); string(r.body) != `{"Documents":[` {
		t.Errorf("body %s", r.body)
	}
	// clients try a broken connection again
	mend := s.Control(cosmosfake.Times(100, cosmosfake.ReadContainer, cosmosfake.Answer{Break: true}))
	if _, err := c.try("GET", "dbs/db/colls/c", nil, nil); err == nil {
		t.Error("the connection was not broken")
	}
	mend()
	s.Control(cosmosfake.Once(cosmosfake.ReadContainer, cosmosfake.Answer{Delay: time.Millisecond}))
	c.expect(c.do("GET", "dbs/db/colls/c", nil, nil), "200")

	if want := "read change feed db/c/ 0 Local"; len(seen) != 1 || seen[0] != want {
		t.Errorf("saw %q, want %q", seen, want)
	}
}

func TestRequestsAreCountedAndBilled(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	total := 0.0
	for range 3 {
		r, _ := c.feed("c", "0", "")
		c.expect(r, "304")
		if r.header.Get("x-ms-request-charge") != "1" {
			t.Errorf("charge %s", r.header.Get("x-ms-request-charge"))
		}
		total++
	}
	got := s.Requests()
	if got.Requests[cosmosfake.ReadChangeFeed] != 3 || len(got.Requests) != 1 || got.Charge != total {
		t.Errorf("got %+v", got)
	}
}

func TestAnythingElseIsRefusedWithoutHarm(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	cases := []struct{ name, method, path, body, want string }{
		{"an unknown resource", "GET", "topology", "", "400"},
		{"a database that is not there", "GET", "dbs/no", "", "404"},
		{"a container that is not there", "GET", "dbs/db/colls/no", "", "404"},
		{"a document that is no JSON", "POST", "dbs/db/colls/c/docs", "{", "400"},
		{"a document that is no object", "POST", "dbs/db/colls/c/docs", "[]", "400"},
		{"a body beyond two megabytes", "POST", "dbs/db/colls/c/docs", `{"id":"` + strings.Repeat("x", 2<<20) + `"}`, "413"},
		{"a container without a key", "POST", "dbs/db/colls", `{"id":"x"}`, "400"},
		{"a container that is there", "POST", "dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/id"]}}`, "409"},
		{"a database that is there", "POST", "dbs", `{"id":"db"}`, "409"},
		{"a database of no name", "POST", "dbs", `{}`, "400"},
		{"a name with a slash", "POST", "dbs", `{"id":"a/b"}`, "400"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := c.do(tc.method, tc.path, headers{"x-ms-documentdb-partitionkey", pk("a")}, tc.body)
			if r.code() != tc.want {
				t.Errorf("got %s, want %s: %s", r.code(), tc.want, r.body)
			}
			var fault struct{ Code, Message string }
			c.decode(r, &fault)
			if fault.Code == "" || !strings.HasPrefix(fault.Message, "Message: ") {
				t.Errorf("body %s", r.body)
			}
		})
	}
}
