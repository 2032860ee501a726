package cosmosfake_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestDocumentsFollowTheRulesOfTheService(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/a/b"}})
	c := newClient(t, s)
	const docs = "dbs/db/colls/c/docs"
	body := func(id, key string) string { return `{"id":"` + id + `","a":{"b":"` + key + `"},"n":1}` }
	key := func(k string, more ...string) headers {
		return append(headers{"x-ms-documentdb-partitionkey", pk(k)}, more...)
	}
	created := c.expect(c.do("POST", docs, key("k"), body("x", "k")), "201")
	etag := created.header.Get("etag")
	steps := []struct {
		name, method, path string
		headers            headers
		body, want         string
	}{
		{"an id is taken within its logical partition", "POST", docs, key("k"), body("x", "k"), "409"},
		{"the same id elsewhere is another document", "POST", docs, key("l"), body("x", "l"), "201"},
		{"an upsert creates", "POST", docs, key("k", "x-ms-documentdb-is-upsert", "True"), body("y", "k"), "201"},
		{"an upsert replaces", "POST", docs, key("k", "x-ms-documentdb-is-upsert", "true"), body("y", "k"), "200"},
		{"a key that is not the document's", "POST", docs, key("l"), body("z", "k"), "400/1001"},
		{"no key", "POST", docs, nil, body("z", "k"), "400"},
		{"a key of too many components", "POST", docs, headers{"x-ms-documentdb-partitionkey", pk("a", "b")}, body("z", "a"), "400/1001"},
		{"a key that is no array", "POST", docs, headers{"x-ms-documentdb-partitionkey", "k"}, body("z", "k"), "400"},
		{"no id", "POST", docs, key("k"), `{"a":{"b":"k"}}`, "400"},
		{"an id with a slash", "POST", docs, key("k"), body("a/b", "k"), "400"},
		{"a ttl of zero", "POST", docs, key("k"), `{"id":"z","ttl":0,"a":{"b":"k"}}`, "400"},
		{"undefined is a key", "POST", docs, headers{"x-ms-documentdb-partitionkey", "[{}]"}, `{"id":"none"}`, "201"},
		{"and is found by its empty form", "GET", docs + "/none", headers{"x-ms-documentdb-partitionkey", "[]"}, "", "200"},
		{"null is another", "GET", docs + "/none", headers{"x-ms-documentdb-partitionkey", "[null]"}, "", "404"},
		{"a read", "GET", docs + "/x", key("k"), "", "200"},
		{"an id with signs", "POST", docs, key("k"), body("ä b%..c", "k"), "201"},
		{"a read of what has not changed", "GET", docs + "/x", key("k", "If-None-Match", etag), "", "304"},
		{"a replace under a condition", "PUT", docs + "/x", key("k", "If-Match", etag), body("x", "k"), "200"},
		{"a condition that no longer holds", "PUT", docs + "/x", key("k", "If-Match", etag), body("x", "k"), "412"},
		{"an upsert under that condition", "POST", docs, key("k", "x-ms-documentdb-is-upsert", "true", "If-Match", etag), body("x", "k"), "412"},
		{"a delete under that condition", "DELETE", docs + "/x", key("k", "If-Match", etag), "", "412"},
		{"a replace may not rename", "PUT", docs + "/x", key("k"), body("renamed", "k"), "400"},
		{"a session that has not come so far", "GET", docs + "/x", key("k", "x-ms-session-token", "0:-1#999"), "", "404/1002"},
		{"a session of another range does not matter", "GET", docs + "/x", key("k", "x-ms-session-token", "7:-1#999,0:-1#1"), "", "200"},
		{"a delete", "DELETE", docs + "/x", key("k"), "", "204"},
		{"a second delete", "DELETE", docs + "/x", key("k"), "", "404"},
		{"a replace of what is not there", "PUT", docs + "/x", key("k"), body("x", "k"), "404"},
	}
	for _, step := range steps {
		if r := c.do(step.method, step.path, step.headers, step.body); r.code() != step.want {
			t.Errorf("%s: got %s, want %s: %s", step.name, r.code(), step.want, r.body)
		}
	}
}

func TestTheServiceAddsItsOwnPropertiesAndKeepsTheOrderOfTheOthers(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, byID("c"))
	c := newClient(t, s)
	var container struct {
		RID  string `json:"_rid"`
		Self string `json:"_self"`
	}
	c.decode(c.do("GET", "dbs/db/colls/c", nil, nil), &container)
	r := c.expect(c.do("POST", "dbs/db/colls/c/docs", headers{"x-ms-documentdb-partitionkey", pk("d")},
		`{"z": 1.50, "id": "d", "a": {"big": 12345678901234567890}, "_ts": 5, "_etag": "mine"}`), "201")
	var document struct {
		RID  string `json:"_rid"`
		Self string `json:"_self"`
		Etag string `json:"_etag"`
		TS   int64  `json:"_ts"`
	}
	c.decode(r, &document)
	if want := `{"z":1.50,"id":"d","a":{"big":12345678901234567890},"_rid":"` + document.RID; !strings.HasPrefix(string(r.body), want) {
		t.Errorf("body %s", r.body)
	}
	if document.Self != container.Self+"docs/"+document.RID+"/" || document.Etag != r.header.Get("etag") || document.TS != clock.now().Unix() {
		t.Errorf("document %+v of %+v", document, container)
	}
	if !strings.HasPrefix(document.RID, container.RID[:10]) || len(document.RID) != 24 || len(container.RID) != 12 {
		t.Errorf("RIDs %s and %s", container.RID, document.RID)
	}
	if got := r.header.Get("x-ms-session-token"); got != "0:-1#1" {
		t.Errorf("session token %s", got)
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	byRID := c.do("GET", strings.TrimSuffix(document.Self, "/"), headers{
		"x-ms-documentdb-partitionkey", pk("d"), "x-ms-date", date,
		"Authorization", sign(cosmosfake.WellKnownKey, "GET", "docs", strings.ToLower(document.RID), date),
	}, nil)
	if c.expect(byRID, "200"); string(byRID.body) != string(r.body) {
		t.Errorf("by RID: %s", byRID.body)
	}
	minimal := c.expect(c.do("PUT", "dbs/db/colls/c/docs/d", headers{"x-ms-documentdb-partitionkey", pk("d"), "Prefer", "return=minimal"}, doc("d")), "200")
	if len(minimal.body) != 0 {
		t.Errorf("minimal answer %s", minimal.body)
	}
}

func TestPatchesApplyInOrderOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	cases := []struct{ name, before, patch, code, want string }{
		{"set and increment", `"n":1`, `{"operations":[{"op":"set","path":"/s","value":"x"},{"op":"incr","path":"/n","value":2},{"op":"incr","path":"/n","value":2}]}`, "200", `"n":5,"s":"x"`},
		{"lists: add inserts, set replaces", `"l":[1,2,3]`, `[{"op":"add","path":"/l/1","value":9},{"op":"set","path":"/l/0","value":0},{"op":"add","path":"/l/-","value":4}]`, "200", `"l":[0,9,2,3,4]`},
		{"remove from a list in an object", `"o":{"l":[1,2]}`, `[{"op":"remove","path":"/o/l/0"}]`, "200", `"o":{"l":[2]}`},
		{"move", `"a":1`, `[{"op":"move","from":"/a","path":"/b"}]`, "200", `"b":1`},
		{"a condition that holds", `"n":1`, `{"condition":"from c where c.n = 1","operations":[{"op":"set","path":"/n","value":2}]}`, "200", `"n":2`},
		{"a condition that does not", `"n":1`, `{"condition":"from c where c.n = 3","operations":[{"op":"set","path":"/n","value":2}]}`, "412", `"n":1`},
		{"replace needs a property", `"n":1`, `[{"op":"set","path":"/n","value":7},{"op":"replace","path":"/m","value":2}]`, "400", `"n":1`},
		{"the id stays", `"n":1`, `[{"op":"set","path":"/id","value":"other"}]`, "400", `"n":1`},
		{"an unknown operation", `"n":1`, `[{"op":"frob","path":"/n"}]`, "400", `"n":1`},
		{"no operation", `"n":1`, `[]`, "400", `"n":1`},
		{"a path without slash", `"n":1`, `[{"op":"set","path":"n","value":1}]`, "400", `"n":1`},
		{"incrementing a text", `"n":"x"`, `[{"op":"incr","path":"/n","value":1}]`, "400", `"n":"x"`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			key := headers{"x-ms-documentdb-partitionkey", pk("d"), "x-ms-documentdb-is-upsert", "true"}
			c.do("POST", "dbs/db/colls/c/docs", key, `{"id":"d",`+tc.before+`}`)
			if r := c.do("PATCH", "dbs/db/colls/c/docs/d", key[:2], tc.patch); r.code() != tc.code {
				t.Fatalf("got %s, want %s: %s", r.code(), tc.code, r.body)
			}
			r := c.expect(c.do("GET", "dbs/db/colls/c/docs/d", key[:2], nil), "200")
			own := strings.Replace(string(r.body), `"id":"d",`, "", 1)
			if !strings.HasPrefix(own, "{"+tc.want+`,"_rid"`) {
				t.Errorf("got %s, want %s", own, tc.want)
			}
		})
	}
}

func TestABatchIsOneTransactionOrNone(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/k"}})
	c := newClient(t, s)
	atomic := headers{"x-ms-documentdb-partitionkey", pk("k"), "x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True"}
	good := `[{"operationType":"Create","resourceBody":{"id":"a","k":"k"}},{"operationType":"Upsert","resourceBody":{"id":"b","k":"k"}},
		{"operationType":"Replace","id":"a","resourceBody":{"id":"a","k":"k","n":2}},{"operationType":"Patch","id":"b","resourceBody":{"operations":[{"op":"set","path":"/n","value":3}]}}]`
	c.expect(c.do("POST", "dbs/db/colls/c/docs", atomic, good), "200")
	bad := `[{"operationType":"Delete","id":"a"},{"operationType":"Create","resourceBody":{"id":"b","k":"k"}},{"operationType":"Read","id":"b"}]`
	var results []struct{ StatusCode int }
	c.decode(c.expect(c.do("POST", "dbs/db/colls/c/docs", atomic, bad), "207"), &results)
	if results[0].StatusCode != 424 || results[1].StatusCode != 409 || results[2].StatusCode != 424 {
		t.Errorf("results %v", results)
	}
	r, changes := c.feed("c", "0", "", "x-ms-max-item-count", "1")
	if len(changes) != 2 || changes[0].LSN != 1 || changes[1].LSN != 1 || changes[0].N+changes[1].N != 5 {
		t.Errorf("changes %v", changes)
	}
	if r.header.Get("x-ms-session-token") != "0:-1#1" {
		t.Errorf("a batch that failed moved the range to %s", r.header.Get("x-ms-session-token"))
	}
	other := `[{"operationType":"Create","resourceBody":{"id":"a","k":"other"}}]`
	c.expect(c.do("POST", "dbs/db/colls/c/docs", atomic, other), "207")
	c.expect(c.do("POST", "dbs/db/colls/c/docs", atomic, `[]`), "400")
	bulk := headers{"x-ms-cosmos-is-batch-request", "True", "x-ms-documentdb-partitionkeyrangeid", "0"}
	mixed := `[{"operationType":"Delete","id":"none","partitionKey":["k"]},{"operationType":"Create","partitionKey":"[\"l\"]","resourceBody":{"id":"x","k":"l"}}]`
	c.decode(c.expect(c.do("POST", "dbs/db/colls/c/docs", bulk, mixed), "207"), &results)
	if len(results) != 2 || results[0].StatusCode != 404 || results[1].StatusCode != 201 {
		t.Errorf("results %v", results)
	}
}

func TestDocumentsExpire(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name       string
		defaultTTL int
		own        int // 0: none
		after      time.Duration
		gone       bool
	}{
		{"time to live switched off", 0, 1, time.Hour, false},
		{"switched on without a default, none of its own", -1, 0, time.Hour, false},
		{"its own, not yet", -1, 10, 9 * time.Second, false},
		{"its own, passed", -1, 10, 10 * time.Second, true},
		{"the container's default", 5, 0, 5 * time.Second, true},
		{"its own before the default", 5, 20, 10 * time.Second, false},
		{"never, despite the default", 5, -1, time.Hour, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			s := start(t, cosmosfake.Options{Now: clock.now}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, DefaultTTL: tc.defaultTTL})
			c := newClient(t, s)
			d := doc("d")
			if tc.own != 0 {
				d["ttl"] = tc.own
			}
			testworld.Must(t, s.Upsert("db", "c", d))
			clock.advance(tc.after)
			want, lsn := "200", "0:-1#1"
			if tc.gone {
				want, lsn = "404", "0:-1#2"
			}
			c.expect(c.do("GET", "dbs/db/colls/c/docs/d", headers{"x-ms-documentdb-partitionkey", pk("d")}, nil), want)
			r, changes := c.feed("c", "0", "")
			if (len(changes) == 0) != tc.gone || r.header.Get("x-ms-session-token") != lsn {
				t.Errorf("feed %v at %s", changes, r.header.Get("x-ms-session-token"))
			}
		})
	}
}

func TestAChangedTimeToLiveHoldsForDocumentsThatExist(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, byID("c"))
	c := newClient(t, s)
	testworld.Must(t, s.Upsert("db", "c", doc("d")))
	c.expect(c.do("PUT", "dbs/db/colls/c", nil, `{"id":"c","partitionKey":{"paths":["/id"]},"defaultTtl":60}`), "200")
	clock.advance(time.Minute)
	c.expect(c.do("GET", "dbs/db/colls/c/docs/d", headers{"x-ms-documentdb-partitionkey", pk("d")}, nil), "404")
}

func TestAContainerCreatedAnewIsAnotherContainer(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	rid := func() string {
		var container struct {
			RID string `json:"_rid"`
		}
		c.decode(c.expect(c.do("GET", "dbs/db/colls/c", nil, nil), "200"), &container)
		return container.RID
	}
	testworld.Must(t, s.Upsert("db", "c", doc("d")))
	old := rid()
	c.expect(c.do("DELETE", "dbs/db/colls/c", nil, nil), "204")
	c.expect(c.do("GET", "dbs/db/colls/c", nil, nil), "404")
	c.expect(c.do("POST", "dbs/db/colls", nil, `{"id":"c","partitionKey":{"paths":["/id"],"kind":"Hash"}}`), "201")
	if rid() == old {
		t.Error("the RID is the same")
	}
	read := headers{"x-ms-documentdb-partitionkey", pk("d")}
	c.expect(c.do("GET", "dbs/db/colls/c/docs/d", read, nil), "404")
	c.expect(c.do("GET", "dbs/db/colls/c/docs/d", append(read, "x-ms-cosmos-intended-collection-rid", old), nil), "400/1024")
	date := time.Now().UTC().Format(http.TimeFormat)
	byRID := func(resource string) headers {
		return headers{"x-ms-date", date, "Authorization", sign(cosmosfake.WellKnownKey, "GET", resource, strings.ToLower(old), date)}
	}
	for resource, path := range map[string]string{"colls": "dbs/db/colls/" + old, "docs": "dbs/db/colls/" + old + "/docs", "pkranges": "dbs/db/colls/" + old + "/pkranges"} {
		r := c.expect(c.do("GET", path, byRID(resource), nil), "404")
		if got := r.header.Get("x-ms-content-path") + r.header.Get("x-ms-alt-content-path"); got != "" {
			t.Errorf("%s of the old RID has the content path %s", resource, got)
		}
	}
}

func TestOffersShowAndChangeTheThroughput(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: 400}, byID("serverless"))
	c := newClient(t, s)
	c.expect(c.do("POST", "dbs/db/colls", headers{"x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":40000}`}, `{"id":"auto","partitionKey":{"paths":["/id"]}}`), "201")
	var offers struct {
		Offers []struct {
			Self    string `json:"_self"`
			Content struct {
				Throughput int                          `json:"offerThroughput"`
				Autopilot  *struct{ MaxThroughput int } `json:"offerAutopilotSettings"`
			}
		}
	}
	c.decode(c.expect(c.do("GET", "offers", nil, nil), "200"), &offers)
	if len(offers.Offers) != 2 || offers.Offers[0].Content.Autopilot.MaxThroughput != 40000 || offers.Offers[1].Content.Throughput != 400 {
		t.Fatalf("offers %+v", offers)
	}
	if r := c.do("GET", "dbs/db/colls/auto/pkranges", nil, nil); strings.Count(string(r.body), `"minInclusive"`) != 4 {
		t.Errorf("40000 RU/s have these ranges: %s", r.body)
	}
	self := strings.TrimSuffix(offers.Offers[1].Self, "/")
	signed := func(method string) headers {
		date := time.Now().UTC().Format(http.TimeFormat)
		return headers{"x-ms-date", date, "Authorization", sign(cosmosfake.WellKnownKey, method, "offers", strings.ToLower(strings.TrimPrefix(self, "offers/")), date)}
	}
	c.expect(c.do("PUT", self, signed("PUT"), `{"content":{"offerThroughput":100}}`), "400")
	c.expect(c.do("PUT", self, signed("PUT"), `{"content":{"offerThroughput":800}}`), "200")
	if r := c.expect(c.do("GET", self, signed("GET"), nil), "200"); !strings.Contains(string(r.body), `"offerThroughput":800`) {
		t.Errorf("offer %s", r.body)
	}
}

// offerOf finds a container's offer, as SDKs do, and returns its link and how to sign for it.
func (c *client) offerOf(coll string) (link string, signed func(method string, more ...string) headers) {
	c.t.Helper()
	var container struct {
		RID string `json:"_rid"`
	}
	c.decode(c.expect(c.do("GET", "dbs/db/colls/"+coll, nil, nil), "200"), &container)
	var found struct {
		Offers []struct {
			Self string `json:"_self"`
		}
	}
	c.decode(c.expect(c.do("POST", "offers", everywhere(), query("SELECT * FROM c WHERE c.offerResourceId = @rid", "@rid", container.RID)), "200"), &found)
	if len(found.Offers) != 1 {
		c.t.Fatalf("offers of %s: %v", coll, found)
	}
	link = strings.Trim(found.Offers[0].Self, "/")
	return link, func(method string, more ...string) headers {
		date := time.Now().UTC().Format(http.TimeFormat)
		return append(headers{"x-ms-date", date, "Authorization", sign(cosmosfake.WellKnownKey, method, "offers", strings.ToLower(strings.TrimPrefix(link, "offers/")), date)}, more...)
	}
}

func TestOffersAreReplacedWithinTheirBounds(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: 400, Partitions: 2})
	c := newClient(t, s)
	c.expect(c.do("POST", "dbs/db/colls", headers{"x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":4000}`}, `{"id":"auto","partitionKey":{"paths":["/id"]}}`), "201")
	c.expect(c.do("POST", "dbs/db/colls", headers{"x-ms-offer-throughput", "405"}, `{"id":"odd","partitionKey":{"paths":["/id"]}}`), "400")
	c.expect(c.do("POST", "dbs/db/colls", headers{"x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":900}`}, `{"id":"odd","partitionKey":{"paths":["/id"]}}`), "400")
	manual := func(n int) string { return fmt.Sprintf(`{"content":{"offerThroughput":%d}}`, n) }
	scaled := func(n int) string {
		return fmt.Sprintf(`{"content":{"offerThroughput":400,"offerAutopilotSettings":{"maxThroughput":%d}}}`, n)
	}
	const toAuto, toManual = "x-ms-cosmos-migrate-offer-to-autopilot", "x-ms-cosmos-migrate-offer-to-manual-throughput"
	steps := []struct {
		name, coll, body string
		headers          headers
		want             string // status, pending, minimum, throughput
	}{
		{"below the least", "fixed", manual(300), nil, "400"},
		{"not in steps of 100", "fixed", manual(450), nil, "400"},
		{"under a condition that does not hold", "fixed", manual(500), headers{"If-Match", "x"}, "412"},
		{"as much as the ranges serve", "fixed", manual(20000), nil, "200 false 400 20000/0"},
		{"more: pending until they are split", "fixed", manual(60000), nil, "202 true 600 60000/0"},
		{"back", "fixed", manual(20000), nil, "200 false 600 20000/0"},
		{"below a hundredth of the highest ever", "fixed", manual(500), nil, "400"},
		{"a hundredth of the highest ever", "fixed", manual(600), nil, "200 false 600 600/0"},
		{"autoscale without a migration", "fixed", scaled(4000), nil, "400"},
		{"a migration to autoscale", "fixed", manual(600), headers{toAuto, "true"}, "200 false 6000 600/6000"},
		{"a fixed one without a migration", "fixed", manual(600), nil, "400"},
		{"a migration to a fixed one", "auto", manual(400), headers{toManual, "true"}, "200 false 400 4000/0"},
		{"a migration back", "auto", manual(400), headers{toAuto, "true"}, "200 false 1000 400/4000"},
		{"another maximum", "auto", scaled(10000), nil, "200 false 1000 1000/10000"},
		{"not in steps of 1000", "auto", scaled(1500), nil, "400"},
		{"a maximum that is pending", "auto", scaled(20000), nil, "202 true 2000 2000/20000"},
	}
	for _, step := range steps {
		link, signed := c.offerOf(step.coll)
		r := c.do("PUT", link, signed("PUT", step.headers...), step.body)
		got := r.code()
		if r.status < 300 {
			var o struct {
				Content struct {
					Throughput int                         `json:"offerThroughput"`
					Autopilot  struct{ MaxThroughput int } `json:"offerAutopilotSettings"`
				}
			}
			again := c.expect(c.do("GET", link, signed("GET"), nil), "200")
			c.decode(again, &o)
			got = fmt.Sprintf("%d %s %s %d/%d", r.status, again.header.Get("x-ms-offer-replace-pending"), again.header.Get("x-ms-cosmos-min-throughput"), o.Content.Throughput, o.Content.Autopilot.MaxThroughput)
		}
		if got != step.want {
			t.Errorf("%s: got %s, want %s: %s", step.name, got, step.want, r.body)
		}
	}
	_, err := s.Split("db", "auto", "0")
	testworld.Must(t, err)
	link, signed := c.offerOf("auto")
	if r := c.do("GET", link, signed("GET"), nil); r.header.Get("x-ms-offer-replace-pending") != "false" {
		t.Errorf("still pending after the split: %s", r.body)
	}
}

func TestARangeServesNoMoreThanOneRangeCan(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Throughput: 60000})
	c := newClient(t, s)
	// a read costs 1025 RU
	testworld.Must(t, s.Upsert("db", "c", doc("d", "text", strings.Repeat("x", 1<<20))))
	served := 0
	for range 20 {
		if r := c.do("GET", "dbs/db/colls/c/docs/d", headers{"x-ms-documentdb-partitionkey", pk("d")}, nil); r.status == 200 {
			served++
		}
	}
	if served != 10 {
		t.Errorf("one range served %d RU in a second", served*1025)
	}
}

func TestAServerlessAccountHasNoOffers(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{Serverless: true}, byID("c"))
	c := newClient(t, s)
	for _, r := range []response{
		c.do("GET", "offers", nil, nil),
		c.do("POST", "offers", everywhere(), query("SELECT * FROM c")),
		c.do("GET", "offers/abcd", nil, nil),
	} {
		if c.expect(r, "400"); !strings.Contains(string(r.body), "Reading or replacing offers is not supported for serverless accounts.") {
			t.Errorf("body %s", r.body)
		}
	}
	for path, body := range map[string]string{"dbs": `{"id":"x"}`, "dbs/db/colls": `{"id":"x","partitionKey":{"paths":["/id"]}}`} {
		r := c.expect(c.do("POST", path, headers{"x-ms-offer-throughput", "400"}, body), "400")
		if !strings.Contains(string(r.body), "not supported for serverless accounts.") {
			t.Errorf("body %s", r.body)
		}
		c.expect(c.do("POST", path, nil, body), "201")
	}
}

func TestARangeServesItsShareOfTheThroughput(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Throughput: 400, Partitions: 100})
	c := newClient(t, s)
	served := 0
	var last response
	for range 10 {
		if last, _ = c.feed("c", "0", ""); last.status == 304 {
			served++
		}
	}
	if served != 4 || last.code() != "429/3200" || last.header.Get("x-ms-retry-after-ms") == "" {
		t.Errorf("4 RU/s served %d reads, then %s", served, last.code())
	}
	if !strings.Contains(string(last.body), "Request rate is large. More Request Units may be needed, so no changes were made.") {
		t.Errorf("body %s", last.body)
	}
	other, _ := c.feed("c", "1", "")
	c.expect(other, "304")
	c.expect(c.do("GET", "dbs/db/colls/c", nil, nil), "200")
	clock.advance(time.Second / 2) // brings 2 RU
	served = 0
	for range 10 {
		if r, _ := c.feed("c", "0", ""); r.status == 304 {
			served++
		}
	}
	if served != 2 {
		t.Errorf("half a second later it served %d reads", served)
	}
}
