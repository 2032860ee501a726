package cli_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// These checks run as processes of their own: whom to trust, which proxy to take and who gives tokens
// is read once from the environment of a process.

// identitySource stands for the endpoint of App Service that gives tokens.
type identitySource struct {
	*httptest.Server
	scopes atomic.Pointer[string] // the resource asked for last
	known  atomic.Pointer[string] // the only resource that the tenant knows; nil = it knows all
}

const (
	objectID       = "11111111-2222-3333-4444-555555555555"
	clientID       = "66666666-7777-8888-9999-000000000000"
	tokenSignature = "c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"
)

func startIdentity(t *testing.T, status int, claims string) *identitySource {
	t.Helper()
	source := &identitySource{}
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + tokenSignature
	source.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource := r.URL.Query().Get("resource")
		source.scopes.Store(&resource)
		w.Header().Set("Content-Type", "application/json")
		if known := source.known.Load(); known != nil && *known != resource {
			// As https://github.com/AzureAD/microsoft-authentication-library-for-dotnet/issues/3979 has it.
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"invalid_resource","error_description":"AADSTS500011: The resource principal named %s was not found in the tenant named Shop."}`, resource)
			return
		}
		w.WriteHeader(status)
		if status == http.StatusOK {
			fmt.Fprintf(w, `{"access_token":%q,"expires_on":"%d","resource":%q,"token_type":"Bearer"}`, token, time.Now().Add(time.Hour).Unix(), resource)
		} else {
			fmt.Fprintf(w, `{"error":"invalid","error_description":%q}`, token)
		}
	}))
	t.Cleanup(source.Close)
	return source
}

// proves sets what leads a program to the source.
func (s *identitySource) proves(settings map[string]string) {
	settings["IDENTITY_ENDPOINT"], settings["IDENTITY_HEADER"] = s.URL, "header"
}

func TestAnIdentityIsNamedInWhatMendsIt(t *testing.T) {
	t.Parallel()
	claims := fmt.Sprintf(`{"oid":%q,"appid":%q}`, objectID, clientID)
	for _, c := range []struct {
		rule   string
		status int
		claims string
		token  func(string) error
		shows  string  // in the line of the identity
		want   *remedy // nil = all holds
	}{
		{"with the role", 200, claims, func(string) error { return nil }, "the identity of setting COSMOS has the object id " + objectID, nil},
		{"without the role", 200, claims, func(string) error { return cosmosfake.ErrForbidden }, objectID, &remedy{"", "read metadata", "the identity is not permitted to read the account's metadata (403/5301)",
			"az cosmosdb sql role assignment create --resource-group RESOURCE_GROUP --account-name ACCOUNT --scope / --principal-id " + objectID + " --role-definition-id 00000000-0000-0000-0000-000000000001"}},
		{"whose token does not tell", 200, `{"oid":"$(reboot)"}`, func(string) error { return cosmosfake.ErrForbidden }, "object id unknown", &remedy{"", "read metadata", "not permitted",
			"--principal-id OBJECT_ID "}},
		{"without a token", 400, claims, func(string) error { return nil }, "gives no token for http://127.0.0.1/.default", &remedy{"", "identity", "the identity of setting COSMOS",
			"az functionapp identity assign"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, p := checking(t, cosmosfake.Options{Token: c.token})
			delete(p.settings, "COSMOS")
			p.settings["COSMOS__accountEndpoint"], p.settings["COSMOS__credential"] = w.Account.Endpoint(), "managedidentity"
			startIdentity(t, c.status, c.claims).proves(p.settings)
			got, r := p.checkApart(t)
			if c.want != nil {
				wantOnly(t, got, *c.want)
			} else if !got.OK {
				t.Errorf("it does not hold: %s", r.Stdout)
			}
			shown := func(l check.Line) bool { return l.Check == "identity" && strings.Contains(l.Detail, c.shows) }
			if !slices.ContainsFunc(got.Checks, shown) {
				t.Errorf("%q is not shown: %s", c.shows, r.Stdout)
			}
		})
	}
}

func TestATokenIsCheckedWithTheScopeThatTheAccountIsReadWith(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule         string
		set, known   string // scope, and resource
		failedDetail string // of the identity; "" = all holds
	}{
		{"the account's own", "", "http://127.0.0.1", ""},
		{"that of Cosmos DB, where the tenant does not know the account's", "", "https://cosmos.azure.com", ""},
		{"neither is known", "", "https://other.example", "gives no token for http://127.0.0.1/.default (AADSTS500011)"},
		{"the one that is set", "https://cosmos.example/.default", "https://cosmos.example", ""},
		{"the one that is set, and no other", "https://cosmos.example/.default", "https://cosmos.azure.com", "gives no token for https://cosmos.example/.default (AADSTS500011)"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, p := checking(t, cosmosfake.Options{Token: func(string) error { return nil }})
			delete(p.settings, "COSMOS")
			p.settings["COSMOS__accountEndpoint"], p.settings["COSMOS__credential"], p.settings["COSMOS__tokenScope"] = w.Account.Endpoint(), "managedidentity", c.set
			source := startIdentity(t, 200, fmt.Sprintf(`{"oid":%q,"appid":%q}`, objectID, clientID))
			source.known.Store(&c.known)
			source.proves(p.settings)
			got, r := p.checkApart(t)
			if c.failedDetail != "" {
				wantOnly(t, got, remedy{"", "identity", c.failedDetail, "az functionapp identity assign"})
			} else if !got.OK {
				t.Errorf("it does not hold: %s", r.Stdout)
			}
		})
	}
}

func TestTheIdentityOfTheStateTableIsNamedInItsRole(t *testing.T) {
	t.Parallel()
	_, p := checking(t, cosmosfake.Options{})
	tables := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"odata.error":{"code":"AuthorizationPermissionMismatch"}}`)
	}))
	t.Cleanup(tables.Close)
	source := startIdentity(t, 200, fmt.Sprintf(`{"oid":%q,"appid":%q,"scp":"user_impersonation"}`, objectID, clientID))
	source.proves(p.settings)
	p.settings["FEEDSCALE_STATE"] = tables.URL + "/feedscale"
	p.settings["SSL_CERT_FILE"] = testworld.CertificateOf(t, tables)
	p.settings["AZURE_TOKEN_CREDENTIALS"] = "ManagedIdentityCredential"
	got, r := p.checkApart(t)
	wantOnly(t, got, remedy{"/feedscale", "write state", "403 AuthorizationPermissionMismatch",
		"az role assignment create --assignee-object-id " + objectID + " --role 'Storage Table Data Contributor' " +
			"--scope /subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.Storage/storageAccounts/STORAGE_ACCOUNT"})
	if scope := source.scopes.Load(); scope == nil || *scope != "https://storage.azure.com" {
		t.Errorf("the token was asked for %v", scope)
	}
	if !strings.Contains(r.Stdout, "valid until "+tables.Certificate().NotAfter.UTC().Format(time.DateOnly)) {
		t.Errorf("the end of the certificate is not shown: %s", r.Stdout)
	}
}

func TestACertificateThatIsNotTrustedIsTold(t *testing.T) {
	t.Parallel()
	tables := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tables.Close)
	for _, c := range []struct {
		rule, host string
		trusted    bool
		want       remedy
	}{
		{"an authority that is not known", "127.0.0.1", false, remedy{"/feedscale", "tls", "unknown authority", "set SSL_CERT_FILE"}},
		{"a name that is not in it", "localhost", true, remedy{"/feedscale", "tls", "localhost", "correct the host and port in setting TABLES"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			_, p := checking(t, cosmosfake.Options{})
			_, port, _ := net.SplitHostPort(tables.Listener.Addr().String())
			p.settings["TABLES"] = "AccountName=shop;AccountKey=" + badKey + ";TableEndpoint=https://" + net.JoinHostPort(c.host, port)
			p.settings["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
			if c.trusted {
				p.settings["SSL_CERT_FILE"] = testworld.CertificateOf(t, tables)
			}
			got, _ := p.checkApart(t)
			wantOnly(t, got, c.want)
		})
	}
}

// TestAnAccountInAzureIsNamed reaches the account through a proxy, since only there a stand-in can
// have such a name.
func TestAnAccountInAzureIsNamed(t *testing.T) {
	t.Parallel()
	w, p := checking(t, cosmosfake.Options{})
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		target, err := url.Parse(w.Account.Endpoint())
		if err != nil {
			return
		}
		r.URL.Host, r.RequestURI = target.Host, ""
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			out.WriteHeader(http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		maps.Copy(out.Header(), response.Header)
		out.WriteHeader(response.StatusCode)
		_, _ = io.Copy(out, response.Body)
	}))
	t.Cleanup(proxy.Close)
	p.settings["COSMOS"] = "AccountEndpoint=http://shop.documents.azure.com:80/;AccountKey=" + badKey + ";"
	p.settings["HTTP_PROXY"] = proxy.URL
	got, r := p.checkApart(t)
	wantOnly(t, got, remedy{"shop.documents.azure.com", "read metadata", "is refused (401)", "az cosmosdb keys list --resource-group RESOURCE_GROUP --name shop "})
	if !strings.Contains(r.Stdout, "left to the proxy "+strings.TrimPrefix(proxy.URL, "http://")) {
		t.Errorf("the proxy is not told: %s", r.Stdout)
	}
}

func TestAStorageAccountInAzureIsNamed(t *testing.T) {
	t.Parallel()
	const (
		byKey  = "AccountName=shop;AccountKey=" + badKey
		signed = "SharedAccessSignature=sv=1&sig=" + tokenSignature
	)
	for _, c := range []struct {
		rule, signIn, code, fix string
		missing                 bool // it is the creation of the table that is refused
	}{
		{"a wrong key", byKey, "AuthenticationFailed", "az storage account show-connection-string --resource-group RESOURCE_GROUP --name shop ", false},
		{"the network rules", byKey, "AuthorizationFailure", "az storage account network-rule add --resource-group RESOURCE_GROUP --account-name shop --ip-address PUBLIC_IP", false},
		{"an account without keys", byKey, "KeyBasedAuthenticationNotPermitted", "set FEEDSCALE_STATE=https://shop.table.core.windows.net/feedscale, with an identity that has the role Storage Table Data Contributor", false},
		{"a signature that lacks a right", signed, "AuthorizationPermissionMismatch", "az storage account generate-sas --account-name shop --services t ", false},
		{"a table that is missing and must not be created", signed, "AuthorizationPermissionMismatch", "az storage table create --name feedscale --account-name shop --auth-mode login", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				status, code := http.StatusForbidden, c.code
				if c.missing && !strings.HasSuffix(r.URL.Path, "/Tables") {
					status, code = http.StatusNotFound, "TableNotFound"
				}
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"odata.error":{"code":%q}}`, code)
			}))
			t.Cleanup(proxy.Close)
			_, p := checking(t, cosmosfake.Options{})
			p.settings["TABLES"] = c.signIn + ";TableEndpoint=http://shop.table.core.windows.net"
			p.settings["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
			p.settings["HTTP_PROXY"] = proxy.URL
			got, _ := p.checkApart(t)
			wantOnly(t, got, remedy{"shop.table.core.windows.net/feedscale", "write state", "403 " + c.code, c.fix})
		})
	}
}
