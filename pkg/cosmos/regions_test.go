package cosmos_test

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestRoute(t *testing.T) {
	t.Parallel()
	const (
		global = "https://shop.documents.azure.com:443"
		west   = "https://shop-westeurope.documents.azure.com:443"
		north  = "https://shop-northeurope.documents.azure.com:443"
	)
	const description = `{"writableLocations":[{"name":"West Europe","databaseAccountEndpoint":"` + west + `/"}],
		"readableLocations":[{"name":"West Europe","databaseAccountEndpoint":"` + west + `/"},{"name":"North Europe","databaseAccountEndpoint":"` + north + `/"}]}`
	now := time.Now()
	for _, c := range []struct {
		rule, own string
		broken    []string // out of order since a moment ago
		later     time.Duration
		want      []string
	}{
		{"without a region of our own, where the account's endpoint leads", "", nil, 0, []string{global, west, north}},
		{"our own region first", "North Europe", nil, 0, []string{north, global, west}},
		{"as people write it", "northeurope", nil, 0, []string{north, global, west}},
		{"a region the account does not have", "East US", nil, 0, []string{global, west, north}},
		{"what is out of order is avoided", "northeurope", []string{north}, 0, []string{global, west}},
		{"and comes back", "northeurope", []string{north}, time.Minute, []string{north, global, west}},
		{"where everything is out of order, everything is tried", "northeurope", []string{north, global, west}, 0, []string{north, global, west}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := cosmos.NewRegions(global, c.own)
			if got := r.Route(now); !reflect.DeepEqual(got, []string{global}) {
				t.Errorf("before anything is known: %q", got)
			}
			r.Learn(description)
			for _, endpoint := range c.broken {
				r.MarkFailed(endpoint, now)
			}
			if got := r.Route(now.Add(c.later)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestARegionElsewhereIsNotAsked has an account name regions that its signature and its token must not reach.
func TestARegionElsewhereIsNotAsked(t *testing.T) {
	t.Parallel()
	const shop = "https://shop.documents.azure.com:443"
	for _, c := range []struct {
		rule, endpoint, region string
		asked                  bool
	}{
		{"of its own domain", shop, "https://shop-westeurope.documents.azure.com:443/", true},
		{"in any case", shop, "https://Shop-WestEurope.Documents.Azure.com/", true},
		{"in clear", shop, "http://shop-westeurope.documents.azure.com/", false},
		{"of another domain", shop, "https://shop-westeurope.documents.example.com/", false},
		{"of a domain that ends alike", shop, "https://shop.evildocuments.azure.com/", false},
		{"of a domain that begins alike", shop, "https://shop.documents.azure.com.example.com/", false},
		{"behind the name of a user", shop, "https://shop.documents.azure.com@example.com/", false},
		{"with the name of a user", shop, "https://user@shop-westeurope.documents.azure.com/", false},
		{"with a path", shop, "https://shop-westeurope.documents.azure.com/path", false},
		{"with a query", shop, "https://shop-westeurope.documents.azure.com?", false},
		{"that is no address", shop, "https://shop-westeurope.documents.azure.com:port/", false},
		{"of another cloud", shop, "https://shop-chinaeast.documents.azure.cn/", false},
		{"in China", "https://shop.documents.azure.cn", "https://shop-chinaeast.documents.azure.cn/", true},
		{"of a government", "https://shop.documents.azure.us", "https://shop-usgovvirginia.documents.azure.us/", true},
		{"of a dedicated gateway", "https://shop.sqlx.cosmos.azure.com", "https://shop-westeurope.sqlx.cosmos.azure.com/", true},
		{"of a dedicated gateway, elsewhere", "https://shop.sqlx.cosmos.azure.com", "https://example.com/", false},
		{"of what is not Azure's", "https://cosmos.example.com", "https://cosmos-west.example.org:8443/", true},
		{"of what is not Azure's, in clear", "https://cosmos.example.com", "http://cosmos.example.com/", false},
		{"of a stand-in, on other ports", "http://127.0.0.1:8081", "http://127.0.0.1:8082/", true},
		{"of a stand-in with TLS", "https://localhost:8081", "https://127.0.0.1:8082/", true},
		{"with another scheme", "http://127.0.0.1:8081", "file:///etc/", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := cosmos.NewRegions(c.endpoint, "")
			locations := `[{"name":"West Europe","databaseAccountEndpoint":"` + c.region + `"}]`
			r.Learn(`{"writableLocations":` + locations + `,"readableLocations":` + locations + `}`)
			want, writes := []string{c.endpoint}, c.endpoint
			if c.asked {
				writes = strings.TrimSuffix(c.region, "/")
				want = append(want, writes)
			}
			if got := r.Route(time.Now()); !slices.Equal(got, want) || r.Writable() != writes {
				t.Errorf("asks %q and writes to %q, want %q", got, r.Writable(), want)
			}
		})
	}
}

func TestFeedsAreReadNearbyAndElsewhereWhereThatIsOutOfOrder(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{Regions: []string{"West Europe", "North Europe", "East US"}})
	var mu sync.Mutex
	var asked []string
	broken := false
	server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Kind == cosmosfake.QueryDocuments:
			asked = append(asked, "leases in "+r.Region)
		case r.Kind == cosmosfake.ReadChangeFeed:
			asked = append(asked, "feed in "+r.Region)
			if broken && r.Region == "North Europe" {
				return &cosmosfake.Answer{Status: 503}
			}
		}
		return nil
	})
	a, err := cosmos.NewAccount(cosmos.Options{Endpoint: server.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 4, Region: "northeurope"})
	testworld.Must(t, err)
	read := func() []string {
		t.Helper()
		if _, _, err := a.Leases(t.Context(), orders, []string{"p.."}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.FeedPage(t.Context(), orders, changefeed.Position{Range: "0"}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return slices.Compact(asked)
	}
	if got, want := read(), []string{"leases in North Europe", "feed in North Europe"}; !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	mu.Lock()
	broken, asked = true, nil
	mu.Unlock()
	if got, want := read(), []string{"leases in North Europe", "feed in North Europe", "feed in West Europe"}; !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	mu.Lock()
	asked = nil
	mu.Unlock()
	if got, want := read(), []string{"leases in West Europe", "feed in West Europe"}; !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %q, want the region that is out of order left alone: %q", got, want)
	}
}

func TestARegionThatTheAccountDoesNotHaveIsTold(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{Regions: []string{"West Europe", "North Europe"}})
	for region, want := range map[string]string{
		"": "", "North Europe": "", "westeurope": "",
		"East US": `the account has no region "eastus": it has ["West Europe" "North Europe"]`,
	} {
		a, err := cosmos.NewAccount(cosmos.Options{Endpoint: server.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 1, Region: region})
		testworld.Must(t, err)
		got, err := a.ProbeAccount(t.Context())
		testworld.Must(t, err)
		if got != want {
			t.Errorf("%s: %q, want %q", region, got, want)
		}
	}
}
