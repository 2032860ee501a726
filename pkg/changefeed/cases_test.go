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
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
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
			if got := len(changefeed.Select(documents, prefixes)) == 1; got != c.own {
				t.Errorf("%s: %v, want %v", c.id, got, c.own)
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
		{"an LSN in text with separators, as .NET reads it", "0:-1#2000", `{"_lsn":" 1,990.0 "}`, 11, false},
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
