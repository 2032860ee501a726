package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// ownHost is the host of the connection in these tests: one that has a case.
const ownHost = "localhost"

// leaseWorld is an account with the containers orders, my_orders and leases.
type leaseWorld struct {
	t  *testing.T
	db *cosmosfake.Server
}

func newLeaseWorld(t *testing.T) *leaseWorld {
	t.Helper()
	db, err := cosmosfake.Start(cosmosfake.Options{VersionRetention: time.Hour})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	must(t, db.CreateDatabase("shop"))
	for _, id := range []string{"orders", "my_orders", "leases"} {
		must(t, db.CreateContainer("shop", cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}}))
	}
	return &leaseWorld{t: t, db: db}
}

func (w *leaseWorld) settings() map[string]string {
	return map[string]string{"COSMOS": strings.Replace(w.db.ConnectionString(), "127.0.0.1", ownHost, 1)}
}

// put puts documents into the lease container.
func (w *leaseWorld) put(documents ...map[string]any) {
	w.t.Helper()
	for _, d := range documents {
		must(w.t, w.db.Upsert("shop", "leases", d))
	}
}

// leasesOf writes the leases of a processor of one of the containers.
func (w *leaseWorld) leasesOf(name, host, container string) leasefake.Processor {
	w.t.Helper()
	of, err := leasefake.Processor{Name: name, Host: host, Database: "shop", Container: container}.In(w.t.Context(), w.db)
	must(w.t, err)
	return of
}

// everyFlavour writes leases as each SDK does, in each of their formats.
func (w *leaseWorld) everyFlavour() {
	w.t.Helper()
	whole, versions := leasefake.Range{Max: "FF"}, at(0)
	versions.Mode = leasefake.FullFidelity
	projection, audit := w.leasesOf("projection", ownHost, "orders"), w.leasesOf("audit_v2", "LocalHost", "my_orders")
	w.put(
		projection.DotNetPK("0", whole, at(0)),
		leasefake.Info(projection.DotNetPrefix()),
		w.leasesOf("", ownHost, "orders").DotNetEPK(whole, versions),
		audit.JavaPK("0", at(0)),
		audit.JavaEPK(whole, leasefake.FromNow(), at(0)),
		w.leasesOf("legacy", "shop.documents.azure.com", "orders").V2("0", at(0)),
		w.leasesOf("my_app", "cosmos.internal", "orders").JavaPK("0", at(0)),
		w.leasesOf("Projection", ownHost, "orders").DotNetPK("0", whole, at(0)),
	)
}

func TestThePastedLinesFindTheProcessors(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(t)
	w.everyFlavour()
	for n := range 3 {
		must(t, w.db.Upsert("shop", "orders", map[string]any{"id": fmt.Sprint(n)}))
		must(t, w.db.Upsert("shop", "my_orders", map[string]any{"id": fmt.Sprint(n)}))
	}
	folder := t.TempDir()
	listed := command(t, folder, w.settings(), "leases", "--connection", "COSMOS", "--database", "shop")
	if listed.status != 0 || listed.stderr != "" {
		t.Fatalf("status %d: %s", listed.status, listed.stderr)
	}
	at := strings.Index(listed.stdout, "processors:\n")
	if at < 0 {
		t.Fatalf("no lines to paste:\n%s", listed.stdout)
	}
	must(t, os.WriteFile(filepath.Join(folder, "processors.yaml"), []byte(listed.stdout[at:]), 0o600))
	polled := command(t, folder, w.settings(), "poll", "--dry-run", "--output", "json")
	var out struct {
		Processors []struct {
			Name           string
			Lag            *int64
			Status         string
			PartitionCount *int
			Complete       bool
		}
	}
	if err := json.Unmarshal([]byte(polled.stdout), &out); err != nil {
		t.Fatalf("%v: %s%s", err, polled.stdout, polled.stderr)
	}
	got := make(map[string]string)
	for _, p := range out.Processors {
		if p.Lag == nil || p.PartitionCount == nil {
			t.Errorf("%s is unknown", p.Name)
			continue
		}
		got[p.Name] = fmt.Sprintf("%s, lag %d, %d partitions, complete %v", p.Status, *p.Lag, *p.PartitionCount, p.Complete)
	}
	want := make(map[string]string)
	for _, name := range []string{"projection", "projection-orders", "orders", "audit-v2", "orders-2", "orders-3"} {
		want[name] = "lagging, lag 3, 1 partitions, complete true"
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v\n%s", got, want, listed.stdout)
	}
}

func TestLeasesPrintsATableForPeople(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(t)
	w.everyFlavour()
	gone := leasefake.Processor{Name: "old", Host: ownHost, DatabaseRID: "q0oIAA==", ContainerRID: "q0oIALS6YvQ="}
	elsewhere := gone
	elsewhere.Name, elsewhere.Host = "far", "other.documents.azure.com"
	w.put(
		w.leasesOf("projection", ownHost, "orders").DotNetPKOld("1", leasefake.Fields{Owner: "dead", Updated: time.Now().Add(-10 * time.Minute)}),
		gone.DotNetPKOld("0", at(0)),
		elsewhere.DotNetPKOld("0", at(0)),
	)
	r := command(t, t.TempDir(), w.settings(), "leases", "--connection", "COSMOS", "--database", "shop")
	if r.status != 0 {
		t.Errorf("status %d, want 0: all was read: %s", r.status, r.stderr)
	}
	for _, want := range []string{
		`shop/leases in account localhost: 10 leases with 9 prefixes \(\d+\.\d RU\)`,
		`PROCESSOR +HOST +CONTAINER +FORMAT +MODE +PARTITIONS +LIVE +NEWEST +OLDEST +OWNERS`,
		`projection +localhost +shop/orders +\.NET PK +incremental +2 +1/2 +\d+s +10m +dead \(gone for 10m\), worker`,
		`- +localhost +shop/orders +\.NET EPK +all versions and deletes +1 +1/1 +\d+s +\d+s +worker`,
		`audit_v2 +LocalHost +shop/my_orders +Java PK +incremental .*`,
		`audit_v2 +LocalHost +shop/my_orders +Java EPK +incremental .*`,
		`\? +legacyshop\.documents\.azure\.com +shop/orders +V2 +incremental .*`,
		`\? +my_appcosmos\.internal +shop/orders +Java PK +incremental .*`,
		`# my_appcosmos\.internal_shop_orders: .* If that host is not one of account localhost, .* leaseConnection: COSMOS\.`,
		`old +localhost +q0oIAA==/q0oIALS6YvQ= +\.NET PK .*`,
		`# \S+: account localhost has no container q0oIAA==/q0oIALS6YvQ=: it was deleted or created anew, and these leases are left over`,
		`# \S+: .* or it is in another account, whose host ends farother\.documents\.azure\.com: .*`,
		`#   leaseConnection: COSMOS`,
		`# audit_v2LocalHost_\S+: the same processor as audit_v2LocalHost_\S+`, // which comes first is up to the RIDs
		`# \S+: the ids join processor name and host: legacyshop\.documents\.azure\.com\. .*`,
		`  accountHost: legacyshop\.documents\.azure\.com`,
		`  accountHost: LocalHost`,
		`  processorName: audit_v2`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(r.stdout) {
			t.Errorf("no line matches %s", want)
		}
	}
	for _, never := range []string{".info", "leaseContainerId", "\n  leaseDatabaseId", "AccountKey", cosmosfake.WellKnownKey, "\x1b"} {
		if strings.Contains(r.stdout, never) {
			t.Errorf("%q is printed", never)
		}
	}
	if t.Failed() {
		t.Log(r.stdout)
	}
}

func TestLeasesPrintsJSON(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(t)
	of := w.leasesOf("projection", ownHost, "orders")
	w.put(of.DotNetPKOld("0", leasefake.Fields{Continuation: leasefake.At(0)}))
	r := command(t, t.TempDir(), w.settings(), "leases", "--connection", "COSMOS", "--database", "shop", "--output", "json")
	got := regexp.MustCompile(`"(requestCharge|requests|newestRenewalSeconds|oldestRenewalSeconds)":[0-9.]+`).ReplaceAllString(strings.TrimSpace(r.stdout), `"$1":1`)
	want := `{"leaseContainer":"shop/leases","account":"localhost","requestCharge":1,"requests":1,"processors":[{` +
		`"prefix":"` + of.DotNetPrefix() + `","processorName":"projection","accountHost":"localhost","head":"projectionlocalhost",` +
		`"databaseId":"shop","containerId":"orders","monitored":"shop/orders","formats":[".NET PK"],"modes":["incremental"],"partitions":1,` +
		`"owners":[],"newestRenewalSeconds":1,"oldestRenewalSeconds":1,"unreadable":[],"note":null,"error":null,` +
		`"entry":{"name":"projection","connection":"COSMOS","databaseId":"shop","containerId":"orders","processorName":"projection"}}]}`
	if r.status != 0 || got != want {
		t.Errorf("status %d\ngot  %s\nwant %s\n%s", r.status, got, want, r.stderr)
	}
}

func TestWhatCannotBeReadOfALeaseContainerIsNamed(t *testing.T) {
	t.Parallel()
	list := []string{"leases", "--connection", "COSMOS", "--database", "shop"}
	for _, c := range []struct {
		rule    string
		arrange func(w *leaseWorld)
		args    []string
		status  int
		stdout  string
		stderr  string
	}{
		{"a lease that is none: the others are listed", func(w *leaseWorld) {
			of := w.leasesOf("p", ownHost, "orders")
			broken := of.DotNetPKOld("7", at(0))
			delete(broken, "LeaseToken")
			w.put(of.DotNetPKOld("0", at(0)), broken)
		}, list, 1, `lease plocalhost_\S+\.\.7: .*LeaseToken`, ""},
		{"a container whose names may not be read", func(w *leaseWorld) {
			w.put(w.leasesOf("p", ownHost, "orders").DotNetPKOld("0", at(0)))
			w.db.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind == cosmosfake.ReadDatabase {
					return &cosmosfake.Answer{Status: http.StatusForbidden}
				}
				return nil
			})
		}, list, 1, `plocalhost_\S+: .*403`, ""},
		{"names of which several containers exist", func(w *leaseWorld) {
			must(w.t, w.db.CreateDatabase("shop_my"))
			must(w.t, w.db.CreateContainer("shop_my", cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}}))
			w.put(w.leasesOf("p", ownHost, "my_orders").JavaPK("0", at(0)))
		}, list, 0, `# plocalhost_shop_my_orders: .*shop_my_orders`, ""},
		{"names that can be parted in several ways, behind a host that is not known", func(w *leaseWorld) {
			w.put(leasefake.Processor{Host: "a_b", Database: "c", Container: "d"}.JavaPK("0", at(0)))
		}, list, 0, `(?s)fill in what a_b_c_d stands for.*#   accountHost: '\?'`, ""},
		{"a head that ends with no host", func(w *leaseWorld) { w.put(w.leasesOf("", "日本", "orders").DotNetPKOld("0", at(0))) }, list, 0, `#   accountHost: '\?'`, ""},
		{"ids of no known form", func(w *leaseWorld) { w.put(map[string]any{"id": "p..0", "LeaseToken": "0"}) }, list, 0, `# p: the ids are none that an SDK is known to write`, ""},
		{"a lease container that is empty", func(*leaseWorld) {}, list, 0, `0 leases`, ""},
		{"a lease container that does not exist", func(*leaseWorld) {}, append(list, "--container", "nowhere"), 1, "", `shop/nowhere does not exist in account localhost: correct --database and --container`},
		{"a connection that is not set", func(*leaseWorld) {}, []string{"leases", "--connection", "OTHER", "--database", "shop"}, 2, "", `the setting OTHER is missing`},
		{"no connection", func(*leaseWorld) {}, []string{"leases", "--database", "shop"}, 2, "", `--connection and --database are needed`},
		{"no database", func(*leaseWorld) {}, []string{"leases", "--connection", "COSMOS"}, 2, "", `--connection and --database are needed`},
		{"another output", func(*leaseWorld) {}, append(list, "--output", "xml"), 2, "", `allowed are table and json`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newLeaseWorld(t)
			c.arrange(w)
			r := command(t, t.TempDir(), w.settings(), c.args...)
			if r.status != c.status || !regexp.MustCompile(c.stdout).MatchString(r.stdout) || !regexp.MustCompile(c.stderr).MatchString(r.stderr) {
				t.Errorf("status %d, want %d\n%s%s", r.status, c.status, r.stdout, r.stderr)
			}
			if c.stdout == "" && r.stdout != "" || c.stderr == "" && r.stderr != "" {
				t.Errorf("more is printed than is wanted: %q, %q", r.stdout, r.stderr)
			}
		})
	}
}
