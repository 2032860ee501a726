package changefeed_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

func TestParseLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, document string
		want           changefeed.Lease
	}{
		{
			".NET v3, owned",
			`{"id":"procacct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0","version":0,"_etag":"\"0800\"","LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":"host1","ContinuationToken":"\"511\"","properties":{},"timestamp":"2026-03-04T23:55:16.5233511Z","Mode":"Incremental Feed","_ts":1772668516}`,
			changefeed.Lease{
				ID: "procacct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0", Token: "0", Owner: "host1", Continuation: `"511"`,
				Bounds: &changefeed.Range{Min: "", Max: "FF"},
				Time:   time.Date(2026, 3, 4, 23, 55, 16, 523351100, time.UTC), TS: 1772668516,
			},
		},
		{
			".NET v3, new: neither owner nor continuation, and no timestamp but the document's own",
			`{"id":"p..0","version":0,"LeaseToken":"0","Owner":null,"ContinuationToken":null,"timestamp":null,"_ts":1772668516}`,
			changefeed.Lease{ID: "p..0", Token: "0", Time: time.Unix(1772668516, 0).UTC(), TS: 1772668516},
		},
		{
			"legacy V2 says PartitionId",
			`{"id":"p..3","gremlincompatid":"p..3","PartitionId":"3","Owner":"h","ContinuationToken":"\"5\"","properties":{},"timestamp":"2019-01-01T00:00:00Z"}`,
			changefeed.Lease{ID: "p..3", Token: "3", Owner: "h", Continuation: `"5"`, Time: time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC)},
		},
		{
			"V2 that v3 has touched has both",
			`{"id":"p..3","PartitionId":"3","LeaseToken":"3","Owner":"h","ContinuationToken":"\"5\""}`,
			changefeed.Lease{ID: "p..3", Token: "3", Owner: "h", Continuation: `"5"`},
		},
		{
			"Java, as created: the zone in brackets",
			`{"id":"p..2","LeaseToken":"2","ContinuationToken":null,"timestamp":"2026-03-04T23:50:46.219570110Z[UTC]","Owner":null}`,
			changefeed.Lease{ID: "p..2", Token: "2", Time: time.Date(2026, 3, 4, 23, 50, 46, 219570110, time.UTC)},
		},
		{
			"Java, as created on a full minute",
			`{"id":"p..2","LeaseToken":"2","timestamp":"2026-03-04T23:50Z[UTC]"}`,
			changefeed.Lease{ID: "p..2", Token: "2", Time: time.Date(2026, 3, 4, 23, 50, 0, 0, time.UTC)},
		},
		{
			"Java, renewed",
			`{"id":"p..2","LeaseToken":"2","ContinuationToken":"\"248\"","timestamp":"2026-03-04T23:50:46Z","Owner":"java1"}`,
			changefeed.Lease{ID: "p..2", Token: "2", Owner: "java1", Continuation: `"248"`, Time: time.Date(2026, 3, 4, 23, 50, 46, 0, time.UTC)},
		},
		{
			"a version that is not 1 is a PK-range lease",
			`{"id":"p..0","version":2,"LeaseToken":"0","ContinuationToken":"\"1\""}`,
			changefeed.Lease{ID: "p..0", Token: "0", Continuation: `"1"`},
		},
		{
			"a timestamp that cannot be read is no reason to drop a lease",
			`{"id":"p..0","LeaseToken":"0","ContinuationToken":"\"1\"","timestamp":17}`,
			changefeed.Lease{ID: "p..0", Token: "0", Continuation: `"1"`},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got, err := changefeed.ParseLease([]byte(c.document))
			if err != nil {
				t.Fatal(err)
			}
			got.Format = "" // TestTheFormatOfALease has it
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestATimeThatNoOwnerCanHaveWrittenIsNone (docs/security.md, Limits).
func TestATimeThatNoOwnerCanHaveWrittenIsNone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	written := now.Add(-time.Minute) // _ts
	for _, c := range []struct {
		rule, timestamp string
		want            time.Time
		bad             bool
	}{
		{"a minute ago", `"2026-11-23T11:59:00Z"`, written, false},
		{"by a clock that is a day ahead", `"2026-11-24T12:00:00Z"`, now.Add(24 * time.Hour), false},
		{"a day and a second ahead", `"2026-11-24T12:00:01Z"`, written, true},
		{"the last year", `"9999-12-31T23:59:59Z"`, written, true},
		{"a year that JSON does not have", `"9999-12-31T23:59:59-01:00"`, written, true},
		{"before the first year", `"0000-12-31T23:59:59Z"`, written, true},
		{".NET's DateTime without a value", `"0001-01-01T00:00:00Z"`, written, false},
		{"the same, east of UTC", `"0001-01-01T00:00:00+14:00"`, written, false},
		{"none", `null`, written, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			document := fmt.Sprintf(`{"id":"p..0","LeaseToken":"0","timestamp":%s,"_ts":%d}`, c.timestamp, written.Unix())
			got, err := changefeed.ParseLease([]byte(document))
			got = changefeed.Sorted([]changefeed.LeaseDocument{{Lease: got}}, now)["p"][0].Lease
			if err != nil || !got.Time.Equal(c.want) || got.BadTime != c.bad {
				t.Errorf("%s, bad: %t, %v; want %s, %t", got.Time, got.BadTime, err, c.want, c.bad)
			}
		})
	}
	for _, ts := range []int64{now.Add(25 * time.Hour).Unix(), math.MaxInt64} {
		document := fmt.Sprintf(`{"id":"p..0","LeaseToken":"0","_ts":%d}`, ts)
		got, err := changefeed.ParseLease([]byte(document))
		got = changefeed.Sorted([]changefeed.LeaseDocument{{Lease: got}}, now)["p"][0].Lease
		if err != nil || !got.Time.IsZero() || !got.BadTime {
			t.Errorf("_ts %d is %s, bad: %t, %v", ts, got.Time, got.BadTime, err)
		}
	}
}

// epkLease is a lease of Java's EPK processor with a state as its continuation.
func epkLease(owner, state string) string {
	return `{"id":"p..-FF","LeaseToken":"-FF","ContinuationToken":"` + base64.URLEncoding.EncodeToString([]byte(state)) +
		`","Owner":"` + owner + `","version":1,"feedRange":{"Range":{"min":"","max":"FF","isMinInclusive":true}}}`
}

// TestParseEPKLease has the EPK leases of the .NET and Java SDKs (docs/lag.md, Formats of leases).
func TestParseEPKLease(t *testing.T) {
	t.Parallel()
	whole := &changefeed.Range{Min: "", Max: "FF"}
	lease := func(change func(*changefeed.Lease)) changefeed.Lease {
		l := changefeed.Lease{ID: "p..-FF", Token: "-FF", Range: whole}
		change(&l)
		return l
	}
	for _, c := range []struct {
		rule, document string
		want           changefeed.Lease
	}{
		{
			".NET: the ETag as it stands",
			`{"id":"p..-1FFF","version":1,"LeaseToken":"-1FFF","FeedRange":{"Range":{"min":"","max":"1FFF"}},"Owner":"host1","ContinuationToken":"\"750\"","properties":{},"Mode":"Incremental Feed"}`,
			changefeed.Lease{ID: "p..-1FFF", Token: "-1FFF", Range: &changefeed.Range{Max: "1FFF"}, Owner: "host1", Continuation: `"750"`},
		},
		{
			".NET, all versions and deletes",
			`{"id":"p..-FF","version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":"\"750\"","Mode":"Full-Fidelity Feed"}`,
			lease(func(l *changefeed.Lease) { l.Continuation, l.Mode = `"750"`, changefeed.FullFidelity }),
		},
		{
			"without FeedRange the token says the range",
			`{"id":"p..-FF","version":1,"LeaseToken":"-FF","ContinuationToken":"\"750\""}`,
			lease(func(l *changefeed.Lease) { l.Continuation = `"750"` }),
		},
		{
			"Java: the ETag inside its state",
			epkLease("java1", `{"V":1,"Rid":"q0oIALS6YvQ=","Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"},"Continuation":{"V":1,"Rid":"q0oIALS6YvQ=","Continuation":[{"token":"\"500\"","range":{"min":"","max":"FF"}}],"Range":{"min":"","max":"FF"}}}`),
			lease(func(l *changefeed.Lease) { l.Owner, l.Continuation = "java1", `"500"` }),
		},
		{
			"Java, all versions and deletes",
			epkLease("", `{"V":1,"Mode":"FULL_FIDELITY","StartFrom":{"Type":"NOW"},"Continuation":{"V":1,"Continuation":[{"token":"\"500\"","range":{"min":"","max":"FF"}}]}}`),
			lease(func(l *changefeed.Lease) { l.Continuation, l.Mode = `"500"`, changefeed.FullFidelity }),
		},
		{
			"Java, all versions and deletes by its newer name",
			epkLease("", `{"V":1,"Mode":"ALL_VERSIONS_AND_DELETES","Continuation":{"V":1,"Continuation":[{"token":"\"500\""}]}}`),
			lease(func(l *changefeed.Lease) { l.Continuation, l.Mode = `"500"`, changefeed.FullFidelity }),
		},
		{
			"Java, not checkpointed, from now",
			epkLease("", `{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"},"Range":{"min":"","max":"FF"}}`),
			lease(func(l *changefeed.Lease) { l.StartFrom = &changefeed.StartFrom{} }),
		},
		{
			"Java, not checkpointed, from the beginning, with the nested shape and a link as Rid",
			epkLease("", `{"V":1,"Rid":"dbs/mydb/colls/mycoll","Mode":"INCREMENTAL","StartFrom":{"Type":"BEGINNING"},"Continuation":{"V":1,"Continuation":[{"token":null,"range":{"min":"","max":"FF"}}],"Range":{"min":"","max":"FF"}}}`),
			lease(func(l *changefeed.Lease) { l.StartFrom = &changefeed.StartFrom{Beginning: true} }),
		},
		{
			"Java, not checkpointed, from a time",
			epkLease("", `{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"POINT_IN_TIME","PointInTimeMs":1772668516000},"PKRangeId":"0"}`),
			lease(func(l *changefeed.Lease) {
				l.StartFrom = &changefeed.StartFrom{Time: time.UnixMilli(1772668516000).UTC()}
			}),
		},
		{
			"Java, not checkpointed, from a lease's position",
			epkLease("", `{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"LEASE","Etag":"\"42\""},"Continuation":{"V":1,"Continuation":[{"token":null}]}}`),
			lease(func(l *changefeed.Lease) { l.Continuation = `"42"` }),
		},
		{
			"Java, not checkpointed, from a legacy checkpoint: as the configuration says",
			epkLease("", `{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"LEGACY_CHECKPOINT"},"Range":{"min":"","max":"FF"}}`),
			lease(func(*changefeed.Lease) {}),
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got, err := changefeed.ParseLease([]byte(c.document))
			if err != nil {
				t.Fatal(err)
			}
			got.Format = "" // TestTheFormatOfALease has it
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestParseLeaseNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, document, id, token string }{
		{"no token: that of its id", `{"id":"p..0","Owner":"h"}`, "p..0", "0"},
		{"an empty token", `{"id":"p..0","LeaseToken":""}`, "p..0", "0"},
		{"a continuation that is no text", `{"id":"p..0","LeaseToken":"0","ContinuationToken":7}`, "p..0", "0"},
		{"a token that is no text", `{"id":"p..0","LeaseToken":{}}`, "p..0", "0"},
		{"a feed range that is no object", `{"id":"p..0","LeaseToken":"0","FeedRange":"-FF"}`, "p..0", "0"},
		{"a mode that is no text", `{"id":"p..0","LeaseToken":"0","Mode":1}`, "p..0", "0"},
		{"a list", `[]`, "", ""},
		{"an EPK lease that names no range", `{"id":"p..0","version":1,"LeaseToken":"0","FeedRange":{"PKRangeId":"0"},"ContinuationToken":"\"1\""}`, "p..0", "0"},
		{"an EPK lease whose range is empty", `{"id":"p..5-5","version":1,"LeaseToken":"5-5","ContinuationToken":"\"1\""}`, "p..5-5", "5-5"},
		{"a Java continuation with several positions", epkLease("", `{"V":1,"Mode":"INCREMENTAL","Continuation":{"V":1,"Continuation":[{"token":"\"1\""},{"token":"\"2\""}]}}`), "p..-FF", "-FF"},
		{"no JSON", `{`, "", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got, err := changefeed.ParseLease([]byte(c.document))
			if err == nil {
				t.Fatal("no error")
			}
			if got.ID != c.id || got.Token != c.token {
				t.Errorf("id %q, token %q; want %q, %q", got.ID, got.Token, c.id, c.token)
			}
		})
	}
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	identity := changefeed.Identity{
		ProcessorName: "proc", AccountHost: "Acct.documents.azure.com",
		Database: "mydb", Container: "mycoll", ContainerRID: "q0oIALS6YvQ=",
	}
	got, err := identity.Prefixes()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"procAcct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..", "procAcct.documents.azure.com_mydb_mycoll..",
		"procacct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..", "procacct.documents.azure.com_mydb_mycoll..",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	identity.ProcessorName, identity.AccountHost = "", "localhost"
	if got, _ := identity.Prefixes(); len(got) != 2 || got[0] != "localhost_q0oIAA==_q0oIALS6YvQ=.." {
		t.Errorf("an empty name and a lower-case host give %q", got)
	}
	identity.ContainerRID = "q0oI"
	if _, err := identity.Prefixes(); err == nil {
		t.Error("the RID of a database passed for that of a container")
	}
}

func TestDatabaseRID(t *testing.T) {
	t.Parallel()
	for container, want := range map[string]string{
		"V4lVAMl0wuQ=": "V4lVAA==",
		"q0oIALS6YvQ=": "q0oIAA==",
		"-0oIALS6YvQ=": "-0oIAA==", // '-' stands for '/'
		"/0oIALS6YvQ=": "-0oIAA==",
	} {
		if got, err := changefeed.DatabaseRID(container); err != nil || got != want {
			t.Errorf("DatabaseRID(%q) = %q, %v; want %q", container, got, err, want)
		}
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	lease := func(id, token, owner string, minute int, ts int64) changefeed.LeaseDocument {
		format := changefeed.FormatDotNetPK
		if strings.Contains(id, "_name") {
			format = changefeed.FormatJavaPK
		}
		return changefeed.LeaseDocument{Lease: changefeed.Lease{ID: id, Token: token, Format: format, Owner: owner, Time: at(minute), TS: ts}}
	}
	unread, err := changefeed.ParseLease([]byte(`{"id":"p_rid..7"}`))
	broken := changefeed.LeaseDocument{Lease: unread, Err: err}
	java := func(d changefeed.LeaseDocument) changefeed.LeaseDocument {
		d.Format = changefeed.FormatJavaEPK
		return d
	}
	free := func(d changefeed.LeaseDocument) changefeed.LeaseDocument {
		d.Owner = ""
		return d
	}
	prefixes := []string{"p_rid..", "p_name..", "P_rid..", "P_name.."}
	for _, c := range []struct {
		rule      string
		documents []changefeed.LeaseDocument
		family    changefeed.Family
		want      []string // token/owner; nil = ErrMixed
	}{
		{"another processor's leases are not ours", []changefeed.LeaseDocument{lease("p_rid..0", "0", "a", 1, 1), lease("pp_rid..0", "0", "b", 2, 2), lease("p_rid2..0", "0", "c", 2, 2)}, "", []string{"0/a"}},
		{"nor are those of a container whose name goes on with dots", []changefeed.LeaseDocument{lease("p_rid..0", "0", "a", 1, 1), lease("p_rid..eu..0", "0", "b", 2, 2)}, "", []string{"0/a"}},
		{"the same id twice, as under GUID keys: the newer counts", []changefeed.LeaseDocument{lease("p_rid..0", "0", "old", 1, 9), lease("p_rid..0", "0", "new", 2, 1)}, "", []string{"0/new"}},
		{"both spellings of the host: the newer counts", []changefeed.LeaseDocument{lease("P_rid..0", "0", "new", 2, 1), lease("p_rid..0", "0", "old", 1, 1)}, "", []string{"0/new"}},
		{"the same timestamp: the newer _ts counts", []changefeed.LeaseDocument{lease("p_rid..0", "0", "old", 1, 1), lease("P_rid..0", "0", "new", 1, 2)}, "", []string{"0/new"}},
		{"ordered as numbers", []changefeed.LeaseDocument{lease("p_rid..10", "10", "", 1, 1), lease("p_rid..9", "9", "", 1, 1)}, "", []string{"9/", "10/"}},
		{"one that cannot be read is kept, under what its id names", []changefeed.LeaseDocument{broken}, "", []string{"7/"}},
		{"Java goes over from names to RIDs: both are its own", []changefeed.LeaseDocument{lease("p_name..0", "0", "old", 1, 1), java(lease("p_rid..-FF", "-FF", "new", 2, 1))}, "", []string{"0/old", "-FF/new"}},
		{"both families are live: a complaint", []changefeed.LeaseDocument{lease("p_name..0", "0", "java", 1, 1), lease("p_rid..0", "0", "dotnet", 2, 1)}, "", nil},
		{"with leaseFormat dotnet those of .NET count", []changefeed.LeaseDocument{lease("p_name..0", "0", "java", 1, 1), lease("p_rid..0", "0", "dotnet", 2, 1)}, changefeed.FamilyDotNet, []string{"0/dotnet"}},
		{"with leaseFormat java those of Java count", []changefeed.LeaseDocument{lease("p_name..0", "0", "java", 1, 1), lease("p_rid..0", "0", "dotnet", 2, 1)}, changefeed.FamilyJava, []string{"0/java"}},
		{"one family was given up: the other counts", []changefeed.LeaseDocument{lease("p_name..0", "0", "java", 1, 1), lease("p_rid..0", "0", "dotnet", 30, 1)}, "", []string{"0/dotnet"}},
		{"one family is owned by nobody: the newer counts", []changefeed.LeaseDocument{free(lease("p_name..0", "0", "java", 1, 1)), lease("p_rid..0", "0", "dotnet", 2, 1)}, "", []string{"0/dotnet"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var got []string
			selected, err := changefeed.Sorted(c.documents, at(60)).Select(prefixes, c.family)
			if (c.want == nil) != errors.Is(err, changefeed.ErrMixed) {
				t.Fatalf("error %v", err)
			}
			for _, l := range selected {
				got = append(got, l.Token+"/"+l.Owner)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
