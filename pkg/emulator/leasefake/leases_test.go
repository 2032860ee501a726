package leasefake_test

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const (
	rids  = "procacct.documents.azure.com_q0oIAA==_q0oIALS6YvQ="
	names = "procAcct.documents.azure.com_mydb_mycoll"
	java  = "procAcct.documents.azure.com_q0oIAA==_q0oIALS6YvQ="
)

// processor spells its host as an application may.
func processor() leasefake.Processor {
	return leasefake.Processor{
		Name: "proc", Host: "Acct.documents.azure.com", Database: "mydb", Container: "mycoll",
		DatabaseRID: "q0oIAA==", ContainerRID: "q0oIALS6YvQ=",
	}
}

func check(t *testing.T, document map[string]any, want string) {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := testworld.Canonical(t, text), testworld.Canonical(t, []byte(want)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func wrapped(state string) string { return base64.URLEncoding.EncodeToString([]byte(state)) }

func TestEveryFormatIsWrittenAsItsSDKDoes(t *testing.T) {
	t.Parallel()
	p := processor()
	whole, half := leasefake.Range{Max: "FF"}, leasefake.Range{Max: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}
	owned := leasefake.Fields{Owner: "host1", Continuation: leasefake.At(511), Updated: time.Date(2026, 3, 4, 23, 55, 16, 523351100, time.UTC)}
	created := leasefake.Fields{Created: time.Date(2026, 3, 4, 23, 50, 46, 219570110, time.UTC)}
	versions, newer := owned, owned
	versions.Mode, newer.Mode = leasefake.FullFidelity, leasefake.AllVersionsAndDeletes
	keyed := owned
	keyed.PartitionKey = rids + "..0"
	const epk = "-1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
	const epkRange = `{"Range":{"min":"","max":"1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}}`
	const position = `"Continuation":{"V":1,"Rid":"q0oIALS6YvQ=","Continuation":[{"token":"\"511\"","range":{"min":"","max":"FF"}}],"Range":{"min":"","max":"FF"}}}`
	javaEPK := func(state string) string {
		return `{"id":"` + java + `..-FF","LeaseToken":"-FF","ContinuationToken":"` + wrapped(state) +
			`","timestamp":"2026-03-04T23:55:16.523351100Z","Owner":"host1","version":1,"feedRange":{"Range":{"min":"","max":"FF"}}}`
	}
	for _, c := range []struct {
		rule     string
		document map[string]any
		want     string
	}{
		{
			".NET, PK range", p.DotNetPK("0", whole, owned),
			`{"id":"` + rids + `..0","version":0,"LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z","Mode":"Incremental Feed"}`,
		},
		{
			".NET, PK range, not owned, checkpointed or updated yet", p.DotNetPK("0", whole, leasefake.Fields{}),
			`{"id":"` + rids + `..0","version":0,"LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,"ContinuationToken":null,"properties":{},"timestamp":null,"Mode":"Incremental Feed"}`,
		},
		{
			".NET, PK range, of before the range and the mode", p.DotNetPKOld("0", owned),
			`{"id":"` + rids + `..0","version":0,"LeaseToken":"0","Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z"}`,
		},
		{
			".NET, PK range, all versions and deletes", p.DotNetPK("0", whole, versions),
			`{"id":"` + rids + `..0","version":0,"LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z","Mode":"Full-Fidelity Feed"}`,
		},
		{
			".NET, PK range, in a container keyed by /partitionKey", p.DotNetPKOld("0", keyed),
			`{"id":"` + rids + `..0","partitionKey":"` + rids + `..0","version":0,"LeaseToken":"0","Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z"}`,
		},
		{
			".NET, PK range, taken over from V2", p.DotNetPKFromV2("0", owned),
			`{"id":"` + rids + `..0","version":0,"LeaseToken":"0","PartitionId":"0","Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z"}`,
		},
		{
			".NET, EPK", p.DotNetEPK(half, owned),
			`{"id":"` + rids + `..` + epk + `","version":1,"LeaseToken":"` + epk + `","FeedRange":` + epkRange + `,"Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z","Mode":"Incremental Feed"}`,
		},
		{
			".NET, EPK, all versions and deletes", p.DotNetEPK(half, newer),
			`{"id":"` + rids + `..` + epk + `","version":1,"LeaseToken":"` + epk + `","FeedRange":` + epkRange + `,"Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z","Mode":"Full-Fidelity Feed"}`,
		},
		{
			"V2", p.V2("0", owned),
			`{"id":"` + rids + `..0","PartitionId":"0","Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z"}`,
		},
		{
			"V2, later versions, not updated yet", p.V2Gremlin("0", leasefake.Fields{}),
			`{"id":"` + rids + `..0","gremlincompatid":"` + rids + `..0","PartitionId":"0","Owner":null,"ContinuationToken":null,"properties":{},"timestamp":null}`,
		},
		{
			"Java, PK range", p.JavaPK("2", owned),
			`{"id":"` + names + `..2","LeaseToken":"2","ContinuationToken":"\"511\"","timestamp":"2026-03-04T23:55:16.523351100Z","Owner":"host1"}`,
		},
		{
			"Java, PK range, created", p.JavaPK("2", created),
			`{"id":"` + names + `..2","LeaseToken":"2","ContinuationToken":null,"timestamp":"2026-03-04T23:50:46.219570110Z[UTC]","Owner":null}`,
		},
		{
			"Java, EPK, created", p.JavaEPK(whole, leasefake.FromBeginning(), created),
			`{"id":"` + java + `..-FF","LeaseToken":"-FF","ContinuationToken":null,"timestamp":"2026-03-04T23:50:46.219570110Z[UTC]","Owner":null,"version":1,"feedRange":{"Range":{"min":"","max":"FF"}}}`,
		},
		{
			"Java, EPK, created in a split", p.JavaEPK(whole, leasefake.FromNow(), leasefake.Fields{Continuation: owned.Continuation, Created: created.Created}),
			`{"id":"` + java + `..-FF","LeaseToken":"-FF","ContinuationToken":"` + wrapped(`{"V":1,"Rid":"q0oIALS6YvQ=","Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"},`+position) +
				`","timestamp":"2026-03-04T23:50:46.219570110Z[UTC]","Owner":null,"version":1,"feedRange":{"Range":{"min":"","max":"FF"}}}`,
		},
		{
			"Java, EPK", p.JavaEPK(whole, leasefake.FromNow(), owned),
			javaEPK(`{"V":1,"Rid":"q0oIALS6YvQ=","Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"},` + position),
		},
		{
			"Java, EPK, all versions and deletes", p.JavaEPK(whole, leasefake.FromNow(), versions),
			javaEPK(`{"V":1,"Rid":"q0oIALS6YvQ=","Mode":"FULL_FIDELITY","StartFrom":{"Type":"NOW"},` + position),
		},
		{
			"Java, EPK, all versions and deletes by the newer name", p.JavaEPK(whole, leasefake.FromNow(), newer),
			javaEPK(`{"V":1,"Rid":"q0oIALS6YvQ=","Mode":"ALL_VERSIONS_AND_DELETES","StartFrom":{"Type":"NOW"},` + position),
		},
		{"the marker", leasefake.Info(p.DotNetPrefix()), `{"id":"` + rids + `.info"}`},
		{"the marker of Java's PK-range leases", leasefake.Info(p.JavaPKPrefix()), `{"id":"` + names + `.info"}`},
		{"the lock", leasefake.Lock(p.JavaEPKPrefix(), 30*time.Second), `{"id":"` + java + `.lock","ttl":30}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			check(t, c.document, c.want)
		})
	}
}

func TestAJavaStateSaysWhereTheProcessorStarts(t *testing.T) {
	t.Parallel()
	p, whole := processor(), leasefake.Range{Max: "FF"}
	for _, c := range []struct {
		rule string
		from leasefake.StartFrom
		want string
	}{
		{"from now", leasefake.FromNow(), `{"Type":"NOW"}`},
		{"from the beginning", leasefake.FromBeginning(), `{"Type":"BEGINNING"}`},
		{"from a time", leasefake.FromTime(time.UnixMilli(1772668246219)), `{"Type":"POINT_IN_TIME","PointInTimeMs":1772668246219}`},
		{"from another lease", leasefake.FromLease(`"42"`, whole), `{"Type":"LEASE","Etag":"\"42\"","Range":{"min":"","max":"FF"}}`},
		{"from a legacy checkpoint", leasefake.FromLegacyCheckpoint(), `{"Type":"LEGACY_CHECKPOINT"}`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			for shape, has := range map[string]struct {
				document map[string]any
				want     string
			}{
				"the range alone": {
					p.JavaEPKUnread(whole, c.from, leasefake.Fields{}),
					`{"V":1,"Rid":"q0oIALS6YvQ=","Mode":"INCREMENTAL","StartFrom":` + c.want + `,"Range":{"min":"","max":"FF"}}`,
				},
				"a position without a token": {
					p.JavaEPKMigrated(whole, c.from, leasefake.Fields{}),
					`{"V":1,"Rid":"/dbs/mydb/colls/mycoll","Mode":"INCREMENTAL","StartFrom":` + c.want + `,"Continuation":{"V":1,"Rid":"/dbs/mydb/colls/mycoll","Continuation":[{"token":null,"range":{"min":"","max":"FF"}}],"Range":{"min":"","max":"FF"}}}`,
				},
			} {
				if got := *has.document["ContinuationToken"].(*string); got != wrapped(has.want) {
					text, _ := base64.URLEncoding.DecodeString(got)
					t.Errorf("%s: got  %s\nwant %s", shape, text, has.want)
				}
			}
		})
	}
}

func TestALeaseOfDotNetIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	p, half := processor(), leasefake.Range{Max: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}
	at := time.Date(2026, 3, 4, 23, 55, 16, 523351100, time.UTC)
	owned := leasefake.Fields{Owner: "host1", Continuation: leasefake.At(511), Updated: at}
	for _, c := range []struct {
		rule    string
		lease   leasefake.DotNetLease
		owner   string
		updated time.Time
	}{
		{"PK range", p.PKLease("0", half, owned), "host1", at},
		{"EPK", p.EPKLease(half, owned), "host1", at},
		{"not owned or updated yet: the account knows when it was written", func() leasefake.DotNetLease {
			created := p.PKLease("0", half, leasefake.Fields{})
			created.Written = at.Unix()
			return created
		}(), "", at.Truncate(time.Second)},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(c.lease.Document())
			if err != nil {
				t.Fatal(err)
			}
			got := testworld.Decode[leasefake.DotNetLease](t, text)
			if !reflect.DeepEqual(got, c.lease) {
				t.Errorf("got %+v, want %+v", got, c.lease)
			}
			if !got.OwnedBy(c.owner) || got.OwnedBy("host2") || !got.Updated().Equal(c.updated) {
				t.Errorf("got %+v, updated %s; want owner %q, %s", got, got.Updated(), c.owner, c.updated)
			}
		})
	}
}

func TestTimesAreWrittenAsEachLanguageDoes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 23, 50, 0, 0, time.UTC)
	for _, c := range []struct {
		rule                         string
		at                           time.Time
		dotNet, java, javaAtCreation string
	}{
		{"a full minute", at, "2026-03-04T23:50:00Z", "2026-03-04T23:50:00Z", "2026-03-04T23:50Z[UTC]"},
		{"a full second", at.Add(7 * time.Second), "2026-03-04T23:50:07Z", "2026-03-04T23:50:07Z", "2026-03-04T23:50:07Z[UTC]"},
		{"milliseconds", at.Add(120 * time.Millisecond), "2026-03-04T23:50:00.12Z", "2026-03-04T23:50:00.120Z", "2026-03-04T23:50:00.120Z[UTC]"},
		{"microseconds", at.Add(120 * time.Microsecond), "2026-03-04T23:50:00.00012Z", "2026-03-04T23:50:00.000120Z", "2026-03-04T23:50:00.000120Z[UTC]"},
		{"nanoseconds, which .NET cuts to ticks", at.Add(1234), "2026-03-04T23:50:00.0000012Z", "2026-03-04T23:50:00.000001234Z", "2026-03-04T23:50:00.000001234Z[UTC]"},
		{"another zone", at.In(time.FixedZone("CET", 3600)), "2026-03-04T23:50:00Z", "2026-03-04T23:50:00Z", "2026-03-04T23:50Z[UTC]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p, updated := processor(), leasefake.Fields{Created: at.Add(-time.Hour), Updated: c.at}
			for writer, times := range map[string]struct{ got, want any }{
				".NET":                {p.DotNetPKOld("0", updated)["timestamp"], c.dotNet},
				"V2":                  {p.V2("0", updated)["timestamp"], c.dotNet},
				"Java":                {p.JavaPK("0", updated)["timestamp"], c.java},
				"Java, at a creation": {p.JavaPK("0", leasefake.Fields{Created: c.at})["timestamp"], c.javaAtCreation},
			} {
				if times.got != times.want {
					t.Errorf("%s: %v, want %v", writer, times.got, times.want)
				}
			}
		})
	}
}

func TestTheRIDsAreThoseOfTheAccount(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Container("mycoll", 1)
	given := processor()
	given.Database = testworld.Database
	p, err := given.In(t.Context(), w.Account)
	if err != nil {
		t.Fatal(err)
	}
	standard := strings.NewReplacer("-", "/") // a RID stands in paths
	database, errDatabase := base64.StdEncoding.DecodeString(standard.Replace(p.DatabaseRID))
	container, errContainer := base64.StdEncoding.DecodeString(standard.Replace(p.ContainerRID))
	if errDatabase != nil || errContainer != nil || len(database) != 4 || len(container) != 8 || string(container[:4]) != string(database) {
		t.Errorf("container %q is not one of database %q", p.ContainerRID, p.DatabaseRID)
	}
	if p.DatabaseRID, p.ContainerRID = given.DatabaseRID, given.ContainerRID; p != given {
		t.Errorf("got %+v, want nothing but the RIDs changed in %+v", p, given)
	}
	for _, missing := range []leasefake.Processor{{Database: "nowhere", Container: "mycoll"}, {Database: testworld.Database, Container: "nowhere"}} {
		if p, err := missing.In(t.Context(), w.Account); err == nil {
			t.Errorf("container %s/%s: %+v, want an error", missing.Database, missing.Container, p)
		}
	}
}
