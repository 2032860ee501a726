package cosmosfake_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestUniqueKeysAreEnforcedWithinALogicalPartition(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{})
	c := newClient(t, s)
	const container = `{"id":"c","partitionKey":{"paths":["/k"],"version":2},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]},{"paths":["/a","/b/c"]}]}}`
	created := c.expect(c.do("POST", "dbs/db/colls", nil, container), "201")
	if !strings.Contains(string(created.body), `"uniqueKeys":[{"paths":["/mail"]},{"paths":["/a","/b/c"]}]`) {
		t.Errorf("container %s", created.body)
	}
	const docs = "dbs/db/colls/c/docs"
	key := func(k string, more ...string) headers {
		return append(headers{"x-ms-documentdb-partitionkey", pk(k)}, more...)
	}
	upsert := func(k string) headers { return key(k, "x-ms-documentdb-is-upsert", "True") }
	atomic := key("k", "x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True")
	steps := []struct {
		name, method, path string
		headers            headers
		body, want         string
	}{
		{"the first", "POST", docs, key("k"), `{"id":"1","k":"k","mail":"x","a":1,"b":{"c":1}}`, "201"},
		{"the same value", "POST", docs, key("k"), `{"id":"2","k":"k","mail":"x"}`, "409"},
		{"the same value in another logical partition", "POST", docs, key("l"), `{"id":"2","k":"l","mail":"x"}`, "201"},
		{"both values of a key of two", "POST", docs, key("k"), `{"id":"2","k":"k","mail":"y","a":1,"b":{"c":1}}`, "409"},
		{"one value of a key of two", "POST", docs, key("k"), `{"id":"2","k":"k","mail":"y","a":1,"b":{"c":2}}`, "201"},
		{"what is missing counts as null", "POST", docs, key("k"), `{"id":"3","k":"k"}`, "201"},
		{"and null there is but one", "POST", docs, key("k"), `{"id":"4","k":"k","mail":null,"a":9}`, "409"},
		{"an upsert that creates", "POST", docs, upsert("k"), `{"id":"4","k":"k","mail":"x","a":9}`, "409"},
		{"an upsert of the holder", "POST", docs, upsert("k"), `{"id":"1","k":"k","mail":"x","a":1,"b":{"c":1},"n":1}`, "200"},
		{"a replace", "PUT", docs + "/2", key("k"), `{"id":"2","k":"k","mail":"x"}`, "409"},
		{"a patch", "PATCH", docs + "/2", key("k"), `[{"op":"set","path":"/mail","value":"x"}]`, "409"},
		{"the holder gives it up", "PATCH", docs + "/1", key("k"), `[{"op":"set","path":"/mail","value":"z"}]`, "200"},
		{"so that another can have it", "PATCH", docs + "/2", key("k"), `[{"op":"set","path":"/mail","value":"x"}]`, "200"},
		{"two of one batch", "POST", docs, atomic, `[{"operationType":"Create","resourceBody":{"id":"5","k":"k","mail":"5","a":5}},{"operationType":"Create","resourceBody":{"id":"6","k":"k","mail":"5","a":6}}]`, "207"},
		{"a batch that swaps two values", "POST", docs, atomic, `[{"operationType":"Delete","id":"1"},{"operationType":"Replace","id":"2","resourceBody":{"id":"2","k":"k","mail":"z","a":1,"b":{"c":1}}}]`, "200"},
		{"a value whose document was deleted", "POST", docs, key("k"), `{"id":"1","k":"k","mail":"x","a":7}`, "201"},
	}
	for _, step := range steps {
		r := c.do(step.method, step.path, step.headers, step.body)
		if r.code() != step.want {
			t.Errorf("%s: got %s, want %s: %s", step.name, r.code(), step.want, r.body)
		}
		if step.want == "409" && !strings.Contains(string(r.body), "Unique index constraint violation.") {
			t.Errorf("%s: %s", step.name, r.body)
		}
	}
	_, err := s.Split("db", "c", "0")
	testworld.Must(t, err)
	c.expect(c.do("POST", docs, key("k"), `{"id":"after the split","k":"k","mail":"x","a":8}`), "409")
	c.expect(c.do("PUT", "dbs/db/colls/c", nil, strings.Replace(container, "/mail", "/other", 1)), "400")
	c.expect(c.do("PUT", "dbs/db/colls/c", nil, strings.Replace(container, `"id":"c"`, `"id":"c","defaultTtl":60`, 1)), "200")
	c.expect(c.do("POST", docs, key("k"), `{"id":"after the change","k":"k","mail":"x","a":8}`), "409")
}

func TestSharedThroughputReadsBackAndIsShared(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now})
	c := newClient(t, s)
	c.expect(c.do("POST", "dbs", headers{"x-ms-offer-throughput", "400"}, `{"id":"shared"}`), "201")
	c.expect(c.do("POST", "dbs", headers{"x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":4000}`}, `{"id":"scaled"}`), "201")
	var database struct {
		RID  string `json:"_rid"`
		Self string `json:"_self"`
	}
	c.decode(c.do("GET", "dbs/shared", nil, nil), &database)
	var found struct {
		Offers []struct {
			Resource string
			RID      string `json:"offerResourceId"`
			Content  struct{ OfferThroughput int }
		}
	}
	c.decode(c.expect(c.do("POST", "offers", everywhere(), query("SELECT * FROM c WHERE c.offerResourceId = @rid", "@rid", database.RID)), "200"), &found)
	if len(found.Offers) != 1 || found.Offers[0].Content.OfferThroughput != 400 || found.Offers[0].Resource != database.Self {
		t.Fatalf("offers of %+v: %+v", database, found)
	}
	for _, id := range []string{"a", "b"} { // 200 RU/s for each
		testworld.Must(t, s.CreateContainer("shared", byID(id)))
	}
	testworld.Must(t, s.CreateContainer("shared", cosmosfake.ContainerSpec{ID: "own", PartitionKey: []string{"/id"}, Throughput: 1000}))
	served := func(coll string) (n int) {
		for range 500 {
			if r := c.do("GET", "dbs/shared/colls/"+coll+"/docs", headers{"A-IM", "Incremental feed"}, nil); r.status == 304 {
				n++
			}
		}
		return n
	}
	if a, own := served("a"), served("own"); a != 200 || own != 500 {
		t.Errorf("served %d reads of the 200 of a share, %d of 500 of a throughput of its own", a, own)
	}
}

func TestWhatIsNotOfferedIsRefusedByName(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	cases := []struct {
		name, method, path string
		headers            headers
		body, want         string
	}{
		{"computed properties", "POST", "dbs/db/colls", nil, `{"id":"x","partitionKey":{"paths":["/id"]},"computedProperties":[{"name":"n","query":"SELECT VALUE 1 FROM c"}]}`, "computedProperties"},
		{"materialized views", "POST", "dbs/db/colls", nil, `{"id":"x","partitionKey":{"paths":["/id"]},"materializedViewDefinition":{}}`, "materializedViewDefinition"},
		{"keys of version 1", "POST", "dbs/db/colls", nil, `{"id":"x","partitionKey":{"paths":["/id"],"version":1}}`, "version 1"},
		{"a unique key of no path", "POST", "dbs/db/colls", nil, `{"id":"x","partitionKey":{"paths":["/id"]},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["mail"]}]}}`, "mail"},
		{"triggers", "POST", "dbs/db/colls/c/docs", headers{"x-ms-documentdb-partitionkey", pk("a"), "x-ms-documentdb-pre-trigger-include", "check"}, `{"id":"a"}`, "triggers"},
		{"users", "POST", "dbs/db/users", nil, `{"id":"u"}`, "users"},
		{"permissions", "GET", "dbs/db/users/u/permissions", nil, ``, "permissions"},
		{"stored procedures", "POST", "dbs/db/colls/c/sprocs", nil, `{"id":"p"}`, "sprocs"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := c.do(tc.method, tc.path, tc.headers, tc.body)
			if r.code() != "400" || !strings.Contains(string(r.body), tc.want) {
				t.Errorf("got %s, want 400 that names %s: %s", r.code(), tc.want, r.body)
			}
		})
	}
}
