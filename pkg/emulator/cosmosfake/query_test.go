package cosmosfake_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func query(text string, parameters ...string) map[string]any {
	list := []map[string]any{}
	for i := 0; i+1 < len(parameters); i += 2 {
		list = append(list, map[string]any{"name": parameters[i], "value": parameters[i+1]})
	}
	return map[string]any{"query": text, "parameters": list}
}

// everywhere lets the gateway ask all ranges.
func everywhere(more ...string) headers {
	return append(headers{"Content-Type", "application/query+json", "x-ms-documentdb-isquery", "True", "x-ms-documentdb-query-enablecrosspartition", "true"}, more...)
}

// drain reads all pages of a query. meanwhile runs between two pages.
func (c *client) drain(h headers, q any, meanwhile func(page int)) (results []string, pages int) {
	c.t.Helper()
	token := ""
	for {
		r := c.expect(c.do("POST", "dbs/db/colls/c/docs", append(slices.Clone(h), "x-ms-continuation", token, "x-ms-cosmos-sdk-supportedcapabilities", "1"), q), "200")
		var page struct {
			Documents []json.RawMessage
			Count     int `json:"_count"`
		}
		c.decode(r, &page)
		if page.Count != len(page.Documents) {
			c.t.Errorf("_count is %d for %d documents", page.Count, len(page.Documents))
		}
		for _, d := range page.Documents {
			results = append(results, string(d))
		}
		pages++
		if token = r.header.Get("x-ms-continuation"); token == "" {
			return results, pages
		}
		meanwhile(pages)
	}
}

func nothing(int) {}

func filled(t *testing.T, partitions, documents int) (*cosmosfake.Server, *client) {
	t.Helper()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Partitions: partitions})
	for i := range documents {
		testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprintf("lease..%03d", i), "n", i)))
	}
	return s, newClient(t, s)
}

func TestAQueryIsReadPageByPage(t *testing.T) {
	t.Parallel()
	s, c := filled(t, 3, 50)
	testworld.Must(t, s.Upsert("db", "c", doc("other")))
	q := query("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, @p)", "@p", "lease..")
	results, pages := c.drain(everywhere("x-ms-max-item-count", "7"), q, nothing)
	slices.Sort(results)
	if len(slices.Compact(results)) != 50 || pages < 8 {
		t.Errorf("%d results on %d pages", len(results), pages)
	}
	results, pages = c.drain(everywhere("x-ms-max-item-count", "-1"), q, nothing)
	if len(results) != 50 || pages != 1 {
		t.Errorf("%d results on %d pages", len(results), pages)
	}
	s.Control(cosmosfake.Times(2, cosmosfake.QueryDocuments, cosmosfake.Answer{EmptyPage: true}))
	results, pages = c.drain(everywhere("x-ms-max-item-count", "-1"), q, nothing)
	if len(results) != 50 || pages != 3 {
		t.Errorf("with empty pages: %d results on %d pages", len(results), pages)
	}
	results, _ = c.drain(everywhere("x-ms-max-item-count", "4"), query("SELECT TOP 10 * FROM c"), nothing)
	if len(results) != 10 {
		t.Errorf("TOP 10 has %d results", len(results))
	}
	total := 0
	for _, id := range []string{"0", "1", "2"} {
		results, _ := c.drain(headers{"Content-Type", "application/query+json", "x-ms-documentdb-partitionkeyrangeid", id, "x-ms-max-item-count", "3"}, query("SELECT * FROM c"), nothing)
		total += len(results)
	}
	if total != 51 {
		t.Errorf("the ranges have %d documents", total)
	}
}

func TestAWindowOfResultsInOneRange(t *testing.T) {
	t.Parallel()
	_, c := filled(t, 1, 9)
	for text, want := range map[string]string{
		"SELECT VALUE c.n FROM c OFFSET 2 LIMIT 3":                      "[2 3 4]",
		"SELECT VALUE c.n FROM c WHERE c.n > 3 OFFSET 4 LIMIT 9":        "[8]",
		"SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 2 LIMIT 3":    "[6 5 4]",
		"SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n DESC":               "[8 7 6 5]",
		"SELECT VALUE c.n FROM c WHERE c.n < 2 ORDER BY c.n":            "[0 1]",
		"SELECT VALUE AVG(c.n) FROM c":                                  "[4]",
		"SELECT VALUE c.n FROM c WHERE c.id = 'lease..003' OR c.n = 99": "[3]",
	} {
		if results, _ := c.drain(everywhere("x-ms-max-item-count", "2"), query(text), nothing); fmt.Sprint(results) != want {
			t.Errorf("%s: got %v, want %s", text, results, want)
		}
	}
}

func TestADocumentThatIsDeletedAndCreatedInOneTransactionIsNew(t *testing.T) {
	t.Parallel()
	s, c := filled(t, 1, 3)
	testworld.Must(t, s.Batch("db", "c", cosmosfake.Remove("lease..000", "lease..000"), cosmosfake.Put(doc("lease..000", "n", 9))))
	results, _ := c.drain(everywhere("x-ms-max-item-count", "1"), query("SELECT VALUE c.n FROM c"), nothing)
	if fmt.Sprint(results) != "[1 2 9]" {
		t.Errorf("got %v", results)
	}
}

func TestAQueryGoesOnThroughSplitsAndMerges(t *testing.T) {
	t.Parallel()
	s, c := filled(t, 2, 60)
	results, pages := c.drain(everywhere("x-ms-max-item-count", "5"), query("SELECT VALUE c.id FROM c"), func(page int) {
		ranges := c.ranges("c")
		var err error
		if page%2 == 1 {
			_, err = s.Split("db", "c", ranges[page%len(ranges)].ID)
		} else {
			_, err = s.Merge("db", "c", ranges[0].ID, ranges[1].ID)
		}
		testworld.Must(t, err)
	})
	slices.Sort(results)
	if len(slices.Compact(results)) != 60 {
		t.Errorf("%d different results on %d pages", len(slices.Compact(results)), pages)
	}
}

func TestTheGatewayRefusesWhatNeedsAClient(t *testing.T) {
	t.Parallel()
	_, c := filled(t, 2, 4)
	narrow := func(more ...string) headers {
		return append(headers{"Content-Type", "application/query+json"}, more...)
	}
	cases := []struct {
		name    string
		headers headers
		query   string
		want    string
	}{
		{"all ranges, not allowed", narrow(), "SELECT * FROM c", "400"},
		{"all ranges", everywhere(), "SELECT * FROM c", "200"},
		{"one range", narrow("x-ms-documentdb-partitionkeyrangeid", "1"), "SELECT * FROM c ORDER BY c.n", "200"},
		{"a range that is gone", narrow("x-ms-documentdb-partitionkeyrangeid", "7"), "SELECT * FROM c", "410/1002"},
		{"a key in the header", narrow("x-ms-documentdb-partitionkey", pk("lease..001")), "SELECT VALUE COUNT(1) FROM c", "200"},
		{"a key in the condition", narrow(), "SELECT * FROM c WHERE c.n > 0 AND 'lease..001' = c.id", "200"},
		{"an order over all ranges", everywhere(), "SELECT * FROM c ORDER BY c.n", "400/1004"},
		{"an aggregate over all ranges", everywhere(), "SELECT VALUE COUNT(1) FROM c", "400/1004"},
		{"no query language", everywhere(), "SELECT * FRM c", "400"},
		{"a foreign continuation", everywhere("x-ms-continuation", "+RID:~x"), "SELECT * FROM c", "400"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if r := c.do("POST", "dbs/db/colls/c/docs", tc.headers, query(tc.query)); r.code() != tc.want {
				t.Errorf("got %s, want %s: %s", r.code(), tc.want, r.body)
			}
		})
	}
	r := c.do("POST", "dbs/db/colls/c/docs", everywhere(), query("SELECT * FRM c"))
	var fault struct{ Message string }
	c.decode(r, &fault)
	if want := `Message: {"errors":[{"severity":"Error","location":{"start":14,"end":14},"code":"SC1001"`; !strings.HasPrefix(fault.Message, want) {
		t.Errorf("message %s", fault.Message)
	}
}

func TestAPlanTellsTheClientWhatToDo(t *testing.T) {
	t.Parallel()
	_, c := filled(t, 2, 1)
	plan := func(text, features string) response {
		return c.do("POST", "dbs/db/colls/c/docs", headers{"Content-Type", "application/query+json", "x-ms-cosmos-is-query-plan-request", "True", "x-ms-cosmos-supported-query-features", features}, query(text))
	}
	var answer struct {
		QueryInfo   struct{ OrderBy []string }
		QueryRanges []struct{ Min, Max string }
	}
	c.decode(c.expect(plan("SELECT * FROM c ORDER BY c.n DESC", "OrderBy,Top"), "200"), &answer)
	if fmt.Sprint(answer) != "{{[Descending]} [{ FF}]}" {
		t.Errorf("plan %v", answer)
	}
	c.decode(c.expect(plan("SELECT * FROM c WHERE c.id = 'x'", ""), "200"), &answer)
	if r := answer.QueryRanges[0]; len(r.Min) != 32 || r.Max <= r.Min || len(answer.QueryRanges) != 1 {
		t.Errorf("ranges %v", answer.QueryRanges)
	}
	c.expect(plan("SELECT * FROM c ORDER BY c.n", "Top"), "400")
}

func TestAllDocumentsCanBeListed(t *testing.T) {
	t.Parallel()
	_, c := filled(t, 2, 9)
	total, token := 0, ""
	for {
		r := c.expect(c.do("GET", "dbs/db/colls/c/docs", headers{"x-ms-max-item-count", "2", "x-ms-continuation", token}, nil), "200")
		total += strings.Count(string(r.body), `"_etag"`)
		if token = r.header.Get("x-ms-continuation"); token == "" {
			break
		}
	}
	if total != 9 {
		t.Errorf("listed %d documents", total)
	}
}

func TestDatabasesAndContainersAreListedAndQueried(t *testing.T) {
	t.Parallel()
	s, c := filled(t, 1, 0)
	testworld.Must(t, s.CreateDatabase("other"))
	cases := []struct{ name, method, path, text, want string }{
		{"databases", "GET", "dbs", "", `"_count":2`},
		{"databases by query", "POST", "dbs", "SELECT * FROM c WHERE c.id = 'other'", `"_count":1`},
		{"containers", "GET", "dbs/db/colls", "", `"DocumentCollections":[{`},
		{"containers by query", "POST", "dbs/db/colls", "SELECT * FROM c WHERE c.id = 'x'", `"_count":0`},
		{"offers", "POST", "offers", "SELECT * FROM c WHERE c.offerResourceId = 'x'", `"_count":0`},
		{"scripts", "GET", "dbs/db/colls/c/sprocs", "", `"StoredProcedures":[]`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var body any
			h := headers{}
			if tc.text != "" {
				body, h = query(tc.text), everywhere()
			}
			if r := c.expect(c.do(tc.method, tc.path, h, body), "200"); !strings.Contains(string(r.body), tc.want) {
				t.Errorf("got %s, want %s in it", r.body, tc.want)
			}
		})
	}
}
