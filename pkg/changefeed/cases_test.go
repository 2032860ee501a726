package changefeed_test

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// The cases of this file are what SDKs write and services answer beyond the everyday shapes of the
// other tests; each is named after its rule.

func TestWhatSDKsWriteIntoLeases(t *testing.T) {
	t.Parallel()
	whole := &changefeed.Range{Min: "", Max: "FF"}
	state := `{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"},"Continuation":{"V":1,"Continuation":[{"token":"\"500\""}]}}`
	java := func(continuation string) string {
		return fmt.Sprintf(`{"id":"p..-FF","LeaseToken":"-FF","version":1,"ContinuationToken":%q}`, continuation)
	}
	for _, c := range []struct {
		rule, document string
		want           changefeed.Lease
	}{
		{
			".NET: a PK-range lease is routed by its token, whatever its FeedRange",
			`{"id":"p..7","version":0,"LeaseToken":"7","FeedRange":{"Range":{"min":"","max":"FF"}}}`,
			changefeed.Lease{ID: "p..7", Token: "7", Bounds: whole},
		},
		{
			".NET: a FeedRange may name a range by its id, which says no bounds",
			`{"id":"p..7","version":0,"LeaseToken":"7","FeedRange":{"PKRangeId":"7"}}`,
			changefeed.Lease{ID: "p..7", Token: "7"},
		},
		{
			".NET: a FeedRange may be of one partition key, which says no bounds",
			`{"id":"p..7","version":0,"LeaseToken":"7","FeedRange":{"PK":"[\"a\"]"}}`,
			changefeed.Lease{ID: "p..7", Token: "7"},
		},
		{
			".NET: bounds that are said to be inclusive or not are the same bounds",
			`{"id":"p..05-0B","version":1,"LeaseToken":"05-0B","FeedRange":{"Range":{"min":"05","max":"0B","isMinInclusive":false,"isMaxInclusive":true}}}`,
			changefeed.Lease{ID: "p..05-0B", Token: "05-0B", Range: &changefeed.Range{Min: "05", Max: "0B"}},
		},
		{
			".NET: without a Mode the feed is incremental",
			`{"id":"p..0","LeaseToken":"0","Mode":null}`,
			changefeed.Lease{ID: "p..0", Token: "0"},
		},
		{
			".NET: the Mode counts in any case",
			`{"id":"p..0","LeaseToken":"0","Mode":"full-fidelity feed"}`,
			changefeed.Lease{ID: "p..0", Token: "0", Mode: changefeed.FullFidelity},
		},
		{
			".NET: a PK-range lease may be of all versions and deletes too",
			`{"id":"p..0","version":0,"LeaseToken":"0","ContinuationToken":"\"9\"","Mode":"Full-Fidelity Feed"}`,
			changefeed.Lease{ID: "p..0", Token: "0", Continuation: `"9"`, Mode: changefeed.FullFidelity},
		},
		{
			"lease containers keyed by /partitionKey: the key is no part of the lease",
			`{"id":"p..0","partitionKey":"5d0c5f0e","LeaseToken":"0"}`,
			changefeed.Lease{ID: "p..0", Token: "0"},
		},
		{
			"a continuation is opaque, and kept as it stands",
			`{"id":"p..0","LeaseToken":"0","ContinuationToken":"W/\"abc def\""}`,
			changefeed.Lease{ID: "p..0", Token: "0", Continuation: `W/"abc def"`},
		},
		{
			"Java: the state may come without padding",
			java(base64.RawURLEncoding.EncodeToString([]byte(state))),
			changefeed.Lease{ID: "p..-FF", Token: "-FF", Range: whole, Continuation: `"500"`},
		},
		{
			"Java: the state of an EPK lease alone is unwrapped, never a PK-range lease's continuation",
			fmt.Sprintf(`{"id":"p..0","LeaseToken":"0","ContinuationToken":%q}`, base64.URLEncoding.EncodeToString([]byte(state))),
			changefeed.Lease{ID: "p..0", Token: "0", Continuation: base64.URLEncoding.EncodeToString([]byte(state))},
		},
		{
			"Java: a state of .NET's kind beside it, an ETag, is taken as it stands",
			java(`"750"`),
			changefeed.Lease{ID: "p..-FF", Token: "-FF", Range: whole, Continuation: `"750"`},
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

func TestTheFamilyOfAnEPKLease(t *testing.T) {
	t.Parallel()
	state := base64.URLEncoding.EncodeToString([]byte(`{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"}}`))
	for _, c := range []struct {
		rule, document string
		want           changefeed.Family
	}{
		{".NET writes FeedRange", `{"id":"p..-FF","version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}}}`, changefeed.FamilyDotNet},
		{"Java writes feedRange", `{"id":"p..-FF","version":1,"LeaseToken":"-FF","feedRange":{"Range":{"min":"","max":"FF"}}}`, changefeed.FamilyJava},
		{"only Java wraps its position", `{"id":"p..-FF","version":1,"LeaseToken":"-FF","ContinuationToken":"` + state + `"}`, changefeed.FamilyJava},
		{"of a PK-range lease the id says it, which has names", `{"id":"p..0","LeaseToken":"0"}`, changefeed.FamilyJava},
	} {
		if got, err := changefeed.ParseLease([]byte(c.document)); err != nil || got.Format.Family() != c.want {
			t.Errorf("%s: %q, %v; want %q", c.rule, got.Format.Family(), err, c.want)
		}
	}
}

// TestWhatIsZeroInGoIsNotInALease has every zero value of Go that a document can produce: none of them
// may read as a time, a position or an owner, nor as the start from now.
func TestWhatIsZeroInGoIsNotInALease(t *testing.T) {
	t.Parallel()
	java := func(state string) string {
		return `{"id":"p..-FF","version":1,"LeaseToken":"-FF","feedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":"` + base64.URLEncoding.EncodeToString([]byte(state)) + `"}`
	}
	beginning, now := changefeed.StartFrom{Beginning: true}, changefeed.StartFrom{}
	for _, c := range []struct {
		rule, document string
		check          func(changefeed.Lease) bool
	}{
		{"a start at the year 1 is the beginning", java(`{"StartFrom":{"Type":"POINT_IN_TIME","PointInTimeMs":-62135596800000}}`), func(l changefeed.Lease) bool { return *l.StartFrom == beginning }},
		{"a start at a time without the time is 1970, before every change", java(`{"StartFrom":{"Type":"POINT_IN_TIME"}}`), func(l changefeed.Lease) bool { return !l.StartFrom.Now() }},
		{"a start from now says so", java(`{"StartFrom":{"Type":"NOW"}}`), func(l changefeed.Lease) bool { return *l.StartFrom == now }},
		{"a state without a start leaves it to the configuration", java(`{}`), func(l changefeed.Lease) bool { return l.StartFrom == nil && l.Continuation == "" }},
		{"a token that is null is none", java(`{"StartFrom":{"Type":"BEGINNING"},"Continuation":{"Continuation":[{"token":null}]}}`), func(l changefeed.Lease) bool { return l.Continuation == "" && *l.StartFrom == beginning }},
		{"an owner that is null, and one that is empty, are none", `{"id":"p..0","LeaseToken":"0","Owner":null}`, func(l changefeed.Lease) bool { return l.Owner == "" }},
		{"a timestamp that is null leaves it to _ts", `{"id":"p..0","LeaseToken":"0","timestamp":null,"_ts":1772668516}`, func(l changefeed.Lease) bool { return l.Time.Unix() == 1772668516 }},
		{"neither of them is unknown", `{"id":"p..0","LeaseToken":"0","timestamp":null}`, func(l changefeed.Lease) bool { return l.Time.IsZero() }},
		{"a timestamp of the year 1 is unknown", `{"id":"p..0","LeaseToken":"0","timestamp":"0001-01-01T00:00:00Z","_ts":1772668516}`, func(l changefeed.Lease) bool { return l.Time.Unix() == 1772668516 }},
		{"no continuation is none", `{"id":"p..0","LeaseToken":"0"}`, func(l changefeed.Lease) bool { return l.Continuation == "" }},
		{"nor is an empty one", `{"id":"p..0","LeaseToken":"0","ContinuationToken":""}`, func(l changefeed.Lease) bool { return l.Continuation == "" }},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			l, err := changefeed.ParseLease([]byte(c.document))
			if err != nil || !c.check(l) {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
	if lsn, ok := changefeed.ContinuationLSN(`""`); ok {
		t.Errorf("an empty ETag is LSN %d", lsn)
	}
	if r := changefeed.Measure(changefeed.Answer{Status: 200, SessionToken: "0:0", Page: changefeed.Page{Items: 1, First: &changefeed.Item{LSN: new(int64(1))}}}); r.Lag != 1 || !r.Approximate {
		t.Errorf("a session at 0 behind an item: %+v", r)
	}
}

func TestWhichDocumentsAreAProcessorsLeases(t *testing.T) {
	t.Parallel()
	const rid = "q0oIALS6YvQ="
	for _, c := range []struct {
		rule     string
		identity changefeed.Identity
		id       string
		own      bool
	}{
		{".NET", changefeed.Identity{ProcessorName: "proc", AccountHost: "acct.documents.azure.com"}, "procacct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0", true},
		{"Functions and Java: no processor name", changefeed.Identity{AccountHost: "acct.documents.azure.com"}, "acct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0", true},
		{"a host without dots", changefeed.Identity{ProcessorName: "proc", AccountHost: "localhost"}, "proclocalhost_q0oIAA==_q0oIALS6YvQ=..0", true},
		{"the host of a region", changefeed.Identity{AccountHost: "acct-westeurope.documents.azure.com"}, "acct-westeurope.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0", true},
		{"not the global host's where the application uses a region's", changefeed.Identity{AccountHost: "acct-westeurope.documents.azure.com"}, "acct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0", false},
		{"a sovereign cloud", changefeed.Identity{AccountHost: "acct.documents.azure.cn"}, "acct.documents.azure.cn_q0oIAA==_q0oIALS6YvQ=..0", true},
		{"Java: by names, the host as it was given", changefeed.Identity{AccountHost: "Acct.documents.azure.com"}, "Acct.documents.azure.com_mydb_mycoll..0", true},
		{"Java EPK: by RIDs", changefeed.Identity{AccountHost: "acct.documents.azure.com"}, "acct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..-FF", true},
		{"the marker is no lease", changefeed.Identity{AccountHost: "acct.documents.azure.com"}, "acct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=.info", false},
		{"the lock is no lease", changefeed.Identity{AccountHost: "acct.documents.azure.com"}, "acct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=.lock", false},
		{"not those of a container of the same name before this one", changefeed.Identity{AccountHost: "acct.documents.azure.com"}, "acct.documents.azure.com_q0oIAA==_q0oIALS6YvA=..0", false},
		{"not those of a processor whose name ends in this one's", changefeed.Identity{ProcessorName: "proc", AccountHost: "acct.documents.azure.com"}, "my-procacct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0", false},
		{"not those of a container whose name goes on with dots", changefeed.Identity{ProcessorName: "proc", AccountHost: "acct.documents.azure.com"}, "procacct.documents.azure.com_mydb_mycoll..eu..0", false},
		{"not those of a processor whose name begins with this one's", changefeed.Identity{ProcessorName: "proc", AccountHost: "acct.documents.azure.com"}, "proc2acct.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			c.identity.Database, c.identity.Container, c.identity.ContainerRID = "mydb", "mycoll", rid
			prefixes, err := c.identity.Prefixes()
			if err != nil {
				t.Fatal(err)
			}
			documents := []changefeed.LeaseDocument{{Lease: changefeed.Lease{ID: c.id, Token: "0"}}}
			selected, err := changefeed.Sorted(documents, time.Now()).Select(prefixes, changefeed.FamilyAny)
			if got := len(selected) == 1; got != c.own || err != nil {
				t.Errorf("%s: %v, %v; want %v", c.id, got, err, c.own)
			}
		})
	}
}

// TestLagWhereTheEstimatorsOfTheSDKsDiffer has the answers that the .NET estimator, the Java one
// and KEDA count differently.
func TestLagWhereTheEstimatorsOfTheSDKsDiffer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, session, item string
		want                int64
		approximate         bool
	}{
		{"a simple token: Java says -1", "0:123", `{"_lsn":120}`, 4, false},
		{"a token without a colon: Java fails, KEDA does not part it at the hash", "-1#123", `{"_lsn":120}`, 4, false},
		{"a session behind the item: Java's is negative, .NET's 0", "0:-1#118", `{"_lsn":120}`, 1, true},
		{"a session far below zero", "0:-9223372036854775808", `{"_lsn":120}`, 1, true},
		{"more than 31 bits: Java ends there", "0:-1#9876543210", `{"_lsn":1}`, 9876543210, false},
		{"an LSN in text", "0:-1#2000", `{"_lsn":" 1990 "}`, 11, false},
		{"an LSN below one: .NET says 1", "0:-1#2000", `{"_lsn":-5}`, 1, true},
		{"no LSN: Java fails for all partitions, KEDA too", "0:-1#2000", `{"id":"a"}`, 1, true},
		{"no session: .NET says 0, Java fails", "", `{"_lsn":120}`, 1, true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			answer := changefeed.Answer{Status: 200, SessionToken: c.session, Date: time.Unix(1772625600, 0)}
			got, err := measure(answer, []byte(`{"Documents":[`+c.item+`]}`), changefeed.Incremental)
			if err != nil {
				t.Fatal(err)
			}
			if got.Lag != c.want || got.Approximate != c.approximate {
				t.Errorf("lag %d, approximate %v; want %d, %v", got.Lag, got.Approximate, c.want, c.approximate)
			}
		})
	}
}
