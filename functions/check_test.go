package main_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// checks is what `feedscale check --output json` prints.
type checks struct {
	Checks []checkedLine
	OK     bool
}

type checkedLine struct {
	Target, Check, Status, Detail string
	Fix                           *string
	Processors                    []string
}

func runCheck(t *testing.T, folder string, settings map[string]string, args ...string) (checks, result) {
	t.Helper()
	r := command(t, folder, settings, append([]string{"check", "--output", "json"}, args...)...)
	var got checks
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("status %d, %v: %s%s", r.status, err, r.stdout, r.stderr)
	}
	if (r.status == 0) != got.OK || r.status > 1 {
		t.Errorf("status %d, and ok is %v", r.status, got.OK)
	}
	for _, secret := range []string{cosmosfake.WellKnownKey, servicebusfake.DefaultKey, "Eby8vdM02xNOcqFlq", badKey, tokenSignature} {
		if strings.Contains(r.stdout+r.stderr, secret) {
			t.Errorf("a secret is shown: %s%s", r.stdout, r.stderr)
		}
	}
	return got, r
}

const badKey = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="

// summary is every line as "check status", in order.
func (c checks) summary() (lines []string) {
	for _, l := range c.Checks {
		lines = append(lines, l.Check+" "+l.Status)
	}
	return lines
}

// remedy is a line that fails, as a test wants it.
type remedy struct {
	target string // its end
	check  string
	detail string // a part of it
	fix    string // a part of it
}

// wantOnly holds that one line fails, and nothing else.
func (c checks) wantOnly(t *testing.T, want remedy) {
	t.Helper()
	found := 0
	for _, l := range c.Checks {
		if l.Status != "fail" {
			if l.Fix != nil {
				t.Errorf("%s of %s: %s, and a fix", l.Check, l.Target, l.Status)
			}
			continue
		}
		found++
		fix := "none"
		if l.Fix != nil {
			fix = *l.Fix
		}
		if !strings.HasSuffix(l.Target, want.target) || l.Check != want.check || !strings.Contains(l.Detail, want.detail) || !strings.Contains(fix, want.fix) || strings.Contains(l.Detail, "\n") {
			t.Errorf("got  %s | %s | %s | %s\nwant %+v", l.Target, l.Check, l.Detail, fix, want)
		}
		if !slices.Contains(l.Processors, "orders") {
			t.Errorf("%s of %s: processors %q", l.Check, l.Target, l.Processors)
		}
	}
	if found != 1 || c.OK {
		t.Errorf("%d lines fail, ok is %v; want one that is said once:\n%+v", found, c.OK, c.Checks)
	}
}

func TestCheckHoldsWhereEverythingDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got, r := runCheck(t, t.TempDir(), w.settings())
	want := []string{
		"settings ok",
		"dns ok", "connection ok", "tls skip", "clock ok", "identity skip", "read metadata ok", // the account
		"read metadata ok", "read metadata ok", "read feed ok", "query leases ok", // database, container, lease container
		"dns ok", "connection ok", "tls skip", "clock ok", "identity skip", "write state ok", // the table
		"dns ok", "connection ok", "tls skip", "identity skip", "send ok", // the queue
	}
	if !reflect.DeepEqual(got.summary(), want) {
		t.Errorf("got  %q\nwant %q\n%s", got.summary(), want, r.stdout)
	}
	if r.status != 0 || r.stderr != "" {
		t.Errorf("status %d, standard error %q", r.status, r.stderr)
	}
	if sent := w.bus.Messages(queue); len(sent) != 0 {
		t.Errorf("%d messages were sent", len(sent))
	}
	if record, err := w.store().Load(t.Context(), "orders"); err != nil || record.Version != "" {
		t.Errorf("state was written: %+v, %v", record, err)
	}
	fields := regexp.MustCompile(`{"target":"[^"]+","check":"[^"]+","status":"(ok|skip)","detail":"[^"]+","fix":null,"processors":\["orders"\]}`)
	if n := len(fields.FindAllString(r.stdout, -1)); n != len(want) {
		t.Errorf("%d of %d lines have all fields, in their order:\n%s", n, len(want), r.stdout)
	}
}

// TestWhatFailsIsSaidOnceWithWhatMendsIt changes one thing at a time in a world
// where everything holds.
func TestWhatFailsIsSaidOnceWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	refuse := func(kind cosmosfake.Kind, a cosmosfake.Answer) func(*world, map[string]string) {
		return func(w *world, _ map[string]string) {
			w.db.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind != kind || r.Header.Get("Authorization") == "" { // what is not signed is the look at the connection
					return nil
				}
				return &a
			})
		}
	}
	set := func(name, value string) func(*world, map[string]string) {
		return func(_ *world, s map[string]string) { s[name] = value }
	}
	processor := func(from, to string) func(*world, map[string]string) {
		return func(_ *world, s map[string]string) {
			s["FEEDSCALE_PROCESSORS"] = strings.Replace(s["FEEDSCALE_PROCESSORS"], from, to, 1)
		}
	}
	bus := func(op servicebusfake.Op, a servicebusfake.Answer) func(*world, map[string]string) {
		return func(w *world, _ map[string]string) {
			a.Keep = true
			w.bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
				if r.Op != op {
					return nil
				}
				return &a
			})
		}
	}
	firewall := func(path string) cosmosfake.Answer {
		return cosmosfake.Answer{Status: 403, Body: `{"message":"Request originated from ` + path + `. This is blocked by your Cosmos DB account firewall settings."}`}
	}
	for _, c := range []struct {
		rule   string
		change func(*world, map[string]string)
		want   remedy
	}{
		{"an account whose name does not resolve", set("COSMOS", "AccountEndpoint=https://shop.invalid/;AccountKey="+badKey+";"),
			remedy{"shop.invalid", "dns", "cannot be found", "correct the host in setting COSMOS"}},
		{"an account in Azure whose name does not resolve", set("COSMOS", "AccountEndpoint=https://feedscale-0.documents.azure.invalid/;AccountKey="+badKey+";"),
			remedy{"feedscale-0.documents.azure.invalid", "dns", "cannot be found", "az network private-dns link vnet create --resource-group RESOURCE_GROUP --zone-name privatelink.documents.azure.invalid "}},
		{"a closed port", set("COSMOS", "AccountEndpoint=http://127.0.0.1:1/;AccountKey="+badKey+";"),
			remedy{"127.0.0.1:1", "connection", "refuses the connection at port 1", "start what is to listen at 127.0.0.1:1"}},
		{"no TLS where it is expected", func(w *world, s map[string]string) {
			s["COSMOS"] = strings.Replace(s["COSMOS"], "http://", "https://", 1)
		}, remedy{"", "tls", "HTTP response", "set COSMOS to a host and port that speak TLS"}},
		{"a wrong key", func(w *world, s map[string]string) {
			s["COSMOS"] = strings.Replace(s["COSMOS"], cosmosfake.WellKnownKey, badKey, 1)
		}, remedy{"", "read metadata", "the key in setting COSMOS is refused (401)", "az cosmosdb keys list --name ACCOUNT --resource-group RESOURCE_GROUP --type connection-strings   # into setting COSMOS"}},
		{"an account without keys", refuse(cosmosfake.ReadAccount, cosmosfake.Answer{Status: 403, Substatus: 5202}),
			remedy{"", "read metadata", "does not accept keys (403/5202)", "set COSMOS__accountEndpoint=http"}},
		{"a firewall that names the address", refuse(cosmosfake.ReadAccount, firewall("IP 203.0.113.7 through public internet")),
			remedy{"", "read metadata", "refuses 203.0.113.7", "az cosmosdb update --name ACCOUNT --resource-group RESOURCE_GROUP --ip-range-filter PRESENT_RANGES,203.0.113.7"}},
		{"a firewall before a service endpoint", refuse(cosmosfake.ReadAccount, firewall("client VNET through service endpoint")),
			remedy{"", "read metadata", "through the service endpoint", "az cosmosdb network-rule add --name ACCOUNT "}},
		{"a private endpoint that is not approved", refuse(cosmosfake.ReadAccount, firewall("client VNET through private endpoint")),
			remedy{"", "read metadata", "through the private endpoint", "az cosmosdb private-endpoint-connection approve --account-name ACCOUNT "}},
		{"an account that is out of order", refuse(cosmosfake.ReadAccount, cosmosfake.Answer{Status: 503}),
			remedy{"", "read metadata", "(503)", "none"}},
		{"a database that is not there", processor("databaseId: shop", "databaseId: shoop, leaseDatabaseId: shop"),
			remedy{"/shoop", "read metadata", "there is no database shoop", "az cosmosdb sql database list --account-name ACCOUNT --resource-group RESOURCE_GROUP --query '[].name' "}},
		{"a container that is not there", processor("containerId: orders", `containerId: "my order's"`),
			remedy{"/shop/my order's", "read metadata", "there is no container my order's in database shop", "az cosmosdb sql container list --account-name ACCOUNT --resource-group RESOURCE_GROUP --database-name shop "}},
		{"a lease container that is not there", processor("containerId: orders", "containerId: orders, leaseContainerId: my leases"),
			remedy{"/shop/my leases", "query leases", "there is no lease container my leases in database shop", "az cosmosdb sql container create --account-name ACCOUNT --resource-group RESOURCE_GROUP --database-name shop --name 'my leases' --partition-key-path /id"}},
		{"leases that must not be queried", refuse(cosmosfake.QueryDocuments, cosmosfake.Answer{Status: 403}),
			remedy{"/shop/leases", "query leases", "forbids to query the leases in shop/leases", "az cosmosdb update"}},
		{"a feed that must not be read", refuse(cosmosfake.ReadChangeFeed, cosmosfake.Answer{Status: 403}),
			remedy{"/shop/orders", "read feed", "forbids to read container shop/orders", "az cosmosdb update"}},
		{"partition key ranges that must not be read", refuse(cosmosfake.ReadRanges, cosmosfake.Answer{Status: 403}),
			remedy{"/shop/orders", "read feed", "forbids to read container shop/orders", "az cosmosdb update"}},
		{"a container that throttles", refuse(cosmosfake.ReadChangeFeed, cosmosfake.Answer{Status: 429, Header: http.Header{"X-Ms-Retry-After-Ms": {"1"}}}),
			remedy{"/shop/orders", "read feed", "throttles", "az cosmosdb sql container throughput update --account-name ACCOUNT --resource-group RESOURCE_GROUP --database-name shop --name orders "}},
		{"a state file below another file", func(w *world, s map[string]string) {
			occupied := filepath.Join(w.t.TempDir(), "file")
			must(w.t, os.WriteFile(occupied, nil, 0o600))
			s["FEEDSCALE_STATE"] = "bolt:" + filepath.Join(occupied, "feedscale.db")
		}, remedy{"feedscale.db", "write state", "not a directory", "give another file in FEEDSCALE_STATE"}},
		{"a state file that another process has open", func(w *world, s map[string]string) {
			path := filepath.Join(w.t.TempDir(), "feedscale.db")
			store, err := boltstore.Open(path)
			must(w.t, err)
			w.t.Cleanup(func() { _ = store.Close() })
			s["FEEDSCALE_STATE"] = "bolt:" + path
		}, remedy{"feedscale.db", "write state", "another process has the state file open", "end the other process"}},
		{"a state file that is none", func(w *world, s map[string]string) {
			path := filepath.Join(w.t.TempDir(), "feedscale.db")
			must(w.t, os.WriteFile(path, bytes.Repeat([]byte("no state file"), 1000), 0o600))
			s["FEEDSCALE_STATE"] = "bolt:" + path
		}, remedy{"feedscale.db", "write state", "not a whole state file", "give another file in FEEDSCALE_STATE"}},
		{"a storage account with another key", func(_ *world, s map[string]string) {
			s["TABLES"] = regexp.MustCompile(`AccountKey=[^;]+`).ReplaceAllString(s["AzureWebJobsStorage"], "AccountKey="+badKey)
			s["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
		}, remedy{"/feedscale", "write state", "account key", "az storage account show-connection-string --name STORAGE_ACCOUNT --resource-group RESOURCE_GROUP --query connectionString --output tsv   # into setting TABLES"}},
		{"a storage account that is not there", func(_ *world, s map[string]string) {
			s["TABLES"] = "AccountName=shop;AccountKey=" + badKey + ";TableEndpoint=https://shop.invalid/"
			s["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
		}, remedy{"shop.invalid/feedscale", "dns", "shop.invalid", "correct the host in setting TABLES"}},
		{"a queue that is not there", set("FEEDSCALE_EVENTS", "servicebus:SERVICEBUS/nowhere"),
			remedy{"/nowhere", "send", `queue "nowhere" does not exist`, "az servicebus queue create --resource-group RESOURCE_GROUP --namespace-name NAMESPACE --name nowhere "}},
		{"a policy that may not send", bus(servicebusfake.OpAttach, servicebusfake.Answer{Condition: "amqp:unauthorized-access"}),
			remedy{"/" + queue, "send", "the key in setting SERVICEBUS may not send to queue " + queue, "az servicebus namespace authorization-rule keys list --resource-group RESOURCE_GROUP --namespace-name NAMESPACE "}},
		{"network rules of Service Bus", bus(servicebusfake.OpPutToken, servicebusfake.Answer{Condition: "amqp:unauthorized-access", Status: 401, Description: "Ip has been prevented to connect to the endpoint."}),
			remedy{"/" + queue, "send", "network rules", "az servicebus namespace network-rule-set ip-rule add --resource-group RESOURCE_GROUP --namespace-name NAMESPACE --ip-rule ip-address=PUBLIC_IP action=Allow"}},
		{"a namespace at a closed port", set("SERVICEBUS", "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey="+badKey+";UseDevelopmentEmulator=true"),
			remedy{"127.0.0.1:1/" + queue, "connection", "refuses the connection", "start what is to listen"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			settings := w.settings()
			c.change(w, settings)
			got, _ := runCheck(t, t.TempDir(), settings)
			got.wantOnly(t, c.want)
		})
	}
}

func TestWhatDependsOnAFailureIsSkippedWithItsReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.settings()
	settings["COSMOS"] = "AccountEndpoint=https://shop.invalid/;AccountKey=" + badKey + ";"
	got, _ := runCheck(t, t.TempDir(), settings)
	reasons := make(map[string]int)
	for _, l := range got.Checks {
		if l.Status == "skip" && strings.HasPrefix(l.Target, "shop.invalid") {
			reasons[l.Detail]++
		}
	}
	want := map[string]int{"not tried, since dns fails for shop.invalid": 8, "setting COSMOS holds a key: no token is needed": 1}
	if !maps.Equal(reasons, want) {
		t.Errorf("got %v, want %v", reasons, want)
	}
	if last := got.Checks[len(got.Checks)-1]; last.Check != "send" || last.Status != "ok" {
		t.Errorf("what does not depend on it: %+v", last)
	}
}

func TestAClockThatIsOffIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		off   time.Duration
		fails string // part of the detail; "" = holds
	}{
		{"half a minute is borne", 30 * time.Second, ""},
		{"two minutes behind are not", 2 * time.Minute, "behind the service's"},
		{"two minutes ahead are not", -2 * time.Minute, "ahead of the service's"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db, err := cosmosfake.Start(cosmosfake.Options{Now: func() time.Time { return time.Now().Add(c.off) }})
			must(t, err)
			t.Cleanup(func() { must(t, db.Close()) })
			must(t, db.CreateDatabase("shop"))
			for _, id := range []string{"orders", "leases"} {
				must(t, db.CreateContainer("shop", cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}}))
			}
			settings := w.local()
			settings["COSMOS"] = db.ConnectionString()
			got, r := runCheck(t, t.TempDir(), settings)
			if c.fails != "" {
				got.wantOnly(t, remedy{"", "clock", c.fails, "timedatectl set-ntp true"})
			} else if !got.OK {
				t.Errorf("it does not hold: %s", r.stdout)
			}
			if !slices.Contains(got.summary(), "read feed ok") {
				t.Errorf("a clock keeps the rest from being tried: %s", r.stdout)
			}
		})
	}
}

// identitySource stands for the endpoint of App Service that gives tokens.
type identitySource struct {
	*httptest.Server
	scopes atomic.Pointer[string] // the resource asked for last
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

// identified are settings with which an account of the world is signed in to
// with an identity that the source proves.
func (s *identitySource) identified(w *world, db *cosmosfake.Server) map[string]string {
	settings := w.local()
	delete(settings, "COSMOS")
	settings["COSMOS__accountEndpoint"], settings["COSMOS__credential"] = db.Endpoint(), "managedidentity"
	settings["IDENTITY_ENDPOINT"], settings["IDENTITY_HEADER"] = s.URL, "header"
	settings["WEBSITE_SITE_NAME"], settings["WEBSITE_RESOURCE_GROUP"] = "scaler", "prod"
	return settings
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
		{"with the role", 200, claims, func(string) error { return nil }, "system-assigned managed identity, object id " + objectID + ", client id " + clientID, nil},
		{"without the role", 200, claims, func(string) error { return cosmosfake.ErrForbidden }, objectID, &remedy{"", "read metadata", "the identity is not permitted to read the account's metadata (403/5300)",
			"az cosmosdb sql role assignment create --account-name ACCOUNT --resource-group RESOURCE_GROUP --scope / --principal-id " + objectID + " --role-definition-id 00000000-0000-0000-0000-000000000001"}},
		{"whose token does not tell", 200, `{"oid":"$(reboot)"}`, func(string) error { return cosmosfake.ErrForbidden }, "object id unknown, client id unknown", &remedy{"", "read metadata", "not permitted",
			"--principal-id OBJECT_ID "}},
		{"without a token", 400, claims, func(string) error { return nil }, "gives no token for http://127.0.0.1/.default", &remedy{"", "identity", "system-assigned managed identity",
			"az functionapp identity assign --name scaler --resource-group prod"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db, err := cosmosfake.Start(cosmosfake.Options{Token: c.token})
			must(t, err)
			t.Cleanup(func() { must(t, db.Close()) })
			must(t, db.CreateDatabase("shop"))
			for _, id := range []string{"orders", "leases"} {
				must(t, db.CreateContainer("shop", cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}}))
			}
			got, r := runCheck(t, t.TempDir(), startIdentity(t, c.status, c.claims).identified(w, db))
			if c.want != nil {
				got.wantOnly(t, *c.want)
			} else if !got.OK {
				t.Errorf("it does not hold: %s", r.stdout)
			}
			shown := func(l checkedLine) bool { return l.Check == "identity" && strings.Contains(l.Detail, c.shows) }
			if !slices.ContainsFunc(got.Checks, shown) {
				t.Errorf("%q is not shown: %s", c.shows, r.stdout)
			}
		})
	}
}

// trusting writes the certificate of a server to a file, and returns the setting
// that makes a command trust it.
func trusting(t *testing.T, server *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	return file
}

func TestTheIdentityOfTheStateTableIsNamedInItsRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tables := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"odata.error":{"code":"AuthorizationPermissionMismatch"}}`)
	}))
	t.Cleanup(tables.Close)
	source := startIdentity(t, 200, fmt.Sprintf(`{"oid":%q,"appid":%q,"scp":"user_impersonation"}`, objectID, clientID))
	settings := w.local()
	settings["FEEDSCALE_STATE"] = tables.URL + "/feedscale"
	settings["SSL_CERT_FILE"] = trusting(t, tables)
	settings["IDENTITY_ENDPOINT"], settings["IDENTITY_HEADER"] = source.URL, "header"
	settings["AZURE_TOKEN_CREDENTIALS"] = "ManagedIdentityCredential"
	got, r := runCheck(t, t.TempDir(), settings)
	got.wantOnly(t, remedy{"/feedscale", "write state", "403 AuthorizationPermissionMismatch",
		"az role assignment create --assignee-object-id " + objectID + " --assignee-principal-type User --role 'Storage Table Data Contributor' " +
			"--scope /subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.Storage/storageAccounts/STORAGE_ACCOUNT"})
	if scope := source.scopes.Load(); scope == nil || *scope != "https://storage.azure.com" {
		t.Errorf("the token was asked for %v", scope)
	}
	if !strings.Contains(r.stdout, "valid until "+tables.Certificate().NotAfter.UTC().Format(time.DateOnly)) {
		t.Errorf("the end of the certificate is not shown: %s", r.stdout)
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
		{"a name that is not in it", "localhost", true, remedy{"/feedscale", "tls", "localhost", "correct the host in setting TABLES"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			settings := newWorld(t).local()
			_, port, _ := net.SplitHostPort(tables.Listener.Addr().String())
			settings["TABLES"] = "AccountName=shop;AccountKey=" + badKey + ";TableEndpoint=https://" + net.JoinHostPort(c.host, port)
			settings["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
			if c.trusted {
				settings["SSL_CERT_FILE"] = trusting(t, tables)
			}
			got, _ := runCheck(t, t.TempDir(), settings)
			got.wantOnly(t, c.want)
		})
	}
}

// TestStandInsWithTLSHold also holds that the port of AMQP shows its certificate.
func TestStandInsWithTLSHold(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := prepare(t, folder, nil, "emulate", "--tls", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--container", "shop/orders", "--container", "shop/leases", "--queue", queue)
	stdout, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	settings := map[string]string{
		"FEEDSCALE_PROCESSORS": `{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders}]}`,
		"FEEDSCALE_EVENTS":     "servicebus:SERVICEBUS/" + queue,
	}
	printed := newLines(stdout)
	for _, name := range []string{"COSMOS", "SERVICEBUS", "SSL_CERT_FILE"} {
		settings[name] = strings.Trim(strings.TrimPrefix(strings.TrimSpace(printed.await(t, name+"=")), name+"="), `"`)
	}
	got, r := runCheck(t, folder, settings)
	trusted := strings.Count(r.stdout, "the certificate is trusted and valid until ")
	if !got.OK || trusted != 2 {
		t.Errorf("%d certificates, want those of account and namespace: %s", trusted, r.stdout)
	}
	must(t, c.Process.Signal(os.Interrupt))
	if err := c.Wait(); err != nil {
		t.Errorf("emulate, interrupted: %v", err)
	}
}

// TestAnAccountInAzureIsNamed reaches the account through a proxy, since only
// there a stand-in can have such a name.
func TestAnAccountInAzureIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		target, err := url.Parse(w.db.Endpoint())
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
	settings := w.local()
	settings["COSMOS"] = "AccountEndpoint=http://shop.documents.azure.com:80/;AccountKey=" + badKey + ";"
	settings["HTTP_PROXY"] = proxy.URL
	got, r := runCheck(t, t.TempDir(), settings)
	got.wantOnly(t, remedy{"shop.documents.azure.com", "read metadata", "is refused (401)", "az cosmosdb keys list --name shop "})
	if !strings.Contains(r.stdout, "left to the proxy "+strings.TrimPrefix(proxy.URL, "http://")) {
		t.Errorf("the proxy is not told: %s", r.stdout)
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
		{"a wrong key", byKey, "AuthenticationFailed", "az storage account show-connection-string --name shop --resource-group RESOURCE_GROUP ", false},
		{"the network rules", byKey, "AuthorizationFailure", "az storage account network-rule add --account-name shop --resource-group RESOURCE_GROUP --ip-address PUBLIC_IP", false},
		{"an account without keys", byKey, "KeyBasedAuthenticationNotPermitted", "set FEEDSCALE_STATE=https://shop.table.core.windows.net/feedscale", false},
		{"a signature that lacks a right", signed, "AuthorizationPermissionMismatch", "az storage account generate-sas --account-name shop --services t ", false},
		{"a table that is missing and must not be created", signed, "AuthorizationPermissionMismatch", "az storage table create --name feedscale --account-name shop --auth-mode login", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				status, code := http.StatusForbidden, c.code
				if c.missing && r.Method == http.MethodPut {
					status, code = http.StatusNotFound, "TableNotFound"
				}
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"odata.error":{"code":%q}}`, code)
			}))
			t.Cleanup(proxy.Close)
			settings := newWorld(t).local()
			settings["TABLES"] = c.signIn + ";TableEndpoint=http://shop.table.core.windows.net"
			settings["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
			settings["HTTP_PROXY"] = proxy.URL
			got, _ := runCheck(t, t.TempDir(), settings)
			got.wantOnly(t, remedy{"shop.table.core.windows.net/feedscale", "write state", "403 " + c.code, c.fix})
		})
	}
}

func TestWhatManyShareIsTriedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.db.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "payments", PartitionKey: []string{"/id"}}))
	var queries, feeds atomic.Int64
	w.db.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		switch r.Kind {
		case cosmosfake.QueryDocuments:
			queries.Add(1)
			return &cosmosfake.Answer{Status: 403}
		case cosmosfake.ReadChangeFeed:
			feeds.Add(1)
		}
		return nil
	})
	settings := w.local()
	settings["ALIAS"] = settings["COSMOS"]
	settings["FEEDSCALE_PROCESSORS"] = `{defaults: {connection: COSMOS, databaseId: shop}, processors: [{name: orders, containerId: orders},
		{name: again, connection: ALIAS, containerId: orders}, {name: payments, containerId: payments}]}`
	got, r := runCheck(t, t.TempDir(), settings)
	got.wantOnly(t, remedy{"/shop/leases", "query leases", "forbids", "az cosmosdb update"})
	if queries.Load() != 1 || feeds.Load() != 2 {
		t.Errorf("%d queries and %d feeds, want 1 and 2", queries.Load(), feeds.Load())
	}
	users := make(map[string]string)
	for _, l := range got.Checks {
		_, path, _ := strings.Cut(l.Target, "/")
		users[l.Check+" "+path] = strings.Join(l.Processors, ",")
	}
	for line, want := range map[string]string{
		"query leases shop/leases": "orders,again,payments", "read feed shop/orders": "orders,again", "read feed shop/payments": "payments", "dns ": "orders,again,payments",
	} {
		if users[line] != want {
			t.Errorf("%s: processors %s, want %s\n%s", line, users[line], want, r.stdout)
		}
	}
}

func TestADeadEndpointKeepsNothingElseFromBeingTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	settings := w.settings()
	settings["SILENT"] = "AccountEndpoint=http://" + silent.Addr().String() + "/;AccountKey=" + badKey + ";"
	settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "[{", "[{name: silent, connection: SILENT, databaseId: shop, containerId: orders}, {", 1)
	got, r := runCheck(t, t.TempDir(), settings, "--timeout", "30s")
	var failed, held []string
	for _, l := range got.Checks {
		switch l.Status {
		case "fail":
			failed = append(failed, l.Check+" "+l.Target+" "+strings.Join(l.Processors, ","))
		case "ok":
			held = append(held, l.Check)
		}
	}
	if want := []string{"connection " + silent.Addr().String() + " silent"}; !slices.Equal(failed, want) {
		t.Errorf("failed %q, want %q: %s", failed, want, r.stdout)
	}
	for _, check := range []string{"read feed", "query leases", "write state", "send"} {
		if !slices.Contains(held, check) {
			t.Errorf("%s does not hold: %s", check, r.stdout)
		}
	}
}

func TestAnInterruptEndsTheCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan struct{}, 100)
	w.db.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.QueryDocuments {
			return nil
		}
		asked <- struct{}{}
		return &cosmosfake.Answer{Delay: time.Hour}
	})
	c := prepare(t, t.TempDir(), w.local(), "check", "--output", "json", "--timeout", "1h")
	var stdout bytes.Buffer
	c.Stdout = &stdout
	must(t, c.Start())
	<-asked
	must(t, c.Process.Signal(os.Interrupt))
	_ = c.Wait() // the status is looked at
	var got checks
	must(t, json.Unmarshal(stdout.Bytes(), &got))
	if got.OK || c.ProcessState.ExitCode() != 1 || !strings.Contains(stdout.String(), "the check was interrupted") || strings.Contains(stdout.String(), `"fail"`) {
		t.Errorf("status %d: %s", c.ProcessState.ExitCode(), stdout.String())
	}
}

func TestCheckPrintsATableForPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.local()
	var list []string
	for n := range 7 {
		list = append(list, fmt.Sprintf("{name: p%d, connection: COSMOS, databaseId: shop, containerId: nowhere}", n))
	}
	settings["FEEDSCALE_PROCESSORS"] = "{processors: [" + strings.Join(list, ", ") + "]}"
	r := command(t, t.TempDir(), settings, "check")
	for _, want := range []string{
		`^STATUS  TARGET  +CHECK  +DETAIL$`,
		`^ok      FEEDSCALE_PROCESSORS  +settings  +no mistakes, 7 processors$`,
		`^fail    127\.0\.0\.1:\d+/shop/nowhere  +read metadata  it says ".*": there is no container nowhere in database shop \(404\)$`,
		`^        processors: p0, p1, p2, p3, p4 and 2 more$`,
		`^        fix: az cosmosdb sql container list `,
		`^skip    127\.0\.0\.1:\d+/shop/nowhere  +read feed  +not tried, since read metadata fails for `,
		`^ok      bolt:\./data/feedscale\.db  +write state  +there is no file yet`,
		`^skip    stdout:  +send `,
		`^1 of \d+ checks fail$`,
	} {
		if !regexp.MustCompile(`(?m)` + want).MatchString(r.stdout) {
			t.Errorf("no line matches %s:\n%s", want, r.stdout)
		}
	}
	if r.status != 1 || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("status %d, or colors in a file:\n%s", r.status, r.stdout)
	}
}

func TestCheckLeavesNoFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := t.TempDir()
	if got, r := runCheck(t, folder, w.local()); !got.OK {
		t.Errorf("it does not hold: %s", r.stdout)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestCheckRefusesMistakesWithStatusTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		rule, says string
		settings   map[string]string
		args       []string
	}{
		{"an output that is none", "--output", w.local(), []string{"--output", "yaml"}},
		{"no time at all", "--timeout", w.local(), []string{"--timeout", "0s"}},
		{"no configuration", "there is no such file", nil, nil},
		{"a setting that is wrong", "FEEDSCALE_CONCURRENCY", map[string]string{"FEEDSCALE_CONCURRENCY": "none"}, nil},
	} {
		if r := command(t, t.TempDir(), c.settings, append([]string{"check"}, c.args...)...); r.status != 2 || r.stdout != "" || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", c.rule, r.status, r.stdout, r.stderr)
		}
	}
}

func TestCheckSaysABadConfigurationInJSONToo(t *testing.T) {
	t.Parallel()
	r := command(t, t.TempDir(), map[string]string{"FEEDSCALE_CONCURRENCY": "none", "FEEDSCALE_STAT": "x"}, "check", "--output", "json")
	var report struct {
		Checks []struct{ Check, Status, Detail string }
		OK     bool
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("%v, %+v", err, r)
	}
	found := 0
	for _, c := range report.Checks {
		if c.Check == "settings" && c.Status == "fail" && (strings.HasPrefix(c.Detail, "FEEDSCALE_CONCURRENCY: ") || strings.HasPrefix(c.Detail, "FEEDSCALE_STAT: ")) {
			found++
		}
	}
	if r.status != 2 || report.OK || found != 2 || !strings.Contains(r.stderr, "FEEDSCALE_STAT") {
		t.Errorf("%+v", r)
	}
}
