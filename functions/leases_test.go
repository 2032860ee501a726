package main_test

import (
	"encoding/base64"
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

	"github.com/feedscale/feedscale/pkg/changefeed"
	account "github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmos"
)

// ownHost is the host of the connection in these tests: one that has a case.
const ownHost = "localhost"

// leaseWorld is an account with the containers orders, my_orders and leases.
type leaseWorld struct {
	t    *testing.T
	db   *cosmos.Server
	rids map[string]string // by container, as lease ids have them
}

func newLeaseWorld(t *testing.T) *leaseWorld {
	t.Helper()
	db, err := cosmos.Start(cosmos.Options{VersionRetention: time.Hour})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	must(t, db.CreateDatabase("shop"))
	client, err := account.NewAccount(account.Options{Endpoint: db.Endpoint(), Setting: "COSMOS", Key: cosmos.WellKnownKey, Concurrency: 1})
	must(t, err)
	w := &leaseWorld{t: t, db: db, rids: make(map[string]string)}
	for _, id := range []string{"orders", "my_orders", "leases"} {
		must(t, db.CreateContainer("shop", cosmos.ContainerSpec{ID: id, PartitionKey: []string{"/id"}}))
		rid, _, err := client.RID(t.Context(), account.Container{Database: "shop", ID: id})
		must(t, err)
		databaseRID, err := changefeed.DatabaseRID(rid)
		must(t, err)
		w.rids[id] = databaseRID + "_" + rid
	}
	return w
}

func (w *leaseWorld) settings() map[string]string {
	return map[string]string{"COSMOS": strings.Replace(w.db.ConnectionString(), "127.0.0.1", ownHost, 1)}
}

// lease writes a lease; fields add to it, or take away with null.
func (w *leaseWorld) lease(prefix, token string, fields map[string]any) {
	w.t.Helper()
	lease := map[string]any{
		"id": prefix + ".." + token, "LeaseToken": token, "Owner": "worker", "ContinuationToken": `"0"`,
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano),
	}
	for name, value := range fields {
		if lease[name] = value; value == nil {
			delete(lease, name)
		}
	}
	must(w.t, w.db.Upsert("shop", "leases", lease))
}

// everyFlavour writes leases as each SDK does, in each of their formats.
func (w *leaseWorld) everyFlavour() {
	w.t.Helper()
	whole := map[string]any{"Range": map[string]any{"min": "", "max": "FF"}}
	state := base64.URLEncoding.EncodeToString([]byte(`{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"},"Continuation":{"V":1,"Continuation":[{"token":"\"0\"","range":{"min":"","max":"FF"}}]}}`))
	dotNet := map[string]any{"version": 0, "FeedRange": whole, "Mode": "Incremental Feed", "properties": map[string]any{}}
	w.lease("projection"+ownHost+"_"+w.rids["orders"], "0", dotNet)
	w.lease(ownHost+"_"+w.rids["orders"], "-FF", map[string]any{"version": 1, "FeedRange": whole, "Mode": "Full-Fidelity Feed"})
	w.lease("audit_v2LocalHost_shop_my_orders", "0", nil)
	w.lease("audit_v2LocalHost_"+w.rids["my_orders"], "-FF", map[string]any{"version": 1, "feedRange": whole, "ContinuationToken": state})
	w.lease("legacyshop.documents.azure.com_"+w.rids["orders"], "0", map[string]any{"LeaseToken": nil, "PartitionId": "0"})
	w.lease("my_appcosmos.internal_shop_orders", "0", nil)
	w.lease("Projection"+ownHost+"_"+w.rids["orders"], "0", dotNet)
	must(w.t, w.db.Upsert("shop", "leases", map[string]any{"id": "projection" + ownHost + "_" + w.rids["orders"] + ".info"}))
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
	w.lease("projection"+ownHost+"_"+w.rids["orders"], "1", map[string]any{"Owner": "dead", "timestamp": time.Now().Add(-10 * time.Minute).UTC().Format(time.RFC3339)})
	const gone = "_q0oIAA==_q0oIALS6YvQ="
	w.lease("old"+ownHost+gone, "0", nil)
	w.lease("farother.documents.azure.com"+gone, "0", nil)
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
		`# audit_v2LocalHost_shop_my_orders: the same processor as \S+`,
		`# \S+: the ids join processor name and host: legacyshop\.documents\.azure\.com\. .*`,
		`  accountHost: legacyshop\.documents\.azure\.com`,
		`  accountHost: LocalHost`,
		`  processorName: audit_v2`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(r.stdout) {
			t.Errorf("no line matches %s", want)
		}
	}
	for _, never := range []string{".info", "leaseContainerId", "\n  leaseDatabaseId", "AccountKey", cosmos.WellKnownKey, "\x1b"} {
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
	w.lease("projection"+ownHost+"_"+w.rids["orders"], "0", map[string]any{"timestamp": nil, "Owner": nil})
	r := command(t, t.TempDir(), w.settings(), "leases", "--connection", "COSMOS", "--database", "shop", "--output", "json")
	got := regexp.MustCompile(`"(requestCharge|requests|newestRenewalSeconds|oldestRenewalSeconds)":[0-9.]+`).ReplaceAllString(strings.TrimSpace(r.stdout), `"$1":1`)
	want := `{"leaseContainer":"shop/leases","account":"localhost","requestCharge":1,"requests":1,"processors":[{` +
		`"prefix":"projectionlocalhost_` + w.rids["orders"] + `","processorName":"projection","accountHost":"localhost","head":"projectionlocalhost",` +
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
			w.lease("p"+ownHost+"_"+w.rids["orders"], "0", nil)
			w.lease("p"+ownHost+"_"+w.rids["orders"], "7", map[string]any{"LeaseToken": nil})
		}, list, 1, `lease plocalhost_\S+\.\.7: .*LeaseToken`, ""},
		{"a container whose names may not be read", func(w *leaseWorld) {
			w.lease("p"+ownHost+"_"+w.rids["orders"], "0", nil)
			w.db.Control(func(r *cosmos.Request) *cosmos.Answer {
				if r.Kind == cosmos.ReadDatabase {
					return &cosmos.Answer{Status: http.StatusForbidden}
				}
				return nil
			})
		}, list, 1, `plocalhost_\S+: .*403`, ""},
		{"names of which several containers exist", func(w *leaseWorld) {
			must(w.t, w.db.CreateDatabase("shop_my"))
			must(w.t, w.db.CreateContainer("shop_my", cosmos.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}}))
			w.lease("p"+ownHost+"_shop_my_orders", "0", nil)
		}, list, 0, `# plocalhost_shop_my_orders: .*shop_my_orders`, ""},
		{"names that can be parted in several ways, behind a host that is not known", func(w *leaseWorld) { w.lease("a_b_c_d", "0", nil) }, list, 0, `(?s)fill in what a_b_c_d stands for.*#   accountHost: '\?'`, ""},
		{"a head that ends with no host", func(w *leaseWorld) { w.lease("日本_"+w.rids["orders"], "0", nil) }, list, 0, `#   accountHost: '\?'`, ""},
		{"ids of no known form", func(w *leaseWorld) { w.lease("p", "0", nil) }, list, 0, `# p: the ids are none that an SDK is known to write`, ""},
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
