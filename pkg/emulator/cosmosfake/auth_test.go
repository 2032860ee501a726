package cosmosfake_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

func TestSignaturesAreChecked(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	c.expect(c.do("POST", "dbs/db/colls/c/docs", headers{"x-ms-documentdb-partitionkey", pk("a b")}, doc("a b")), "201")
	var database, container struct {
		RID string `json:"_rid"`
	}
	c.decode(c.do("GET", "dbs/db", nil, nil), &database)
	c.decode(c.do("GET", "dbs/db/colls/c", nil, nil), &container)
	now := time.Now().UTC()
	date := func(d time.Duration) string {
		return now.Add(d).Format(http.TimeFormat)
	}
	const link = "dbs/db/colls/c"
	read := func(date string) string { return sign(cosmosfake.WellKnownKey, "GET", "colls", link, date) }
	cases := []struct {
		name    string
		path    string
		headers headers
		want    string
	}{
		{"a right signature", link, nil, "200"},
		{"an unescaped header", link, headers{"Authorization", unescape(read(date(0))), "x-ms-date", date(0)}, "200"},
		{"a link in lower case", link, headers{"Authorization", sign(cosmosfake.WellKnownKey, "GET", "colls", strings.ToLower(link), date(0)), "x-ms-date", date(0)}, "200"},
		{"a link by RID, signed with the RID in lower case", "dbs/" + database.RID + "/colls/" + container.RID,
			headers{"Authorization", sign(cosmosfake.WellKnownKey, "GET", "colls", strings.ToLower(container.RID), date(0)), "x-ms-date", date(0)}, "200"},
		{"no header", link, headers{"Authorization", ""}, "401"},
		{"another key", link, headers{"Authorization", sign("AAAA", "GET", "colls", link, date(0)), "x-ms-date", date(0)}, "401"},
		{"another verb", link, headers{"Authorization", sign(cosmosfake.WellKnownKey, "PUT", "colls", link, date(0)), "x-ms-date", date(0)}, "401"},
		{"another resource", link, headers{"Authorization", sign(cosmosfake.WellKnownKey, "GET", "colls", "dbs/db/colls/d", date(0)), "x-ms-date", date(0)}, "401"},
		{"another date", link, headers{"Authorization", read(date(time.Second)), "x-ms-date", date(0)}, "401"},
		{"no date", link, headers{"x-ms-date", ""}, "401"},
		{"no version", link, headers{"x-ms-version", ""}, "400"},
		{"a date of ten minutes ago", link, headers{"Authorization", read(date(-10 * time.Minute)), "x-ms-date", date(-10 * time.Minute)}, "200"},
		{"a date of twenty minutes ago", link, headers{"Authorization", read(date(-20 * time.Minute)), "x-ms-date", date(-20 * time.Minute)}, "403"},
		{"a date in twenty minutes", link, headers{"Authorization", read(date(20 * time.Minute)), "x-ms-date", date(20 * time.Minute)}, "403"},
		{"no token type", link, headers{"Authorization", "ver=1.0&sig=x"}, "401"},
		{"a resource token", link, headers{"Authorization", "type=resource&ver=1&sig=x"}, "401"},
		{"a bearer token that nobody checks", link, headers{"Authorization", "type=aad&ver=1.0&sig=x"}, "401"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := c.do("GET", tc.path, tc.headers, nil)
			if r.code() != tc.want {
				t.Errorf("got %s, want %s: %s", r.code(), tc.want, r.body)
			}
			if strings.Contains(string(r.body), cosmosfake.WellKnownKey) {
				t.Error("the answer shows the key")
			}
		})
	}
}

func unescape(s string) string {
	return strings.NewReplacer("%3D", "=", "%26", "&", "%2B", "+", "%2F", "/").Replace(s)
}

func TestBearerTokensAreTheCallersBusiness(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{Token: func(bearer string) error {
		switch bearer {
		case "good":
			return nil
		case "weak":
			return fmt.Errorf("reader: %w", cosmosfake.ErrForbidden)
		}
		return errors.New("unknown issuer")
	}}, byID("c"))
	c := newClient(t, s)
	cases := []struct{ name, token, method, path, want string }{
		{"a genuine token", "good", "GET", "dbs/db/colls/c", "200"},
		{"no permission for metadata", "weak", "GET", "dbs/db/colls/c", "403/5301"},
		{"no permission for the account", "weak", "GET", "", "403/5301"},
		{"no permission for data", "weak", "GET", "dbs/db/colls/c/docs", "403/5302"},
		{"not genuine", "bad", "GET", "dbs/db/colls/c", "401"},
		{"identities create no containers", "good", "POST", "dbs/db/colls", "403/5300"},
		{"identities read no offers", "good", "GET", "offers", "403/5300"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			for _, header := range []string{"type=aad&ver=1.0&sig=" + tc.token, "type%3Daad%26ver%3D1.0%26sig%3D" + tc.token} {
				if r := c.do(tc.method, tc.path, headers{"Authorization", header}, nil); r.code() != tc.want {
					t.Errorf("got %s, want %s: %s", r.code(), tc.want, r.body)
				}
			}
		})
	}
}
