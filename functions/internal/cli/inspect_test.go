package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// inspected is what `inspect --output json` prints.
type inspected struct {
	Lease     string
	Owner     *string
	Position  *string
	Splitting bool
	Note      *string
	Documents []struct {
		RangeID      string
		ID           *string
		PartitionKey []json.RawMessage
		Bytes        *int
		LSN          *int64
		Written      *time.Time
		Age          *int64 `json:"changeAgeSeconds"`
		Operation    *string
		Document     json.RawMessage
	}
}

// stuck is a processor of a container of its own, which is stuck somewhere.
type stuck struct {
	*testworld.World
	feedscale
	leases leasefake.Processor
	writes atomic.Int64
}

func newStuck(t *testing.T, spec cosmosfake.ContainerSpec, fields string) *stuck {
	t.Helper()
	now := func() time.Time { return noon }
	s := &stuck{World: testworld.New(t, testworld.Options{Account: cosmosfake.Options{Now: now, VersionRetention: time.Hour}})}
	spec.ID = "orders"
	s.Create(spec)
	s.leases = s.LeasesOf("", "shop.documents.azure.com", "orders")
	s.feedscale = feedscale{now: func() time.Time { return noon.Add(90 * time.Second) }, settings: map[string]string{
		"COSMOS":          s.Account.ConnectionString(),
		"FEEDSCALE_STATE": stateFile(t),
		"FEEDSCALE_PROCESSORS": `{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders, ` +
			`accountHost: shop.documents.azure.com` + fields + `}]}`,
	}}
	s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		switch r.Kind {
		case cosmosfake.ReadAccount, cosmosfake.ReadContainer, cosmosfake.QueryDocuments, cosmosfake.PlanQuery, cosmosfake.ReadRanges, cosmosfake.ReadChangeFeed:
		default:
			s.writes.Add(1)
		}
		return nil
	})
	return s
}

// inspect runs the command, which has to succeed.
func (s *stuck) inspect(t *testing.T, args ...string) inspected {
	t.Helper()
	r := s.run(t, append([]string{"inspect", "orders", "-o", "json"}, args...)...)
	if r.Status != program.StatusOK || r.Stderr != "" {
		t.Fatalf("status %d: %s", r.Status, r.Stderr)
	}
	return testworld.Decode[inspected](t, []byte(r.Stdout))
}

// named lists the documents, each as its range and id.
func (i inspected) named() string {
	var names []string
	for _, d := range i.Documents {
		id := "?"
		if d.ID != nil {
			id = *d.ID
		}
		names = append(names, d.RangeID+"/"+id)
	}
	return strings.Join(names, " ")
}

var byTenant = cosmosfake.ContainerSpec{PartitionKey: []string{"/tenant"}}

func TestInspectNamesTheDocumentThatAPartitionIsStuckOn(t *testing.T) {
	t.Parallel()
	s := newStuck(t, byTenant, "")
	for i := range 3 {
		s.Put("orders", map[string]any{"id": fmt.Sprint("order-", i), "tenant": "acme", "secret": "s3cr3t"})
	}
	s.Put(testworld.Leases, s.leases.DotNetPK("0", leasefake.Range{Max: "FF"}, renewed(1)))
	got := s.inspect(t, "0")
	d := got.Documents[0]
	if got.named() != "0/order-1" || string(d.PartitionKey[0]) != `"acme"` || *d.LSN != 2 || !d.Written.Equal(noon) || d.Age == nil || *d.Bytes < 100 || string(d.Document) != "null" {
		t.Errorf("got %+v", got)
	}
	if *got.Owner != "worker" || *got.Position != `"1"` || got.Note != nil {
		t.Errorf("got %+v", got)
	}
	if got := s.inspect(t, "0", "--count", "5"); got.named() != "0/order-1 0/order-2" {
		t.Errorf("several: %s", got.named())
	}
	if got := s.inspect(t, "0", "--document"); !strings.Contains(string(got.Documents[0].Document), "s3cr3t") {
		t.Errorf("the contents are %s", got.Documents[0].Document)
	}
	table := s.run(t, "inspect", "orders", "0")
	for _, want := range []string{"position       ", `"1"`, "document       order-1\n", "partition key  \"acme\"\n", "2026-03-01T12:00:00Z, 0s ago", "LSN            2\n"} {
		if !strings.Contains(table.Stdout, want) {
			t.Errorf("no %q in\n%s", want, table.Stdout)
		}
	}
	if table.Status != 0 || strings.Contains(table.Stdout+table.Stderr, "s3cr3t") {
		t.Errorf("status %d, contents without --document:\n%s", table.Status, table.Stdout)
	}
	if shown := s.run(t, "inspect", "orders", "0", "--document"); !strings.Contains(shown.Stdout, "\n  \"secret\": \"s3cr3t\"") {
		t.Errorf("no contents:\n%s", shown.Stdout)
	}
	if n := s.writes.Load(); n != 0 {
		t.Errorf("%d requests that are no reads", n)
	}
}

func TestInspectSaysThatNothingIsPending(t *testing.T) {
	t.Parallel()
	s := newStuck(t, byTenant, "")
	s.Put("orders", map[string]any{"id": "order-1", "tenant": "acme"})
	s.Put(testworld.Leases, s.leases.DotNetPK("0", leasefake.Range{Max: "FF"}, renewed(1)))
	if got := s.inspect(t, "0"); len(got.Documents) != 0 || *got.Note != "nothing is pending" {
		t.Errorf("got %+v", got)
	}
}

func TestInspectReadsOnlyTheKeysOfALease(t *testing.T) {
	t.Parallel()
	s := newStuck(t, byTenant, "")
	for i := range 16 {
		s.Put("orders", map[string]any{"id": fmt.Sprint("order-", i), "tenant": fmt.Sprint("tenant-", i)})
	}
	low, high := leasefake.Range{Max: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}, leasefake.Range{Min: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", Max: "FF"}
	s.Put(testworld.Leases, s.leases.DotNetEPK(low, renewed(0)), s.leases.DotNetEPK(high, renewed(0)))
	first, second := s.inspect(t, "-1FF", "--count", "100"), s.inspect(t, high.Token(), "--count", "100")
	if a, b := len(first.Documents), len(second.Documents); a == 0 || b == 0 || a+b != 16 {
		t.Errorf("%d and %d documents, want all 16 once", a, b)
	}
	if cut := s.inspect(t, low.Token()[:9]+"…"); first.Lease != low.Token() || cut.Lease != low.Token() {
		t.Errorf("the lease is %s, or %s as a narrow terminal has it", first.Lease, cut.Lease)
	}
	s.Put(testworld.Leases, map[string]any{"id": s.leases.DotNetPrefix() + "..7", "LeaseToken": "7", "ContinuationToken": 5})
	if r := s.run(t, "inspect", "orders", "7"); r.Status != program.StatusIncomplete || !strings.Contains(r.Stderr, "..7: its ContinuationToken") {
		t.Errorf("a lease that is none: %+v", r)
	}
}

func TestInspectReadsAllVersions(t *testing.T) {
	t.Parallel()
	s := newStuck(t, cosmosfake.ContainerSpec{PartitionKey: []string{"/tenant", "/user/id"}}, "")
	s.Put("orders", map[string]any{"id": "a", "tenant": "acme", "user": map[string]any{"id": 7}}, map[string]any{"id": "a", "tenant": "acme", "user": map[string]any{"id": 7}, "n": 2})
	testworld.Must(t, s.Account.Delete(testworld.Database, "orders", "a", "acme", 7))
	f := renewed(0)
	f.Mode = leasefake.FullFidelity
	s.Put(testworld.Leases, s.leases.DotNetPK("0", leasefake.Range{Max: "FF"}, f))
	got := s.inspect(t, "0", "--count", "10", "--document")
	var operations []string
	for i, d := range got.Documents {
		operations = append(operations, *d.Operation)
		if *d.ID != "a" || len(d.PartitionKey) != 2 || string(d.PartitionKey[0]) != `"acme"` || string(d.PartitionKey[1]) != "7" || *d.LSN != int64(i+1) || d.Document == nil {
			t.Errorf("got %+v", d)
		}
	}
	if strings.Join(operations, " ") != "create replace delete" {
		t.Errorf("the operations are %v", operations)
	}
}

func TestInspectReadsTheRangesThatReplacedThatOfALease(t *testing.T) {
	t.Parallel()
	s := newStuck(t, byTenant, "")
	for i := range 16 {
		s.Put("orders", map[string]any{"id": fmt.Sprint("order-", i), "tenant": fmt.Sprint("tenant-", i)})
	}
	s.Put(testworld.Leases, s.leases.DotNetPK("0", leasefake.Range{Max: "FF"}, renewed(2)))
	children, err := s.Account.Split(testworld.Database, "orders", "0")
	testworld.Must(t, err)
	got := s.inspect(t, "0")
	if len(got.Documents) != 2 || got.Documents[0].RangeID != children[0] || got.Documents[1].RangeID != children[1] || !got.Splitting {
		t.Errorf("got %s, splitting %v; want the first document of each of %v", got.named(), got.Splitting, children)
	}
	for _, d := range got.Documents {
		if *d.LSN <= 2 {
			t.Errorf("%s is at %d, before the position of the lease", *d.ID, *d.LSN)
		}
	}
	s.Put(testworld.Leases, s.leases.DotNetPK(children[0], leasefake.Range{}, renewed(2)))
	if got := s.inspect(t, "0"); len(got.Documents) != 1 || got.Documents[0].RangeID != children[1] {
		t.Errorf("got %s, want that of %s, which has no lease yet", got.named(), children[1])
	}
	s.Put(testworld.Leases, s.leases.DotNetPK(children[1], leasefake.Range{}, renewed(2)))
	if got := s.inspect(t, "0"); len(got.Documents) != 0 || !strings.Contains(*got.Note, "other leases replaced this one") {
		t.Errorf("got %+v", got)
	}
}

func TestInspectReadsALeaseWithoutACheckpointFromItsStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, start, want, note string
	}{
		{"the beginning", ", startFrom: beginning", "0/order-0", ""},
		{"a time before", ", startFrom: 2026-03-01T11:00:00Z", "0/order-0", ""},
		{"now, which only the owner knows", "", "", "only the memory of its owner knows the position"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newStuck(t, byTenant, c.start)
			s.Put("orders", map[string]any{"id": "order-0", "tenant": "acme"})
			s.Put(testworld.Leases, s.leases.DotNetPK("0", leasefake.Range{Max: "FF"}, leasefake.Fields{}))
			got := s.inspect(t, "0")
			if got.named() != c.want || got.Position != nil || (got.Note == nil) != (c.note == "") || got.Note != nil && !strings.Contains(*got.Note, c.note) {
				t.Errorf("got %s, %+v", got.named(), got)
			}
		})
	}
}

func TestInspectMeasuresADocumentOf2MB(t *testing.T) {
	t.Parallel()
	s := newStuck(t, byTenant, "")
	s.Put("orders", map[string]any{"id": "big", "tenant": "acme", "x": strings.Repeat("x", 2_000_000)}, map[string]any{"id": "odd", "_tenant": 1})
	s.Put(testworld.Leases, s.leases.DotNetPK("0", leasefake.Range{Max: "FF"}, renewed(0)))
	got := s.inspect(t, "0", "--count", "2")
	if d := got.Documents[0]; got.named() != "0/big 0/odd" || *d.Bytes < 2_000_000 || *d.Bytes > 2_001_000 {
		t.Errorf("got %s of %d bytes", got.named(), *d.Bytes)
	}
	if key := got.Documents[1].PartitionKey; string(key[0]) != "{}" {
		t.Errorf("the key of a document without one is %s", key)
	}
}

func TestInspectTakesTheBeginningOfALeaseToken(t *testing.T) {
	t.Parallel()
	s := newStuck(t, cosmosfake.ContainerSpec{PartitionKey: []string{"/tenant"}, Partitions: 12}, "")
	for i := range 12 {
		s.Put(testworld.Leases, s.leases.DotNetPK(fmt.Sprint(i), leasefake.Range{}, renewed(0)))
	}
	if got := s.inspect(t, "1"); got.Lease != "1" {
		t.Errorf("the whole token 1 is taken for %s", got.Lease)
	}
	for _, c := range []struct {
		rule string
		args []string
		says string
	}{
		{"several", []string{"orders", ""}, `processor orders has 12 partitions that begin with ""; it has 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11`},
		{"none", []string{"orders", "17"}, `processor orders has 0 partitions that begin with "17"; it has 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11`},
		{"no such processor", []string{"order", "1"}, `there is no processor "order"; did you mean orders?`},
		{"no partition", []string{"orders"}, "name a processor and one of its partitions"},
		{"a count of none", []string{"orders", "1", "--count", "0"}, `--count is "0"; allowed are whole numbers from 1 to 100`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if r := s.run(t, append([]string{"inspect"}, c.args...)...); r.Status != program.StatusUsage || r.Stdout != "" || !strings.Contains(r.Stderr, c.says) {
				t.Errorf("status %d, %q, %s", r.Status, r.Stdout, r.Stderr)
			}
		})
	}
}

func TestInspectFailsWhereTheFeedCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		answer cosmosfake.Answer
		says   string
	}{
		{"no right", cosmosfake.Answer{Status: 403}, "forbids to read"},
		{"a split that has begun", cosmosfake.Answer{Status: 410, Substatus: 1007}, "range 0 is being split or merged"},
		{"empty pages", cosmosfake.Answer{EmptyPage: true}, "range 0 answers with empty pages"},
		{"half a page", cosmosfake.Answer{CutShort: true}, "account 127.0.0.1"},
		{"another list", cosmosfake.Answer{Status: 200, Body: `{"Items":[]}`}, "it has no Documents"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newStuck(t, byTenant, "")
			s.Put("orders", map[string]any{"id": "order-0", "tenant": "acme"})
			s.Put(testworld.Leases, s.leases.DotNetPK("0", leasefake.Range{Max: "FF"}, renewed(0)))
			s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind == cosmosfake.ReadChangeFeed {
					return &c.answer
				}
				return nil
			})
			r := s.run(t, "inspect", "orders", "0")
			_, key, _ := strings.Cut(s.settings["COSMOS"], "AccountKey=")
			if r.Status != program.StatusIncomplete || r.Stdout != "" || !strings.Contains(r.Stderr, c.says) || strings.Contains(r.Stderr, strings.TrimSuffix(key, ";")) {
				t.Errorf("status %d, %q: %s", r.Status, r.Stdout, r.Stderr)
			}
		})
	}
}
