package changefeed_test

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	ridPrefix  = "procshop.documents.azure.com_q0oIAA==_q0oIALS6YvQ="
	namePrefix = "procshop.documents.azure.com_shop_orders"
)

func TestReadRIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, prefix string
		want         changefeed.PrefixReading
		ok           bool
	}{
		{"name and host are the head", ridPrefix, reading("procshop.documents.azure.com", "q0oIAA==", "q0oIALS6YvQ="), true},
		{"an empty name", "shop.documents.azure.com_q0oIAA==_q0oIALS6YvQ=", reading("shop.documents.azure.com", "q0oIAA==", "q0oIALS6YvQ="), true},
		{"a name with '_' and '..'", "my_proc..v2localhost_q0oIAA==_q0oIALS6YvQ=", reading("my_proc..v2localhost", "q0oIAA==", "q0oIALS6YvQ="), true},
		{"RIDs with '-' and '+'", "h_-+oIAA==_-+oIALS6Yv0=", reading("h", "-+oIAA==", "-+oIALS6Yv0="), true},
		{"a host in upper case", "SHOP.documents.azure.com_q0oIAA==_q0oIALS6YvQ=", reading("SHOP.documents.azure.com", "q0oIAA==", "q0oIALS6YvQ="), true},
		{"names are none", namePrefix, changefeed.PrefixReading{}, false},
		{"names as long as RIDs are none", "h_database_container123", changefeed.PrefixReading{}, false},
		{"the RID of a container in another database is none", "h_V4lVAA==_q0oIALS6YvQ=", changefeed.PrefixReading{}, false},
		{"RIDs that nothing separates are none", "h_q0oIAA==q0oIALS6YvQ=", changefeed.PrefixReading{}, false},
		{"a container's RID alone", "q0oIALS6YvQ=", changefeed.PrefixReading{}, false},
		{"nothing", "", changefeed.PrefixReading{}, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got, ok := changefeed.ReadRIDs(c.prefix); got != c.want || ok != c.ok {
				t.Errorf("got %+v, %v; want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func reading(head, database, container string) changefeed.PrefixReading {
	return changefeed.PrefixReading{Head: head, Database: database, Container: container}
}

func TestReadNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, prefix, host string
		want               []changefeed.PrefixReading
	}{
		{"the own host ends the head", namePrefix, "shop.documents.azure.com", []changefeed.PrefixReading{reading("procshop.documents.azure.com", "shop", "orders")}},
		{"in any case", "Shop.Documents.Azure.com_shop_orders", "shop.documents.azure.com", []changefeed.PrefixReading{reading("Shop.Documents.Azure.com", "shop", "orders")}},
		{"a '_' in the name of the processor is none of the separators", "my_prochost_shop_orders", "host", []changefeed.PrefixReading{reading("my_prochost", "shop", "orders")}},
		{"a '_' in a name of a database or container: either may have it", "host_my_shop_orders", "host",
			[]changefeed.PrefixReading{reading("host", "my", "shop_orders"), reading("host", "my_shop", "orders")}},
		{"'..' in names is nothing special", "a..bhost_s..p_o..s", "host", []changefeed.PrefixReading{reading("a..bhost", "s..p", "o..s")}},
		{"a host that is not known: every reading", "a_b_c_d", "h", []changefeed.PrefixReading{reading("a", "b", "c_d"), reading("a", "b_c", "d"), reading("a_b", "c", "d")}},
		{"no part is empty", "host__shop", "host", []changefeed.PrefixReading{}},
		{"too few parts", "host_shop", "host", nil},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got := changefeed.ReadNames(c.prefix, c.host)
			if len(got) != len(c.want) || len(got) > 0 && !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestSplitHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, head, host string
		name, found      string
		ok               bool
	}{
		{"the host in front of which the name stands", "procshop.example", "shop.example", "proc", "shop.example", true},
		{"an empty name", "shop.example", "shop.example", "", "shop.example", true},
		{"the head in lower case, as .NET has it", "Procshop.example", "Shop.Example", "Proc", "shop.example", true},
		{"the head as it was given, as Java has it", "procShop.example", "shop.example", "proc", "Shop.example", true},
		{"another host", "procother.example", "shop.example", "", "", false},
		{"a head shorter than the host", "example", "shop.example", "", "", false},
		{"no host", "proc", "", "", "", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			name, host, ok := changefeed.SplitHead(c.head, c.host)
			if name != c.name || host != c.found || ok != c.ok {
				t.Errorf("got %q, %q, %v; want %q, %q, %v", name, host, ok, c.name, c.found, c.ok)
			}
		})
	}
}

// TestTheFormatOfALease has the formats of docs/lag.md, Formats of leases, and what changes between
// them.
func TestTheFormatOfALease(t *testing.T) {
	t.Parallel()
	state := base64.URLEncoding.EncodeToString([]byte(`{"V":1,"Mode":"INCREMENTAL","StartFrom":{"Type":"NOW"}}`))
	for _, c := range []struct {
		rule, document string
		want           changefeed.Format
	}{
		{".NET PK", `{"id":"` + ridPrefix + `..0","version":0,"LeaseToken":"0","FeedRange":{"Range":{"min":"","max":"FF"}},"Mode":"Incremental Feed"}`, changefeed.FormatDotNetPK},
		{".NET PK, of an older SDK: without version and FeedRange", `{"id":"` + ridPrefix + `..0","LeaseToken":"0"}`, changefeed.FormatDotNetPK},
		{".NET EPK, not checkpointed", `{"id":"` + ridPrefix + `..-FF","version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":null}`, changefeed.FormatDotNetEPK},
		{"V2", `{"id":"` + ridPrefix + `..0","PartitionId":"0"}`, changefeed.FormatV2},
		{"V2 that v3 has touched", `{"id":"` + ridPrefix + `..0","PartitionId":"0","LeaseToken":"0"}`, changefeed.FormatDotNetPK},
		{"Java PK", `{"id":"` + namePrefix + `..0","LeaseToken":"0"}`, changefeed.FormatJavaPK},
		{"Java EPK", `{"id":"` + ridPrefix + `..-FF","version":1,"LeaseToken":"-FF","feedRange":{"Range":{"min":"","max":"FF"}},"ContinuationToken":"` + state + `"}`, changefeed.FormatJavaEPK},
		{"Java EPK by its continuation alone", `{"id":"` + ridPrefix + `..-FF","version":1,"LeaseToken":"-FF","ContinuationToken":"` + state + `"}`, changefeed.FormatJavaEPK},
		{"Java EPK by the spelling of its range alone", `{"id":"` + ridPrefix + `..-FF","version":1,"LeaseToken":"-FF","feedRange":{"Range":{"min":"","max":"FF"}}}`, changefeed.FormatJavaEPK},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got, err := changefeed.ParseLease([]byte(c.document)); err != nil || got.Format != c.want {
				t.Errorf("got %q, %v; want %q", got.Format, err, c.want)
			}
		})
	}
}

func TestInventory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		ids  []string // "id", or "!id" for a document that is no lease
		want []string // prefix: tokens
	}{
		{"leases go by what stands in front of the last '..'", []string{"a_d_c..0", "b_d_c..0", "a_d_c..1"}, []string{"a_d_c: 0 1", "b_d_c: 0"}},
		{"'..' in a name", []string{"a..b_d..e_c..0", "a..b_d..e_c..1"}, []string{"a..b_d..e_c: 0 1"}},
		{"a container whose name ends with a dot", []string{"a_d_c...0"}, []string{"a_d_c.: 0"}},
		{"EPK leases", []string{"a_d_c..-7F", "a_d_c..7F-FF"}, []string{"a_d_c: -7F 7F-FF"}},
		{"the markers are passed over", []string{"a_d_c..0", "!a_d_c.info", "!a_d_c.lock"}, []string{"a_d_c: 0"}},
		{"the markers of a name with '..', too", []string{"a..b_d_c..0", "!a..b_d_c.info", "!a..b_d_c.lock"}, []string{"a..b_d_c: 0"}},
		{"a document that is no lease, and has the id of one, is kept", []string{"a_d_c..0", "!a_d_c..7"}, []string{"a_d_c: 0 !7"}},
		{"the same id twice, as under GUID keys, is one", []string{"a_d_c..0", "a_d_c..0"}, []string{"a_d_c: 0"}},
		{"other documents are none of ours", []string{"!order-17", "!.."}, nil},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var documents []changefeed.LeaseDocument
			for _, id := range c.ids {
				document := fmt.Sprintf(`{"id":%q}`, strings.TrimPrefix(id, "!"))
				if at := strings.LastIndex(id, ".."); !strings.HasPrefix(id, "!") {
					document = fmt.Sprintf(`{"id":%q,"LeaseToken":%q}`, id, id[at+2:])
				}
				documents = append(documents, leaseDocument(document))
			}
			var got []string
			for _, p := range changefeed.Sorted(documents, time.Now()).Inventory() {
				line := p.Prefix + ":"
				for _, l := range p.Leases {
					if l.Err != nil {
						l.Token = "!" + l.Token
					}
					line += " " + l.Token
				}
				got = append(got, line)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func leaseDocument(document string) changefeed.LeaseDocument {
	lease, err := changefeed.ParseLease([]byte(document))
	return changefeed.LeaseDocument{Lease: lease, Err: err}
}
