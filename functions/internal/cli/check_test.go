package cli_test

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

const badKey = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="

// checking is a program that can check a shop, where everything holds: its state goes to a file, and
// its events to the queue.
func checking(t *testing.T, o cosmosfake.Options) (*testworld.Shop, feedscale) {
	t.Helper()
	w := testworld.NewShop(t, testworld.Options{Account: o})
	p := feedscale{settings: w.Settings()}
	p.settings["FEEDSCALE_STATE"] = stateFile(t)
	p.settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + testworld.Queue
	return w, p
}

// found is what a check printed, whose status says the same, and which shows no secret.
func found(t *testing.T, r testworld.Result) check.Report {
	t.Helper()
	got := testworld.Decode[check.Report](t, []byte(r.Stdout))
	if (r.Status == 0) != got.OK || r.Status > 1 {
		t.Errorf("status %d, and ok is %v", r.Status, got.OK)
	}
	for _, secret := range []string{cosmosfake.WellKnownKey, servicebusfake.DefaultKey, badKey, tokenSignature} {
		if strings.Contains(r.Stdout+r.Stderr, secret) {
			t.Errorf("a secret is shown: %s%s", r.Stdout, r.Stderr)
		}
	}
	return got
}

// check runs check in this process.
func (p feedscale) check(t *testing.T, args ...string) (check.Report, testworld.Result) {
	t.Helper()
	r := p.run(t, append([]string{"check", "--output", "json"}, args...)...)
	return found(t, r), r
}

// checkApart runs check as a process of its own.
func (p feedscale) checkApart(t *testing.T) (check.Report, testworld.Result) {
	t.Helper()
	r := p.apart(t, "check", "--output", "json")
	return found(t, r), r
}

// remedy is a line that fails, as a test wants it.
type remedy struct {
	target string // its end
	check  string
	detail string // a part of it
	fix    string // a part of it
}

// wantOnly holds that one line fails, and nothing else.
func wantOnly(t *testing.T, got check.Report, want remedy) {
	t.Helper()
	failed := 0
	for _, l := range got.Checks {
		if l.Status != check.Fail {
			if l.Fix != nil {
				t.Errorf("%s of %s: %s, and a fix", l.Check, l.Target, l.Status)
			}
			continue
		}
		failed++
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
	if failed != 1 || got.OK {
		t.Errorf("%d lines fail, ok is %v; want one that is said once:\n%+v", failed, got.OK, got.Checks)
	}
}

// TestWhatFailsIsSaidOnceWithWhatMendsIt changes one thing at a time in a world where everything
// holds.
func TestWhatFailsIsSaidOnceWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	type change func(t *testing.T, w *testworld.Shop, s map[string]string)
	refuse := func(kind cosmosfake.Kind, a cosmosfake.Answer) change {
		return func(_ *testing.T, w *testworld.Shop, _ map[string]string) {
			w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind != kind || r.Header.Get("Authorization") == "" { // what is not signed is the look at the connection
					return nil
				}
				return &a
			})
		}
	}
	set := func(name, value string) change {
		return func(_ *testing.T, _ *testworld.Shop, s map[string]string) { s[name] = value }
	}
	replace := func(name, from, to string) change {
		return func(_ *testing.T, _ *testworld.Shop, s map[string]string) {
			s[name] = strings.Replace(s[name], from, to, 1)
		}
	}
	bus := func(op servicebusfake.Op, a servicebusfake.Answer) change {
		return func(_ *testing.T, w *testworld.Shop, _ map[string]string) {
			a.Keep = true
			w.Namespace.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
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
		change change
		want   remedy
	}{
		{"an account whose name does not resolve", set("COSMOS", "AccountEndpoint=https://shop.invalid/;AccountKey="+badKey+";"),
			remedy{"shop.invalid", "dns", "cannot be found", "correct the host in setting COSMOS"}},
		{"an account in Azure whose name does not resolve", set("COSMOS", "AccountEndpoint=https://feedscale-0.documents.azure.invalid/;AccountKey="+badKey+";"),
			remedy{"feedscale-0.documents.azure.invalid", "dns", "cannot be found", "link the private DNS zone of its private endpoint to this network"}},
		{"a closed port", set("COSMOS", "AccountEndpoint=http://127.0.0.1:1/;AccountKey="+badKey+";"),
			remedy{"127.0.0.1:1", "connection", "cannot be reached at port 1: ", "start what is to listen at 127.0.0.1:1"}},
		{"no TLS where it is expected", replace("COSMOS", "http://", "https://"),
			remedy{"", "tls", "HTTP response", "correct the host and port in setting COSMOS"}},
		{"a wrong key", replace("COSMOS", cosmosfake.WellKnownKey, badKey),
			remedy{"", "read metadata", "the key in setting COSMOS is refused (401)", "az cosmosdb keys list --resource-group RESOURCE_GROUP --name ACCOUNT --type connection-strings   # put a valid key into setting COSMOS"}},
		{"an account without keys", refuse(cosmosfake.ReadAccount, cosmosfake.Answer{Status: 403, Substatus: 5202}),
			remedy{"", "read metadata", "does not accept keys (403/5202)", "set COSMOS__accountEndpoint in place of the key"}},
		{"a firewall that names the address", refuse(cosmosfake.ReadAccount, firewall("IP 203.0.113.7 through public internet")),
			remedy{"", "read metadata", "refuses 203.0.113.7", "az cosmosdb update --resource-group RESOURCE_GROUP --name ACCOUNT --ip-range-filter PRESENT_RANGES,203.0.113.7"}},
		{"a firewall before a service endpoint", refuse(cosmosfake.ReadAccount, firewall("client VNET through service endpoint")),
			remedy{"", "read metadata", "through the service endpoint", "az cosmosdb network-rule add --resource-group RESOURCE_GROUP --name ACCOUNT "}},
		{"a private endpoint that is not approved", refuse(cosmosfake.ReadAccount, firewall("client VNET through private endpoint")),
			remedy{"", "read metadata", "through the private endpoint", "az cosmosdb private-endpoint-connection approve --resource-group RESOURCE_GROUP --account-name ACCOUNT "}},
		{"an account that is out of order", refuse(cosmosfake.ReadAccount, cosmosfake.Answer{Status: 503}),
			remedy{"", "read metadata", "(503)", "look at the health of the account"}},
		{"a database that is not there", replace("FEEDSCALE_PROCESSORS", "databaseId: shop", "databaseId: shoop, leaseDatabaseId: shop"),
			remedy{"/shoop", "read metadata", "there is no database shoop", "az cosmosdb sql database list --resource-group RESOURCE_GROUP --account-name ACCOUNT --query '[].name'   # correct databaseId"}},
		{"a container that is not there", replace("FEEDSCALE_PROCESSORS", "containerId: orders", `containerId: "my order's"`),
			remedy{"/shop/my order's", "read metadata", "there is no container my order's in database shop", "az cosmosdb sql container list --resource-group RESOURCE_GROUP --account-name ACCOUNT --database-name shop "}},
		{"a lease container that is not there", replace("FEEDSCALE_PROCESSORS", "containerId: orders", "containerId: orders, leaseContainerId: my leases"),
			remedy{"/shop/my leases", "query leases", "there is no lease container my leases in database shop", "az cosmosdb sql container create --resource-group RESOURCE_GROUP --account-name ACCOUNT --database-name shop --name 'my leases' --partition-key-path /id"}},
		{"leases that must not be queried", refuse(cosmosfake.QueryDocuments, cosmosfake.Answer{Status: 403}),
			remedy{"/shop/leases", "query leases", "forbids to query the leases in shop/leases", "az cosmosdb update"}},
		{"a feed that must not be read", refuse(cosmosfake.ReadChangeFeed, cosmosfake.Answer{Status: 403}),
			remedy{"/shop/orders", "read feed", "forbids to read container shop/orders", "az cosmosdb update"}},
		{"partition key ranges that must not be read", refuse(cosmosfake.ReadRanges, cosmosfake.Answer{Status: 403}),
			remedy{"/shop/orders", "read feed", "forbids to read container shop/orders", "az cosmosdb update"}},
		{"a container that throttles", refuse(cosmosfake.ReadChangeFeed, cosmosfake.Answer{Status: 429, Header: http.Header{"X-Ms-Retry-After-Ms": {"1"}}}),
			remedy{"/shop/orders", "read feed", "throttles", "az cosmosdb sql container throughput update --resource-group RESOURCE_GROUP --account-name ACCOUNT --database-name shop --name orders "}},
		{"a state file below another file", func(t *testing.T, _ *testworld.Shop, s map[string]string) {
			occupied := filepath.Join(t.TempDir(), "file")
			testworld.Must(t, os.WriteFile(occupied, nil, 0o600))
			s["FEEDSCALE_STATE"] = "bolt:" + filepath.Join(occupied, "feedscale.db")
		}, remedy{"feedscale.db", "write state", "not a directory", "give another file in FEEDSCALE_STATE"}},
		{"a state file that is none", func(t *testing.T, _ *testworld.Shop, s map[string]string) {
			testworld.Must(t, os.WriteFile(strings.TrimPrefix(s["FEEDSCALE_STATE"], "bolt:"), bytes.Repeat([]byte("no state file"), 1000), 0o600))
		}, remedy{"feedscale.db", "write state", "not a whole state file", "give another file in FEEDSCALE_STATE"}},
		{"a storage account that is not there", func(_ *testing.T, _ *testworld.Shop, s map[string]string) {
			s["TABLES"] = "AccountName=shop;AccountKey=" + badKey + ";TableEndpoint=https://shop.invalid/"
			s["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
		}, remedy{"shop.invalid/feedscale", "dns", "shop.invalid", "correct the host in setting TABLES"}},
		{"a queue that is not there", set("FEEDSCALE_EVENTS", "servicebus:SERVICEBUS/nowhere"),
			remedy{"/nowhere", "send", `queue or topic "nowhere" does not exist`, "az servicebus queue create --resource-group RESOURCE_GROUP --namespace-name NAMESPACE --name nowhere "}},
		{"a policy that may not send", bus(servicebusfake.OpAttach, servicebusfake.Answer{Condition: "amqp:unauthorized-access"}),
			remedy{"/" + testworld.Queue, "send", "the key for queue or topic \"" + testworld.Queue + "\" is refused", "az servicebus namespace authorization-rule keys list --resource-group RESOURCE_GROUP --namespace-name NAMESPACE "}},
		{"network rules of Service Bus", bus(servicebusfake.OpPutToken, servicebusfake.Answer{Condition: "amqp:unauthorized-access", Status: 401, Description: "Ip has been prevented to connect to the endpoint."}),
			remedy{"/" + testworld.Queue, "send", "network rules", "az servicebus namespace network-rule-set ip-rule add --resource-group RESOURCE_GROUP --namespace-name NAMESPACE --ip-rule ip-address=PUBLIC_IP action=Allow"}},
		{"a namespace at a closed port", set("SERVICEBUS", "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey="+badKey+";UseDevelopmentEmulator=true"),
			remedy{"127.0.0.1:1/" + testworld.Queue, "connection", "connection refused", "start what is to listen"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, p := checking(t, cosmosfake.Options{})
			c.change(t, w, p.settings)
			got, _ := p.check(t)
			wantOnly(t, got, c.want)
		})
	}
}

// TestAStateFileThatAPollerHasOpenIsNoFailure checks beside run, as whoever looks for a mistake does.
func TestAStateFileThatAPollerHasOpenIsNoFailure(t *testing.T) {
	t.Parallel()
	_, p := checking(t, cosmosfake.Options{})
	store, err := boltstore.Open(strings.TrimPrefix(p.settings["FEEDSCALE_STATE"], "bolt:"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	got, r := p.check(t)
	at := slices.IndexFunc(got.Checks, func(l check.Line) bool { return l.Check == "write state" })
	if l := got.Checks[at]; !got.OK || r.Status != 0 || l.Status != check.Warn || !strings.Contains(l.Detail, "another process has the state file open") || !strings.Contains(*l.Fix, "another file in FEEDSCALE_STATE") {
		t.Errorf("got %+v of %+v", l, r)
	}
}

func TestWhatDependsOnAFailureIsSkippedWithItsReason(t *testing.T) {
	t.Parallel()
	_, p := checking(t, cosmosfake.Options{})
	p.settings["COSMOS"] = "AccountEndpoint=https://shop.invalid/;AccountKey=" + badKey + ";"
	got, _ := p.check(t)
	reasons := make(map[string]int)
	for _, l := range got.Checks {
		if l.Status == check.Skip && strings.HasPrefix(l.Target, "shop.invalid") {
			reasons[l.Detail]++
		}
	}
	want := map[string]int{"not tried, since dns fails for shop.invalid": 9, "setting COSMOS holds a key: no token is needed": 1}
	if !maps.Equal(reasons, want) {
		t.Errorf("got %v, want %v", reasons, want)
	}
	if last := got.Checks[len(got.Checks)-1]; last.Check != "send" || last.Status != check.OK {
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
			_, p := checking(t, cosmosfake.Options{Now: func() time.Time { return time.Now().Add(c.off) }})
			got, r := p.check(t)
			if c.fails != "" {
				wantOnly(t, got, remedy{"", "clock", c.fails, "timedatectl set-ntp true"})
			} else if !got.OK {
				t.Errorf("it does not hold: %s", r.Stdout)
			}
			if !slices.ContainsFunc(got.Checks, func(l check.Line) bool { return l.Check == "read feed" && l.Status == check.OK }) {
				t.Errorf("a clock keeps the rest from being tried: %s", r.Stdout)
			}
		})
	}
}

func TestWhatManyShareIsTriedOnce(t *testing.T) {
	t.Parallel()
	w, p := checking(t, cosmosfake.Options{})
	w.Container("payments", 1)
	var queries, feeds atomic.Int64
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		switch r.Kind {
		case cosmosfake.QueryDocuments:
			queries.Add(1)
			return &cosmosfake.Answer{Status: 403}
		case cosmosfake.ReadChangeFeed:
			feeds.Add(1)
		}
		return nil
	})
	p.settings["ALIAS"] = p.settings["COSMOS"]
	p.settings["FEEDSCALE_PROCESSORS"] = `{defaults: {connection: COSMOS, databaseId: shop}, processors: [{name: orders, containerId: orders},
		{name: again, connection: ALIAS, containerId: orders, processorName: again}, {name: payments, containerId: payments}]}`
	got, r := p.check(t)
	wantOnly(t, got, remedy{"/shop/leases", "query leases", "forbids", "az cosmosdb update"})
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
			t.Errorf("%s: processors %s, want %s\n%s", line, users[line], want, r.Stdout)
		}
	}
}

func TestADeadEndpointKeepsNothingElseFromBeingTried(t *testing.T) {
	t.Parallel()
	_, p := checking(t, cosmosfake.Options{})
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	testworld.Must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	p.settings["SILENT"] = "AccountEndpoint=http://" + silent.Addr().String() + "/;AccountKey=" + badKey + ";"
	p.settings["FEEDSCALE_PROCESSORS"] = strings.Replace(p.settings["FEEDSCALE_PROCESSORS"], "[{", "[{name: silent, connection: SILENT, databaseId: shop, containerId: orders}, {", 1)
	got, r := p.check(t, "--timeout", "30s")
	var failed, held []string
	for _, l := range got.Checks {
		switch l.Status {
		case check.Fail:
			failed = append(failed, l.Check+" "+l.Target+" "+strings.Join(l.Processors, ","))
		case check.OK:
			held = append(held, l.Check)
		}
	}
	if want := []string{"connection " + silent.Addr().String() + " silent"}; !slices.Equal(failed, want) {
		t.Errorf("failed %q, want %q: %s", failed, want, r.Stdout)
	}
	for _, check := range []string{"read feed", "query leases", "write state", "send"} {
		if !slices.Contains(held, check) {
			t.Errorf("%s does not hold: %s", check, r.Stdout)
		}
	}
}

func TestWhatWasNotTriedInTimeIsSkippedAndDoesNotHold(t *testing.T) {
	t.Parallel()
	_, p := checking(t, cosmosfake.Options{})
	got, r := p.check(t, "--timeout", "1ns")
	for _, l := range got.Checks[1:] { // the first is of the settings, which were read before
		if l.Status != check.Skip || l.Detail != "not tried, since the time was over: raise --timeout" {
			t.Errorf("%s of %s: %s, %s", l.Check, l.Target, l.Status, l.Detail)
		}
	}
	if got.OK || len(got.Checks) < 10 {
		t.Errorf("%s", r.Stdout)
	}
}

// TestCheckPrintsATableForPeople looks for a state file in the folder of this package, where there is
// none.
func TestCheckPrintsATableForPeople(t *testing.T) {
	t.Parallel()
	for golden, width := range map[string]int{"check": 0, "check-terminal": 60} {
		t.Run(golden, func(t *testing.T) {
			t.Parallel()
			_, p := checking(t, cosmosfake.Options{})
			delete(p.settings, "FEEDSCALE_STATE")
			delete(p.settings, "FEEDSCALE_EVENTS")
			var list []string
			for n := range 7 {
				list = append(list, fmt.Sprintf("{name: p%d, connection: COSMOS, databaseId: shop, containerId: nowhere, processorName: p%d}", n, n))
			}
			p.settings["FEEDSCALE_PROCESSORS"] = "{processors: [" + strings.Join(list, ", ") + "]}"
			p.width = width
			r := p.run(t, "check")
			if r.Status != 1 {
				t.Errorf("status %d: %s", r.Status, r.Stderr)
			}
			testworld.Golden(t, *update, golden, masked(r.Stdout))
		})
	}
}

func TestCheckTriesWhatIsNamed(t *testing.T) {
	t.Parallel()
	_, p := checking(t, cosmosfake.Options{})
	p.alsoMissing("")
	if r := p.run(t, "check", "orders"); r.Status != 0 || strings.Contains(r.Stdout, "nowhere") {
		t.Errorf("%+v", r)
	}
	if r := p.run(t, "check", "--failed"); r.Status != 1 || !strings.Contains(r.Stdout, "nowhere") || strings.Contains(r.Stdout, "ok ") {
		t.Errorf("%+v", r)
	}
	if r := p.run(t, "check", "order"); r.Status != 2 || !strings.Contains(r.Stderr, `there is no processor "order"; did you mean orders?`) {
		t.Errorf("%+v", r)
	}
}

func TestCheckLeavesNoFile(t *testing.T) {
	t.Parallel()
	_, p := checking(t, cosmosfake.Options{})
	if got, r := p.check(t); !got.OK {
		t.Errorf("it does not hold: %s", r.Stdout)
	}
	p.leavesNoFile(t)
}

func TestCheckRefusesMistakesWithStatusTwo(t *testing.T) {
	t.Parallel()
	_, p := checking(t, cosmosfake.Options{})
	for _, c := range []struct {
		rule, says string
		settings   map[string]string
		args       []string
	}{
		{"an output that is none", "--output", p.settings, []string{"--output", "yaml"}},
		{"no time at all", "--timeout", p.settings, []string{"--timeout", "0s"}},
		{"no configuration", "there is no such file", nil, nil},
		{"a setting that is wrong", "FEEDSCALE_CONCURRENCY", map[string]string{"FEEDSCALE_CONCURRENCY": "none"}, nil},
	} {
		if r := (feedscale{settings: c.settings}).run(t, append([]string{"check"}, c.args...)...); r.Status != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, c.says) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", c.rule, r.Status, r.Stdout, r.Stderr)
		}
	}
}

func TestCheckSaysABadConfigurationInJSONToo(t *testing.T) {
	t.Parallel()
	r := feedscale{settings: map[string]string{"FEEDSCALE_CONCURRENCY": "none", "FEEDSCALE_STAT": "x"}}.run(t, "check", "--output", "json")
	report := testworld.Decode[check.Report](t, []byte(r.Stdout))
	found := 0
	for _, c := range report.Checks {
		if c.Check == "settings" && c.Status == check.Fail && (strings.HasPrefix(c.Detail, "FEEDSCALE_CONCURRENCY: ") || strings.HasPrefix(c.Detail, "FEEDSCALE_STAT: ")) {
			found++
		}
	}
	if r.Status != 2 || report.OK || found != 2 || !strings.Contains(r.Stderr, "FEEDSCALE_STAT") {
		t.Errorf("%+v", r)
	}
}
