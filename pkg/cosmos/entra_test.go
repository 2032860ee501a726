package cosmos_test

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestTheScopeOfATokenIsTheAccounts(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"https://shop.documents.azure.com:443/":    "https://shop.documents.azure.com/.default",
		"https://shop.documents.azure.us:443/":     "https://shop.documents.azure.us/.default",
		"https://shop.documents.azure.cn/":         "https://shop.documents.azure.cn/.default",
		"https://shop.sqlx.cosmos.azure.com:443/":  "https://shop.documents.azure.com/.default",
		"https://shop.privatelink.documents.local": "https://shop.privatelink.documents.local/.default",
	} {
		u, err := url.Parse(endpoint)
		testworld.Must(t, err)
		if got := cosmos.OwnScope(u); got != want {
			t.Errorf("%s: %s, want %s", endpoint, got, want)
		}
	}
}

// tenant gives tokens for the scopes that it knows.
type tenant struct {
	known string

	mu    sync.Mutex
	asked []string
}

func (c *tenant) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, o.Scopes...)
	if o.Scopes[0] != c.known {
		return azcore.AccessToken{}, errors.New("AADSTS500011: The resource principal named " + o.Scopes[0] + " was not found in the tenant")
	}
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(time.Minute)}, nil
}

func TestATenantThatDoesNotKnowTheAccountIsAskedForCosmosDB(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{Token: func(string) error { return nil }})
	const own = "http://127.0.0.1/.default"
	for _, c := range []struct {
		rule, known, set string
		works            bool
		first            []string // scopes that are asked for first
	}{
		{"the account's own scope", own, "", true, []string{own}},
		{"where the tenant does not know it, that of Cosmos DB", cosmos.DefaultScope, "", true, []string{own, cosmos.DefaultScope}},
		{"the one that is set, and no other", "https://cosmos.example/.default", "https://cosmos.example/.default", true, []string{"https://cosmos.example/.default"}},
		{"none of them", "", "", false, []string{own, cosmos.DefaultScope}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			credential := &tenant{known: c.known}
			a, err := cosmos.NewAccount(cosmos.Options{Endpoint: server.Endpoint(), Setting: "COSMOS", Credential: credential, Scope: c.set, Concurrency: 1})
			testworld.Must(t, err)
			if _, _, err := a.Describe(t.Context(), orders); (err == nil) != c.works {
				t.Errorf("error %v", err)
			}
			if _, scope := a.Identity(); scope != c.first[0] {
				t.Errorf("the scope is %s", scope)
			}
			if got := credential.asked[:len(c.first)]; !reflect.DeepEqual(got, c.first) {
				t.Errorf("asked for %q, want %q", got, c.first)
			}
		})
	}
}

func TestWhatSignsRequestsTellsWhetherThereIsAToken(t *testing.T) {
	t.Parallel()
	const endpoint = "https://shop.documents.azure.com/"
	known := &tenant{known: cosmos.DefaultScope}
	a, err := cosmos.NewAccount(cosmos.Options{Endpoint: endpoint, Setting: "COSMOS", Credential: known, Concurrency: 1})
	testworld.Must(t, err)
	credential, _ := a.Identity()
	token, err := credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://other.example/.default"}})
	if want := []string{endpoint + ".default", cosmos.DefaultScope}; err != nil || token.Token != "token" || !reflect.DeepEqual(known.asked, want) {
		t.Errorf("asked for %q, %v; want %q", known.asked, err, want)
	}
	if credential, scope := testworld.Client(t, endpoint, cosmosfake.WellKnownKey).Identity(); credential != nil || scope != "" {
		t.Errorf("an account by key has a token for %q", scope)
	}
}
