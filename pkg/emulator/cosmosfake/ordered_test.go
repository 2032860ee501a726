package cosmosfake_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// result is one row of a query that a plan rewrote.
type result struct {
	RID   string `json:"_rid"`
	Items []struct{ Item *int }
	Doc   struct{ ID string }
}

// stop is what an SDK remembers of an ordered query between two pages: the last row, its range, and
// that range's continuation.
type stop struct {
	value     *int
	rid       string
	low, high string
	token     string
}

// resume is the part of azure-cosmos-dotnet-v3's StreamingOrderByCrossPartitionQueryPipelineStage
// that goes on with an ordered query from nothing but a stop. Ranges left of the one it stopped in
// have given all rows of that value, ranges right of it none.
func (c *client) resume(direction string, at *stop, pageSize int) (rows []result, next *stop) {
	c.t.Helper()
	type source struct {
		keyRange
		token string
		rows  []result
	}
	var sources []source
	for _, r := range c.ranges("c") {
		body := map[string]any{"query": `SELECT c._rid, [{"item": c.n}] AS items, c AS doc FROM c WHERE (true) ORDER BY c.n ` + direction}
		token := ""
		var filter map[string]any
		if at != nil {
			filter = map[string]any{"value": []any{resumeValue(at.value)}, "exclude": false}
			switch {
			case r.Max != "FF" && at.low != "" && r.Max <= at.low:
				filter["exclude"] = true
			case r.Min < at.high && (at.low < r.Max):
				filter["rid"] = at.rid
				token = at.token
			}
			body["resumeFilter"] = filter
		}
		h := append(everywhere(), "x-ms-documentdb-partitionkeyrangeid", r.ID, "x-ms-max-item-count", fmt.Sprint(pageSize), "x-ms-continuation", token)
		answer := c.expect(c.do("POST", "dbs/db/colls/c/docs", h, body), "200")
		var page struct{ Documents []result }
		c.decode(answer, &page)
		if filter["rid"] != nil { // the SDK skips what it had itself
			page.Documents = slices.DeleteFunc(page.Documents, func(row result) bool {
				return compareRows(direction, row, at.value, at.rid) <= 0
			})
		}
		sources = append(sources, source{r, answer.header.Get("x-ms-continuation"), page.Documents})
	}
	for len(rows) < pageSize {
		best := -1
		for i, s := range sources {
			if len(s.rows) == 0 {
				// a page ran out: what comes next is not known before the next request
				if s.token != "" {
					return rows, next
				}
				continue
			}
			if best < 0 || compareValues(direction, s.rows[0].Items[0].Item, sources[best].rows[0].Items[0].Item) < 0 {
				best = i
			}
		}
		if best < 0 {
			return rows, nil
		}
		s := &sources[best]
		row := s.rows[0]
		s.rows = s.rows[1:]
		rows = append(rows, row)
		next = &stop{value: row.Items[0].Item, rid: row.RID, low: s.Min, high: s.Max}
		if len(s.rows) == 0 {
			next.token = s.token
		}
	}
	return rows, next
}

func resumeValue(v *int) any {
	if v == nil {
		return []any{}
	}
	return *v
}

// compareValues puts what has no value first.
func compareValues(direction string, a, b *int) int {
	number := func(v *int) int {
		if v == nil {
			return -1
		}
		return *v
	}
	order := cmp.Compare(number(a), number(b))
	if direction == "DESC" {
		return -order
	}
	return order
}

func compareRows(direction string, row result, value *int, rid string) int {
	order := compareValues(direction, row.Items[0].Item, value)
	if order == 0 {
		if order = cmp.Compare(serial(row.RID), serial(rid)); direction == "DESC" {
			order = -order
		}
	}
	return order
}

func serial(rid string) uint64 {
	b, _ := base64.StdEncoding.DecodeString(strings.ReplaceAll(rid, "-", "/"))
	return binary.LittleEndian.Uint64(b[8:])
}

func TestAnOrderGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	for _, direction := range []string{"ASC", "DESC"} {
		for _, split := range []bool{false, true} {
			t.Run(fmt.Sprint(direction, " split ", split), func(t *testing.T) {
				t.Parallel()
				s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Partitions: 3})
				c := newClient(t, s)
				const documents = 300
				for i := range documents {
					d := doc(fmt.Sprint(i))
					if i%7 != 0 { // some have no value, all others have equals in every range
						d["n"] = i % 10
					}
					testworld.Must(t, s.Upsert("db", "c", d))
				}
				var all []result
				var at *stop
				for page := 0; page == 0 || at != nil; page++ {
					if page > documents {
						t.Fatalf("%d rows of %d documents and no end", len(all), documents)
					}
					rows, next := c.resume(direction, at, 13)
					if len(rows) > 0 || next != nil {
						all = append(all, rows...)
					}
					if len(rows) == 0 && next == nil {
						break
					}
					at = next
					if split && page == 4 {
						_, err := s.Split("db", "c", "1")
						testworld.Must(t, err)
					}
				}
				seen := map[string]bool{}
				for i, row := range all {
					seen[row.Doc.ID] = true
					if i > 0 && compareValues(direction, all[i-1].Items[0].Item, row.Items[0].Item) > 0 {
						t.Errorf("row %d is out of order", i)
					}
				}
				if len(all) != documents || len(seen) != documents {
					t.Errorf("%d rows with %d of %d documents", len(all), len(seen), documents)
				}
			})
		}
	}
}

func TestAContinuationOfAnOrderHoldsForAnotherFilterToo(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	for i := range 10 {
		testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprint(i), "n", i/2)))
	}
	page := func(condition, token string) (string, string) {
		t.Helper()
		h := append(everywhere(), "x-ms-max-item-count", "3", "x-ms-continuation", token)
		r := c.expect(c.do("POST", "dbs/db/colls/c/docs", h, query("SELECT VALUE c.id FROM c WHERE "+condition+" ORDER BY c.n")), "200")
		var answer struct{ Documents []string }
		c.decode(r, &answer)
		return strings.Join(answer.Documents, " "), r.header.Get("x-ms-continuation")
	}
	first, token := page("true", "")
	// Meanwhile a document comes and one goes that were before: neither moves what is still to
	// come.
	testworld.Must(t, s.Upsert("db", "c", doc("new", "n", 0)))
	testworld.Must(t, s.Delete("db", "c", "1", "1"))
	second, token := page("c.n >= 1", token) // as @azure/cosmos asks (OrderByQueryRangeStrategy.js)
	third, token := page("true", token)
	rest, token := page("true", token)
	if got := fmt.Sprint(first, ", ", second, ", ", third, ", ", rest); got != "0 1 2, 3 4 5, 6 7 8, 9" || token != "" {
		t.Errorf("got %s, then %q", got, token)
	}
}

func TestResumeFilters(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	rids := map[string]string{}
	for _, text := range []string{`{"id":"none"}`, `{"id":"null","n":null}`, `{"id":"yes","n":true}`, `{"id":"one","n":1}`, `{"id":"one more","n":1}`, `{"id":"text","n":"1"}`} {
		r := c.expect(c.do("POST", "dbs/db/colls/c/docs", headers{"x-ms-documentdb-partitionkey", pk(idOf(t, text))}, text), "201")
		var d struct {
			RID string `json:"_rid"`
		}
		c.decode(r, &d)
		rids[idOf(t, text)] = d.RID
	}
	cases := []struct{ name, order, filter, want string }{
		{"at a value", "c.n", `{"value":[1],"exclude":false}`, "one,one more,text"},
		{"behind a value", "c.n", `{"value":[1],"exclude":true}`, "text"},
		{"at a document of a value", "c.n", `{"value":[1],"rid":"` + rids["one more"] + `","exclude":false}`, "one more,text"},
		{"at a value, downwards", "c.n DESC", `{"value":[1],"exclude":false}`, "one more,one,yes,null,none"},
		{"at a document of a value, downwards", "c.n DESC", `{"value":[1],"rid":"` + rids["one"] + `","exclude":false}`, "one,yes,null,none"},
		{"behind undefined", "c.n", `{"value":[[]],"exclude":true}`, "null,yes,one,one more,text"},
		{"at undefined, downwards", "c.n DESC", `{"value":[[]],"exclude":false}`, "none"},
		{"behind null", "c.n", `{"value":[null],"exclude":true}`, "yes,one,one more,text"},
		{"two orders", "c.n, c.id DESC", `{"value":[1,"one more"],"exclude":true}`, "one,text"},
		{"another number of values", "c.n", `{"value":[1,2],"exclude":true}`, "400"},
		{"no order", "", `{"value":[1],"exclude":true}`, "400"},
		{"no document's RID", "c.n", `{"value":[1],"rid":"x","exclude":true}`, "400"},
		{"the hash of an object", "c.n", `{"value":[{"type":"object","low":1,"high":2}],"exclude":true}`, "400"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			text := "SELECT VALUE c.id FROM c"
			if tc.order != "" {
				text += " ORDER BY " + tc.order
			}
			body := fmt.Sprintf(`{"query":%q,"resumeFilter":%s}`, text, tc.filter)
			r := c.do("POST", "dbs/db/colls/c/docs", everywhere(), body)
			var page struct{ Documents []string }
			got := r.code()
			if r.status == 200 {
				c.decode(r, &page)
				got = strings.Join(page.Documents, ",")
			}
			if got != tc.want {
				t.Errorf("got %s, want %s: %s", got, tc.want, r.body)
			}
		})
	}
	at := c.do("POST", "dbs/db/colls/c/docs", append(everywhere(), "x-ms-max-item-count", "1"), query("SELECT * FROM c")).header.Get("x-ms-continuation")
	if r := c.do("POST", "dbs/db/colls/c/docs", append(everywhere(), "x-ms-continuation", at), query("SELECT * FROM c ORDER BY c.n")); r.code() != "400" {
		t.Errorf("an order took the continuation of a query without one: %s", r.code())
	}
}

func idOf(t *testing.T, text string) string {
	t.Helper()
	var d struct{ ID string }
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d.ID
}

func TestANamedCountOverSeveralRanges(t *testing.T) {
	t.Parallel()
	_, c := filled(t, 3, 20)
	const text = "SELECT COUNT(1) AS n FROM c"
	c.expect(c.do("POST", "dbs/db/colls/c/docs", everywhere(), query(text)), "400/1004")
	const features = "Aggregate, NonValueAggregate"
	plan := func(text, features string) response {
		return c.do("POST", "dbs/db/colls/c/docs", headers{"Content-Type", "application/query+json", "x-ms-cosmos-is-query-plan-request", "True", "x-ms-cosmos-supported-query-features", features}, query(text))
	}
	refused := c.expect(plan(text, "Aggregate, MultipleAggregates"), "400")
	if !strings.Contains(string(refused.body), `which the calling client does not support:\\nNonValueAggregate`) {
		t.Errorf("body %s", refused.body)
	}
	var answer struct {
		QueryInfo struct{ RewrittenQuery string }
	}
	c.decode(c.expect(plan(text, features), "200"), &answer)
	total := 0
	for _, r := range c.ranges("c") {
		var page struct {
			Documents []struct {
				Payload struct{ N struct{ Item int } }
			}
		}
		h := append(everywhere(), "x-ms-documentdb-partitionkeyrangeid", r.ID)
		c.decode(c.expect(c.do("POST", "dbs/db/colls/c/docs", h, query(answer.QueryInfo.RewrittenQuery)), "200"), &page)
		total += page.Documents[0].Payload.N.Item
	}
	if total != 20 {
		t.Errorf("counted %d by %s", total, answer.QueryInfo.RewrittenQuery)
	}
	var whole struct{ Documents []struct{ N int } }
	one := headers{"Content-Type", "application/query+json", "x-ms-documentdb-partitionkeyrangeid", "0"}
	c.decode(c.expect(c.do("POST", "dbs/db/colls/c/docs", one, query(text)), "200"), &whole)
	if len(whole.Documents) != 1 || whole.Documents[0].N == 0 {
		t.Errorf("one range counts %+v", whole.Documents)
	}
	wrong := c.expect(c.do("POST", "dbs/db/colls/c/docs", everywhere(), query("SELECT c.id, COUNT(1) AS n FROM c")), "400")
	if !strings.Contains(string(wrong.body), "Compositions of aggregates and other expressions are not allowed.") {
		t.Errorf("body %s", wrong.body)
	}
}
