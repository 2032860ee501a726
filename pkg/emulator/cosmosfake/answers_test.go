package cosmosfake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestScriptedRefusalsHaveTheServicesWords(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	cases := []struct {
		name       string
		answer     cosmosfake.Answer
		code, text string
	}{
		{"firewall", cosmosfake.FirewallForbids("20.1.2.3"), "403", "Request originated from IP 20.1.2.3 through public internet. This is blocked by your Cosmos DB account firewall settings. More info: https://aka.ms/cosmosdb-tsg-forbidden"},
		{"role", cosmosfake.RoleForbids(5301, "Microsoft.DocumentDB/databaseAccounts/readMetadata", "/"), "403/5301", "does not have required RBAC permissions to perform action [Microsoft.DocumentDB/databaseAccounts/readMetadata] on resource [/]."},
		{"identity", cosmosfake.IdentityForbids("GET", "offers"), "403/5300", "The given request [GET /offers] cannot be authorized by AAD token in data plane."},
		{"audience", cosmosfake.AudienceRefused("https://management.azure.com"), "401/5008", "Provided AAD token is intended for [https://management.azure.com]. This database account accepts tokens intended for ["},
		{"issuer", cosmosfake.IssuerRefused("https://sts.windows.net/x/", "y"), "401/5007", "Provided AAD token was issued by the authority [https://sts.windows.net/x/] which is not trusted by this database account."},
		{"keys", cosmosfake.KeysRefused(), "401/5202", "Local Authorization is disabled. Use an AAD token to authorize all requests."},
		{"several write regions", cosmosfake.StartTimeRefused(), "400", `StartTime/IfMofifiedSince is not currently supported when EnableMultipleWriteLocations is set.`},
		{"a range that is gone", cosmosfake.RangeGone(), "410/1002", "no longer available"},
		{"a range that is being split", cosmosfake.RangeSplitting(), "410/1007", "no longer available"},
		{"a range that is being moved", cosmosfake.RangeMigrating(), "410/1008", "no longer available"},
		{"a stale name", cosmosfake.NameStale(), "410/1000", "no longer available"},
		{"words of one's own", cosmosfake.Answer{Status: 503, Message: "come back later"}, "503", "come back later"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s.Control(cosmosfake.Once(cosmosfake.ReadChangeFeed, tc.answer))
			r, _ := c.feed("c", "0", "")
			var body struct{ Code, Message string }
			c.decode(r, &body)
			if r.code() != tc.code || !strings.Contains(body.Message, tc.text) || body.Code == "" {
				t.Errorf("got %s %s", r.code(), r.body)
			}
			if r, _ := c.feed("c", "0", ""); r.status != 304 {
				t.Errorf("the next read got %d", r.status)
			}
		})
	}
}

func TestAnyAnswerCanBeEmptyOrCutShort(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	testworld.Must(t, s.Upsert("db", "c", doc("a")))
	kinds := []struct {
		kind         cosmosfake.Kind
		method, path string
		headers      headers
		body         any
	}{
		{cosmosfake.ReadAccount, "GET", "", nil, nil},
		{cosmosfake.ReadContainer, "GET", "dbs/db/colls/c", nil, nil},
		{cosmosfake.ReadRanges, "GET", "dbs/db/colls/c/pkranges", nil, nil},
		{cosmosfake.ReadChangeFeed, "GET", "dbs/db/colls/c/docs", headers{"A-IM", "Incremental feed"}, nil},
		{cosmosfake.QueryDocuments, "POST", "dbs/db/colls/c/docs", everywhere(), query("SELECT * FROM c")},
		{cosmosfake.ListOffers, "GET", "offers", nil, nil},
	}
	for _, k := range kinds {
		t.Run(string(k.kind), func(t *testing.T) {
			send := func(a cosmosfake.Answer) (response, error) {
				t.Helper()
				// clients try a broken connection again
				defer s.Control(cosmosfake.Times(100, k.kind, a))()
				return c.try(k.method, k.path, k.headers, k.body)
			}
			for _, body := range []string{"", "{}", `{"Documents":[{"id`} {
				r, err := send(cosmosfake.Answer{Status: 200, Body: body})
				if err != nil || r.code() != "200" || string(r.body) != body {
					t.Errorf("%q: got %s %q, %v", body, r.code(), r.body, err)
				}
			}
			for _, a := range []cosmosfake.Answer{{CutShort: true}, {CutShort: true, Status: 200, Body: strings.Repeat("x", 100)}} {
				r, err := send(a)
				if err == nil || !strings.Contains(err.Error(), "unexpected EOF") || r.status != 200 || len(r.body) == 0 {
					t.Errorf("cut short: got %d %q, %v", r.status, r.body, err)
				}
			}
			r := c.expect(c.do(k.method, k.path, k.headers, k.body), "200")
			if len(r.body) < 20 {
				t.Errorf("afterwards got %s", r.body)
			}
		})
	}
}

func TestPriorityAndThroughputBucketAreSeen(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	var seen string
	s.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		seen = fmt.Sprint(r.Header.Get("x-ms-cosmos-priority-level"), " ", r.Header.Get("x-ms-cosmos-throughput-bucket"))
		return nil
	})
	r, _ := c.feed("c", "0", "", "x-ms-cosmos-priority-level", "Low", "x-ms-cosmos-throughput-bucket", "3")
	if c.expect(r, "304"); seen != "Low 3" {
		t.Errorf("saw %q", seen)
	}
}
