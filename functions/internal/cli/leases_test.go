package cli_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// ownHost is the host of the connection in these tests: one that has a case.
const ownHost = "localhost"

// leaseWorld is an account with the containers orders, my_orders and leases, whose clock stands still
// at noon.
type leaseWorld struct {
	*testworld.World
	feedscale
	t *testing.T
}

func newLeaseWorld(t *testing.T) *leaseWorld {
	t.Helper()
	now := func() time.Time { return noon }
	w := testworld.New(t, testworld.Options{Account: cosmosfake.Options{VersionRetention: time.Hour, Now: now}})
	w.Container("orders", 1)
	w.Container("my_orders", 1)
	settings := map[string]string{"COSMOS": strings.Replace(w.Account.ConnectionString(), "127.0.0.1", ownHost, 1)}
	return &leaseWorld{w, feedscale{settings: settings, now: now}, t}
}

// renewed is what a lease holds whose owner renewed it 10 s ago.
func renewed(lsn int64) leasefake.Fields {
	return leasefake.Fields{Owner: "worker", Continuation: leasefake.At(lsn), Updated: noon.Add(-10 * time.Second)}
}

// put puts documents into the lease container.
func (w *leaseWorld) put(documents ...any) {
	w.t.Helper()
	w.Put(testworld.Leases, documents...)
}

// everySDK writes leases as each SDK does.
func (w *leaseWorld) everySDK() {
	w.t.Helper()
	whole, versions := leasefake.Range{Max: "FF"}, renewed(0)
	versions.Mode = leasefake.FullFidelity
	projection := w.LeasesOf("projection", ownHost, "orders")
	w.put(
		projection.DotNetPK("0", whole, renewed(0)),
		leasefake.Info(projection.DotNetPrefix()),
		w.LeasesOf("", ownHost, "orders").DotNetEPK(whole, versions),
		w.LeasesOf("audit_v2", "LocalHost", "my_orders").JavaPK("0", renewed(0)),
		w.LeasesOf("legacy", "shop.documents.azure.com", "orders").V2("0", renewed(0)),
		w.LeasesOf("my_app", "cosmos.internal", "orders").JavaPK("0", renewed(0)),
		w.LeasesOf("Projection", ownHost, "orders").DotNetPK("0", whole, renewed(0)),
	)
}

func TestThePastedLinesFindTheProcessors(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(t)
	w.everySDK()
	w.put(w.LeasesOf("audit_v2", "LocalHost", "my_orders").JavaEPK(leasefake.Range{Max: "FF"}, leasefake.FromNow(), renewed(0)))
	w.Write("orders", 3)
	w.Write("my_orders", 3)
	listed := w.run(t, "leases", "--connection", "COSMOS", "--database", "shop")
	if listed.Status != 0 || listed.Stderr != "" {
		t.Fatalf("status %d: %s", listed.Status, listed.Stderr)
	}
	at := strings.Index(listed.Stdout, "processors:\n")
	if at < 0 {
		t.Fatalf("no lines to paste:\n%s", listed.Stdout)
	}
	file := filepath.Join(t.TempDir(), "processors.yaml")
	testworld.Must(t, os.WriteFile(file, []byte(listed.Stdout[at:]), 0o600))
	w.settings["FEEDSCALE_STATE"] = stateFile(t)
	if twin := regexp.MustCompile(`(?m)^# audit_v2LocalHost_\S+: the same processor as audit_v2LocalHost_\S+$`); len(twin.FindAllString(listed.Stdout, -1)) != 1 { // which of them is up to the resource ids
		t.Errorf("the two formats of audit_v2 are not told to be the same:\n%s", listed.Stdout)
	}
	r := w.run(t, "poll", "--dry-run", "--output", "json", "--config", file)
	got := make(map[string]string)
	for _, p := range testworld.Decode[polled](t, []byte(r.Stdout)).Processors {
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
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v\n%s", got, want, listed.Stdout)
	}
}

func TestLeasesPrintsATableForPeople(t *testing.T) {
	t.Parallel()
	for golden, width := range map[string]int{"leases": 0, "leases-terminal": 60} {
		t.Run(golden, func(t *testing.T) {
			t.Parallel()
			w := newLeaseWorld(t)
			w.everySDK()
			gone := leasefake.Processor{Name: "old", Host: ownHost, DatabaseRID: "q0oIAA==", ContainerRID: "q0oIALS6YvQ="}
			elsewhere := gone
			elsewhere.Name, elsewhere.Host = "far", "other.documents.azure.com"
			w.put(
				w.LeasesOf("projection", ownHost, "orders").DotNetPKOld("1", leasefake.Fields{Owner: "dead", Updated: noon.Add(-10 * time.Minute)}),
				gone.DotNetPKOld("0", renewed(0)),
				elsewhere.DotNetPKOld("0", renewed(0)),
			)
			w.width = width
			r := w.run(t, "leases", "--connection", "COSMOS", "--database", "shop")
			if r.Status != 0 {
				t.Errorf("status %d, want 0: all was read: %s", r.Status, r.Stderr)
			}
			testworld.Golden(t, *update, golden, masked(r.Stdout))
			for _, never := range []string{".info", "leaseContainerId", "\n  leaseDatabaseId", "AccountKey", cosmosfake.WellKnownKey} {
				if strings.Contains(r.Stdout, never) {
					t.Errorf("%q is printed", never)
				}
			}
		})
	}
}

func TestLeasesPrintsJSON(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(t)
	of := w.LeasesOf("projection", ownHost, "orders")
	w.put(of.DotNetPKOld("0", leasefake.Fields{Continuation: leasefake.At(0)}))
	r := w.run(t, "leases", "--connection", "COSMOS", "--database", "shop", "--output", "json")
	got := masked(strings.TrimSpace(r.Stdout))
	want := `{"leaseContainer":"shop/leases","account":"localhost","requestCharge":#,"requests":4,"processors":[{` +
		masked(`"prefix":"`+of.DotNetPrefix()+`"`) + `,"processorName":"projection","accountHost":"localhost","head":"projectionlocalhost",` +
		`"databaseId":"shop","containerId":"orders","monitored":"shop/orders","formats":[".NET PK"],"modes":["incremental"],"partitions":1,` +
		`"owners":[],"newestRenewalSeconds":0,"oldestRenewalSeconds":0,"unreadable":[],"note":null,"error":null,` +
		`"entry":{"name":"projection","connection":"COSMOS","databaseId":"shop","containerId":"orders","processorName":"projection"}}]}`
	if r.Status != 0 || got != want {
		t.Errorf("status %d\ngot  %s\nwant %s\n%s", r.Status, got, want, r.Stderr)
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
			of := w.LeasesOf("p", ownHost, "orders")
			broken := of.DotNetPKOld("7", renewed(0))
			delete(broken, "LeaseToken")
			w.put(of.DotNetPKOld("0", renewed(0)), broken)
		}, list, 1, `lease plocalhost_\S+\.\.7: .*LeaseToken`, ""},
		{"a container whose names may not be read", func(w *leaseWorld) {
			w.put(w.LeasesOf("p", ownHost, "orders").DotNetPKOld("0", renewed(0)))
			w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind == cosmosfake.ReadDatabase {
					return &cosmosfake.Answer{Status: http.StatusForbidden}
				}
				return nil
			})
		}, list, 1, `plocalhost_\S+: .*403`, ""},
		{"names of which several containers exist", func(w *leaseWorld) {
			testworld.Must(w.t, w.Account.CreateDatabase("shop_my"))
			testworld.Must(w.t, w.Account.CreateContainer("shop_my", cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}}))
			w.put(w.LeasesOf("p", ownHost, "my_orders").JavaPK("0", renewed(0)))
		}, list, 0, `# plocalhost_shop_my_orders: .*shop_my_orders`, ""},
		{"names that can be parted in several ways, behind a host that is not known", func(w *leaseWorld) {
			w.put(leasefake.Processor{Host: "a_b", Database: "c", Container: "d"}.JavaPK("0", renewed(0)))
		}, list, 0, `write an entry with the names that a_b_c_d stands for`, ""},
		{"a head that is no host", func(w *leaseWorld) { w.put(w.LeasesOf("", "日本", "orders").DotNetPKOld("0", renewed(0))) }, list, 0, `the processors file does not take these leases: accountHost: `, ""},
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
			r := w.run(t, c.args...)
			if r.Status != c.status || !regexp.MustCompile(c.stdout).MatchString(r.Stdout) || !regexp.MustCompile(c.stderr).MatchString(r.Stderr) {
				t.Errorf("status %d, want %d\n%s%s", r.Status, c.status, r.Stdout, r.Stderr)
			}
			if c.stdout == "" && r.Stdout != "" || c.stderr == "" && r.Stderr != "" {
				t.Errorf("more is printed than is wanted: %q, %q", r.Stdout, r.Stderr)
			}
		})
	}
}
