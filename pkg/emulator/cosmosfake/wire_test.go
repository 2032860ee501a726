package cosmosfake_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// What every answer has, and what is added to answers about a range's documents.
const (
	always     = "Content-Length Content-Type Date x-ms-activity-id x-ms-gatewayversion x-ms-request-charge x-ms-schemaversion x-ms-serviceversion"
	noBody     = "Date x-ms-activity-id x-ms-gatewayversion x-ms-request-charge x-ms-schemaversion x-ms-serviceversion"
	owner      = " x-ms-alt-content-path x-ms-content-path"
	progress   = " lsn x-ms-cosmos-llsn x-ms-cosmos-physical-partition-id x-ms-cosmos-quorum-acked-llsn x-ms-documentdb-partitionkeyrangeid x-ms-global-committed-lsn x-ms-number-of-read-regions x-ms-quorum-acked-lsn x-ms-session-token"
	written    = " etag x-ms-cosmos-item-llsn x-ms-item-lsn"
	count      = " x-ms-item-count"
	offerState = " etag x-ms-cosmos-min-throughput x-ms-offer-replace-pending"
)

// Clients look names up as they were sent: a name in another case is another name to them. So this
// reads the bytes of the answers, not what net/http makes of them.
func TestHeaderNamesAreSentInTheServicesCase(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{VersionRetention: time.Hour}, cosmosfake.ContainerSpec{ID: "two", PartitionKey: []string{"/id"}, Partitions: 2, Throughput: 20000}, byID("c"))
	testworld.Must(t, s.Upsert("db", "two", doc("a")))
	for i := range 3 {
		testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprint(i))))
	}
	key := func(id string, more ...string) headers {
		return append(headers{"x-ms-documentdb-partitionkey", pk(id)}, more...)
	}
	feed := func(more ...string) headers { return append(headers{"A-IM", "Incremental feed"}, more...) }
	asQuery := headers{"Content-Type", "application/query+json", "x-ms-documentdb-query-enablecrosspartition", "True"}
	const docs, three, all = "dbs/db/colls/c/docs", `{"query":"SELECT * FROM c ORDER BY c.id"}`, `{"query":"SELECT * FROM c"}`
	batch := `[{"operationType":"Create","resourceBody":{"id":"b"}}]`
	s.Control(cosmosfake.Once(cosmosfake.ReadOffer, cosmosfake.Answer{Status: 429, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"7"}, "retry-after": {"1"}}}))
	offer := offerLink(t, newClient(t, s))
	cases := []struct {
		kind         cosmosfake.Kind
		name         string
		method, path string
		headers      headers
		body         string
		status       int
		want         string
	}{
		{cosmosfake.ReadAccount, "the account", "GET", "", nil, "", 200, always},
		{cosmosfake.ReadAddresses, "direct mode", "GET", "/addresses/?$resolveFor=dbs", nil, "", 400, always},
		{cosmosfake.CreateDatabase, "a database is created", "POST", "dbs", nil, `{"id":"new"}`, 201, always},
		{cosmosfake.ReadDatabase, "a database", "GET", "dbs/new", nil, "", 200, always},
		{cosmosfake.ListDatabases, "all databases", "GET", "dbs", nil, "", 200, always + count},
		{cosmosfake.ListDatabases, "no database", "POST", "dbs", asQuery, `{"query":"SELECT * FROM c WHERE false"}`, 200, always + count},
		{cosmosfake.DeleteDatabase, "a database is deleted", "DELETE", "dbs/new", nil, "", 204, noBody},
		{cosmosfake.CreateContainer, "a container is created", "POST", "dbs/db/colls", nil, `{"id":"new","partitionKey":{"paths":["/id"]}}`, 201, always + owner + " etag"},
		{cosmosfake.ReadContainer, "a container", "GET", "dbs/db/colls/new", nil, "", 200, always + owner + " etag"},
		{cosmosfake.ReplaceContainer, "a container is replaced", "PUT", "dbs/db/colls/new", nil, `{"id":"new","partitionKey":{"paths":["/id"]},"defaultTtl":-1}`, 200, always + owner + " etag"},
		{cosmosfake.ListContainers, "all containers", "GET", "dbs/db/colls", nil, "", 200, always + owner + count},
		{cosmosfake.DeleteContainer, "a container is deleted", "DELETE", "dbs/db/colls/new", nil, "", 204, noBody + owner},
		{cosmosfake.ReadContainer, "a container that is gone", "GET", "dbs/db/colls/new", nil, "", 404, always},
		{cosmosfake.ListOffers, "all offers", "GET", "offers", nil, "", 200, always + count},
		{cosmosfake.ReadOffer, "an offer, throttled by a script", "GET", offer, nil, "", 429, always + " Retry-After x-ms-retry-after-ms x-ms-substatus"},
		{cosmosfake.ReadOffer, "an offer", "GET", offer, nil, "", 200, always + offerState},
		{cosmosfake.ReplaceOffer, "an offer is replaced", "PUT", offer, nil, `{"content":{"offerThroughput":20000}}`, 200, always + offerState},
		{cosmosfake.ReadRanges, "ranges", "GET", "dbs/db/colls/c/pkranges", nil, "", 200, always + owner + count + " etag"},
		{cosmosfake.ReadRanges, "no new ranges", "GET", "dbs/db/colls/c/pkranges", headers{"A-IM", "Incremental feed", "If-None-Match", `"1"`}, "", 304, noBody + owner + count + " etag"},
		{cosmosfake.CreateDocument, "a document is created", "POST", docs, key("d"), `{"id":"d"}`, 201, always + owner + progress + written},
		{cosmosfake.CreateDocument, "a document that is there", "POST", docs, key("d"), `{"id":"d"}`, 409, always + owner},
		{cosmosfake.CreateDocument, "a document under another key", "POST", docs, key("x"), `{"id":"d"}`, 400, always + owner + " x-ms-substatus"},
		{cosmosfake.UpsertDocument, "a document is upserted", "POST", docs, key("d", "x-ms-documentdb-is-upsert", "True"), `{"id":"d"}`, 200, always + owner + progress + written},
		{cosmosfake.ReadDocument, "a document", "GET", docs + "/d", key("d"), "", 200, always + owner + progress + written},
		{cosmosfake.ReadDocument, "a document that did not change", "GET", docs + "/d", key("d", "If-None-Match", "*"), "", 304, noBody + owner + progress + written},
		{cosmosfake.ReplaceDocument, "a document is replaced", "PUT", docs + "/d", key("d"), `{"id":"d"}`, 200, always + owner + progress + written},
		{cosmosfake.PatchDocument, "a document is patched", "PATCH", docs + "/d", key("d"), `[{"op":"set","path":"/n","value":1}]`, 200, always + owner + progress + written},
		{cosmosfake.DeleteDocument, "a document is deleted", "DELETE", docs + "/d", key("d"), "", 204, noBody + owner + progress + " x-ms-cosmos-item-llsn x-ms-item-lsn"},
		{cosmosfake.ExecuteBatch, "a batch", "POST", docs, key("b", "x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True"), batch, 200, always + owner + progress},
		{cosmosfake.ExecuteBatch, "a batch of .NET", "POST", docs, key("b", "x-ms-cosmos-is-batch-request", "True"), "\x81\xf0\xd8\xff\x7f", 400, always + owner},
		{cosmosfake.ListDocuments, "a list of documents that goes on", "GET", docs, headers{"x-ms-max-item-count", "1"}, "", 200, always + owner + progress + count + " x-ms-continuation"},
		{cosmosfake.ReadChangeFeed, "changes", "GET", docs, feed(), "", 200, always + owner + progress + count + " etag"},
		{cosmosfake.ReadChangeFeed, "no changes", "GET", docs, feed("If-None-Match", "*"), "", 304, noBody + owner + progress + count + " etag"},
		{cosmosfake.ReadChangeFeed, "changes of a range that is gone", "GET", docs, feed("x-ms-documentdb-partitionkeyrangeid", "9"), "", 410, always + owner + " x-ms-substatus"},
		{cosmosfake.QueryDocuments, "a query", "POST", docs, asQuery, all, 200, always + owner + progress + count},
		{cosmosfake.QueryDocuments, "a query that goes on", "POST", docs, append(headers{"x-ms-max-item-count", "1"}, asQuery...), three, 200, always + owner + progress + count + " x-ms-continuation"},
		{cosmosfake.QueryDocuments, "a query without results", "POST", docs, asQuery, `{"query":"SELECT * FROM c WHERE false"}`, 200, always + owner + progress + count},
		{cosmosfake.QueryDocuments, "a query that needs a plan", "POST", "dbs/db/colls/two/docs", asQuery, three, 400, always + owner + " x-ms-substatus"},
		{cosmosfake.PlanQuery, "a plan", "POST", "dbs/db/colls/two/docs", append(headers{"x-ms-cosmos-is-query-plan-request", "True", "x-ms-cosmos-supported-query-features", "OrderBy"}, asQuery...), three, 200, always + owner},
		{cosmosfake.ListScripts, "conflicts", "GET", "dbs/db/colls/c/conflicts", nil, "", 200, always + owner + count},
		{cosmosfake.ListScripts, "conflicts by query", "POST", "dbs/db/colls/c/conflicts", asQuery, all, 200, always + owner + count},
		{cosmosfake.Unknown, "users", "GET", "dbs/db/users", nil, "", 400, always},
		{cosmosfake.Unknown, "permissions", "GET", "dbs/db/users/u/permissions", nil, "", 400, always},
	}
	seen := map[cosmosfake.Kind]bool{}
	for _, tc := range cases {
		seen[tc.kind] = true
		status, got := rawAnswer(t, s, tc.method, tc.path, tc.headers, tc.body)
		want := strings.Fields(tc.want)
		slices.Sort(want)
		if status != tc.status || !slices.Equal(got, want) {
			t.Errorf("%s: status %d with\n%s\nwant %d with\n%s", tc.name, status, strings.Join(got, " "), tc.status, strings.Join(want, " "))
		}
	}
	for kind := range s.Requests().Requests {
		if !seen[kind] {
			t.Errorf("no case is of the kind %q", kind)
		}
	}
	if len(seen) != 28 {
		t.Errorf("%d kinds of answers were looked at", len(seen))
	}
}

// rawAnswer sends a request over a socket of its own and returns the answer's status and its header
// names, sorted and as they were sent.
func rawAnswer(t *testing.T, s *cosmosfake.Server, method, path string, h headers, body string) (status int, names []string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(s.Endpoint(), "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	date := time.Now().UTC().Format(http.TimeFormat)
	resource, link := signedParts(path)
	if resource == "offers" {
		link = strings.ToLower(strings.TrimPrefix(link, "offers/"))
	}
	lines := []string{
		method + " /" + path + " HTTP/1.1", "Host: account", "x-ms-version: 2020-07-15", "x-ms-date: " + date,
		"Authorization: " + sign(cosmosfake.WellKnownKey, method, resource, link, date), fmt.Sprint("Content-Length: ", len(body)),
	}
	for i := 0; i+1 < len(h); i += 2 {
		lines = append(lines, h[i]+": "+h[i+1])
	}
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"+body); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(conn)
	for in.Scan() && in.Text() != "" {
		if name, _, ok := strings.Cut(in.Text(), ":"); ok {
			names = append(names, name)
		} else if _, err := fmt.Sscanf(in.Text(), "HTTP/1.1 %d", &status); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return status, names
}

func offerLink(t *testing.T, c *client) string {
	t.Helper()
	var page struct {
		Offers []struct {
			Self string `json:"_self"`
		}
	}
	c.decode(c.expect(c.do("GET", "offers", nil, nil), "200"), &page)
	return strings.Trim(page.Offers[0].Self, "/")
}

func TestDirectModeIsToldToUseTheGateway(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{})
	c := newClient(t, s)
	r := c.do("GET", "/addresses/?$resolveFor=dbs%2fdb&$filter=protocol%20eq%20rntbd", headers{"Authorization", "type%3dmaster%26ver%3d1.0%26sig%3dAAAA"}, nil)
	if c.expect(r, "400"); !strings.Contains(string(r.body), "direct mode is not offered: use ConnectionMode.Gateway") {
		t.Errorf("body %s", r.body)
	}
}

func TestABatchInHybridRowIsRefusedByName(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := start(t, cosmosfake.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}, byID("c"))
	c := newClient(t, s)
	h := headers{"x-ms-documentdb-partitionkey", pk("a"), "x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True"}
	for range 2 {
		r := c.do("POST", "dbs/db/colls/c/docs", h, "\x81\xf0\xd8\xff\x7f\x00")
		if c.expect(r, "400"); !strings.Contains(string(r.body), "HybridRow is not offered") {
			t.Errorf("body %s", r.body)
		}
	}
	testworld.Must(t, s.Close()) // after which nothing logs
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "HybridRow is not offered") {
		t.Errorf("logged %q, want one line: .NET drops the body of the answer", log.String())
	}
}
