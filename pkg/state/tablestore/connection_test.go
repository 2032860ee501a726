package tablestore_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

func TestAConnectionStringLeadsToItsAccount(t *testing.T) {
	t.Parallel()
	const key, signature = "SharedKeyLite ", "sig=" + secretSignature
	cases := map[string]struct {
		text    string
		url     string // without the query
		account string // that signs, where a key does
	}{
		"the usual order": {
			"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=" + secretKey + ";EndpointSuffix=core.windows.net",
			"https://shop.table.core.windows.net/feedscale()", "shop",
		},
		"another order, another cloud, unknown fields, a last semicolon": {
			"Other=a=b;EndpointSuffix=core.chinacloudapi.cn;AccountKey=" + secretKey + ";AccountName=shop;",
			"https://shop.table.core.chinacloudapi.cn/feedscale()", "shop",
		},
		"names in any case, blanks around fields": {
			" accountname=shop ; ACCOUNTKEY=" + secretKey + " ", "https://shop.table.core.windows.net/feedscale()", "shop",
		},
		"http, where it says so": {
			"DefaultEndpointsProtocol=http;" + keyed, "http://shop.table.core.windows.net/feedscale()", "shop",
		},
		"an endpoint of its own": {
			keyed + ";TableEndpoint=https://tables.example.com/;BlobEndpoint=https://blobs.example.com",
			"https://tables.example.com/feedscale()", "shop",
		},
		"an emulator's endpoint": {
			"AccountName=devstoreaccount1;AccountKey=" + secretKey + ";TableEndpoint=http://127.0.0.1:10102/devstoreaccount1;",
			"http://127.0.0.1:10102/devstoreaccount1/feedscale()", "devstoreaccount1",
		},
		"the emulator": {
			"UseDevelopmentStorage=true", "http://127.0.0.1:10002/devstoreaccount1/feedscale()", "devstoreaccount1",
		},
		"the emulator behind a proxy": {
			"UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://azurite", "http://azurite:10002/devstoreaccount1/feedscale()", "devstoreaccount1",
		},
		"a signature with an endpoint and no account": {
			"BlobEndpoint=https://shop.blob.core.windows.net/;TableEndpoint=https://shop.table.core.windows.net/;SharedAccessSignature=sv=2022-11-02&sig=" + secretSignature,
			"https://shop.table.core.windows.net/feedscale()", "",
		},
		"a signature with an account in another cloud": {
			"AccountName=shop;EndpointSuffix=core.usgovcloudapi.net;SharedAccessSignature=?sv=2022-11-02&sig=" + secretSignature,
			"https://shop.table.core.usgovcloudapi.net/feedscale()", "",
		},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked recorder
			store := openThrough(t, tt.text, asked.record(func(*http.Request) (*http.Response, error) { return rows(), nil }))
			if _, err := store.Outbox(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			request := asked.requests[0]
			if got := request.URL.Scheme + "://" + request.URL.Host + request.URL.Path; got != tt.url {
				t.Errorf("got %s, want %s", got, tt.url)
			}
			authorization, query := request.Header.Get("Authorization"), request.URL.RawQuery
			if tt.account == "" && (authorization != "" || !strings.Contains(query, signature)) {
				t.Errorf("not signed with the signature: %q", query)
			}
			if tt.account != "" && !strings.HasPrefix(authorization, key+tt.account+":") {
				t.Errorf("not signed with the key of %s: %q", tt.account, authorization)
			}
		})
	}
}

func TestABadConnectionStringIsRefusedWithoutRepeatingIt(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":                      "",
		"a key alone":                secretKey,
		"no account":                 "AccountKey=" + secretKey,
		"no key":                     "AccountName=shop",
		"a key that is no base64":    "AccountName=shop;AccountKey=" + secretKey + "*",
		"a field without a name":     keyed + ";" + secretSignature,
		"a signature without a host": "SharedAccessSignature=sig=" + secretSignature,
		"an endpoint that is none":   keyed + ";TableEndpoint=" + secretSignature,
		"an endpoint of a file":      keyed + ";TableEndpoint=file://" + secretSignature,
		"an endpoint with a query":   keyed + ";TableEndpoint=https://shop.table.core.windows.net/?sig=" + secretSignature,
		"a proxy that is none":       "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=" + secretSignature,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tablestore.OpenWithConnectionString(text, "feedscale", through(unasked(t)))
			if err == nil || !strings.Contains(err.Error(), "connection string") {
				t.Errorf("got %v, want an error about the connection string", err)
			}
			if showsSecret(err) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestAnIdentityAsksForATokenForStorageInEveryCloud(t *testing.T) {
	t.Parallel()
	for serviceURL, want := range map[string]string{
		"https://shop.table.core.windows.net":        "https://shop.table.core.windows.net/feedscale()",
		"https://shop.table.core.windows.net/":       "https://shop.table.core.windows.net/feedscale()",
		"https://shop.table.core.chinacloudapi.cn":   "https://shop.table.core.chinacloudapi.cn/feedscale()",
		"https://shop.table.core.usgovcloudapi.net":  "https://shop.table.core.usgovcloudapi.net/feedscale()",
		"https://127.0.0.1:10002/devstoreaccount1":   "https://127.0.0.1:10002/devstoreaccount1/feedscale()",
		"https://shop.z01.table.storage.azure.net":   "https://shop.z01.table.storage.azure.net/feedscale()",
		"https://shop.privatelink.table.example.com": "https://shop.privatelink.table.example.com/feedscale()",
	} {
		t.Run(serviceURL, func(t *testing.T) {
			t.Parallel()
			var asked recorder
			scopes := make(identity, 1)
			store, err := tablestore.OpenWithIdentity(serviceURL, "feedscale", scopes, through(asked.record(
				func(*http.Request) (*http.Response, error) { return rows(), nil })))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Outbox(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			request := asked.requests[0]
			if got := request.URL.Scheme + "://" + request.URL.Host + request.URL.Path; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if got := request.Header.Get("Authorization"); got != "Bearer token" {
				t.Errorf("Authorization: got %q", got)
			}
			if got := <-scopes; got != "https://storage.azure.com/.default" {
				t.Errorf("the token is for %s", got)
			}
		})
	}
}

func TestAnIdentityIsNotShownToWhateverAddress(t *testing.T) {
	t.Parallel()
	for _, serviceURL := range []string{
		"", "shop", "http://shop.table.core.windows.net", "https://", "https://user@shop.table.core.windows.net",
		"https://shop.table.core.windows.net?sig=" + secretSignature,
	} {
		_, err := tablestore.OpenWithIdentity(serviceURL, "feedscale", make(identity, 1), through(unasked(t)))
		if err == nil || showsSecret(err) {
			t.Errorf("%q: got %v, want an error without the signature", serviceURL, err)
		}
	}
}

// identity hands out a token and records the scope that it is asked for.
type identity chan string

func (i identity) GetToken(_ context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	i <- strings.Join(options.Scopes, " ")
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// unasked is a transport that fails the test when it is used.
func unasked(t *testing.T) transport {
	return func(request *http.Request) (*http.Response, error) {
		t.Errorf("a request was made: %s", request.URL.Path)
		return rows(), nil
	}
}
