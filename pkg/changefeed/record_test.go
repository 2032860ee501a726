package changefeed_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

var (
	whole   = changefeed.Range{Max: "FF"}
	half    = changefeed.Range{Max: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}
	fakeOf  = func(r changefeed.Range) leasefake.Range { return leasefake.Range(r) }
	created = time.Date(2026, 3, 4, 23, 50, 46, 219570110, time.UTC)
	updated = time.Date(2026, 3, 4, 23, 55, 16, 523351100, time.UTC)
	writer  = leasefake.Processor{
		Name: "proc", Host: "Acct.documents.azure.com", Database: "mydb", Container: "mycoll",
		DatabaseRID: "q0oIAA==", ContainerRID: "q0oIALS6YvQ=",
	}
)

func schemeOf(format changefeed.Format, mode changefeed.Mode, start changefeed.StartFrom) changefeed.Scheme {
	prefix := map[changefeed.Format]string{
		changefeed.FormatDotNetPK: writer.DotNetPrefix(), changefeed.FormatJavaPK: writer.JavaPKPrefix(), changefeed.FormatJavaEPK: writer.JavaEPKPrefix(),
	}[format]
	return changefeed.Scheme{Format: format, Prefix: prefix, ContainerRID: writer.ContainerRID, Mode: mode, Start: start}
}

// plain is a document with its names and values alone: Java's state is unwrapped.
func plain(t *testing.T, document any) map[string]any {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	if token, ok := fields["ContinuationToken"].(string); ok {
		if state, err := base64.URLEncoding.DecodeString(token); err == nil {
			fields["ContinuationToken"] = string(state) // its order is part of it
		}
	}
	return fields
}

// TestEveryLeaseIsWrittenAsItsSDKDoes holds the names, types, values, omissions and nulls of each format:
// of a lease that is created, of one that a split or merge creates, and of one through its life.
func TestEveryLeaseIsWrittenAsItsSDKDoes(t *testing.T) {
	t.Parallel()
	now, beginning := changefeed.StartFrom{}, changefeed.StartFrom{Beginning: true}
	noon := changefeed.StartFrom{Time: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	versions := leasefake.FullFidelity
	at := leasefake.At(511)
	for _, c := range []struct {
		rule   string
		scheme changefeed.Scheme
		epk    bool
		fake   func(leasefake.Fields) map[string]any
	}{
		{".NET PK", schemeOf(changefeed.FormatDotNetPK, changefeed.Incremental, now), false, func(f leasefake.Fields) map[string]any { return writer.DotNetPK("0", fakeOf(half), f) }},
		{".NET EPK", schemeOf(changefeed.FormatDotNetPK, changefeed.Incremental, now), true, func(f leasefake.Fields) map[string]any { return writer.DotNetEPK(fakeOf(half), f) }},
		{".NET PK, all versions", schemeOf(changefeed.FormatDotNetPK, changefeed.FullFidelity, now), false, func(f leasefake.Fields) map[string]any {
			f.Mode = versions
			return writer.DotNetPK("0", fakeOf(half), f)
		}},
		{".NET EPK, all versions", schemeOf(changefeed.FormatDotNetPK, changefeed.FullFidelity, now), true, func(f leasefake.Fields) map[string]any {
			f.Mode = versions
			return writer.DotNetEPK(fakeOf(half), f)
		}},
		{"Java PK", schemeOf(changefeed.FormatJavaPK, changefeed.Incremental, now), false, func(f leasefake.Fields) map[string]any { return writer.JavaPK("0", f) }},
		{"Java EPK, from now", schemeOf(changefeed.FormatJavaEPK, changefeed.Incremental, now), true, func(f leasefake.Fields) map[string]any {
			return writer.JavaEPK(fakeOf(half), leasefake.FromNow(), f)
		}},
		{"Java EPK, from the beginning", schemeOf(changefeed.FormatJavaEPK, changefeed.Incremental, beginning), true, func(f leasefake.Fields) map[string]any {
			return writer.JavaEPK(fakeOf(half), leasefake.FromBeginning(), f)
		}},
		{"Java EPK, from a time", schemeOf(changefeed.FormatJavaEPK, changefeed.Incremental, noon), true, func(f leasefake.Fields) map[string]any {
			return writer.JavaEPK(fakeOf(half), leasefake.FromTime(noon.Time), f)
		}},
		{"Java EPK, all versions", schemeOf(changefeed.FormatJavaEPK, changefeed.FullFidelity, now), true, func(f leasefake.Fields) map[string]any {
			f.Mode = versions
			return writer.JavaEPK(fakeOf(half), leasefake.FromNow(), f)
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			make := func(continuation string) *changefeed.Record {
				if c.epk {
					return c.scheme.EPK(half, continuation, created)
				}
				return c.scheme.PK(changefeed.PartitionKeyRange{ID: "0", Min: half.Min, Max: half.Max}, continuation, created)
			}
			check := func(what string, l *changefeed.Record, f leasefake.Fields) *changefeed.Record {
				t.Helper()
				document, err := l.Document()
				if err != nil {
					t.Fatal(err)
				}
				if got, want := plain(t, json.RawMessage(document)), plain(t, c.fake(f)); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got  %v\nwant %v", what, got, want)
				}
				again, err := changefeed.ReadRecord(document)
				if err != nil || again.Continuation != l.Continuation || again.Owner != l.Owner {
					t.Errorf("%s: it is read as %+v, %v", what, again, err)
				}
				return again
			}
			check("created by a split", make(*at), leasefake.Fields{Continuation: at, Created: created})
			l := check("created", make(""), leasefake.Fields{Created: created})
			c.scheme.Own(l, "host1")
			c.scheme.Stamp(l, updated)
			l = check("acquired", l, leasefake.Fields{Owner: "host1", Created: created, Updated: updated})
			c.scheme.Position(l, *at)
			l = check("checkpointed", l, leasefake.Fields{Owner: "host1", Continuation: at, Created: created, Updated: updated})
			c.scheme.Position(l, *leasefake.At(512))
			c.scheme.Stamp(l, updated.Add(time.Second))
			l = check("checkpointed again", l, leasefake.Fields{Owner: "host1", Continuation: leasefake.At(512), Created: created, Updated: updated.Add(time.Second)})
			c.scheme.Own(l, "")
			check("released", l, leasefake.Fields{Continuation: leasefake.At(512), Created: created, Updated: updated.Add(time.Second)})
		})
	}
}

func TestALeaseContainerByPartitionKeyHasTheIDAsItsValue(t *testing.T) {
	t.Parallel()
	s := schemeOf(changefeed.FormatDotNetPK, changefeed.Incremental, changefeed.StartFrom{})
	s.Keyed = true
	l := s.PK(changefeed.PartitionKeyRange{ID: "0", Max: "FF"}, "", created)
	document, err := l.Document()
	if err != nil {
		t.Fatal(err)
	}
	id := writer.DotNetPrefix() + "..0"
	want := writer.DotNetPK("0", fakeOf(whole), leasefake.Fields{PartitionKey: id})
	if got := plain(t, json.RawMessage(document)); !reflect.DeepEqual(got, plain(t, want)) || l.Key() != id {
		t.Errorf("got %v with key %q, want %v", got, l.Key(), want)
	}
}

// TestWhatIsUnknownSurvivesEveryWrite has fields of a later version, properties, and the system
// properties, which alone are the account's.
func TestWhatIsUnknownSurvivesEveryWrite(t *testing.T) {
	t.Parallel()
	state := base64.URLEncoding.EncodeToString([]byte(`{"V":1,"Rid":"/dbs/mydb/colls/mycoll","Mode":"INCREMENTAL","StartFrom":{"Type":"LEASE","Etag":"\"7\"","Later":1},"Continuation":{"V":1,"Rid":"/dbs/mydb/colls/mycoll","Continuation":[{"token":null,"range":{"min":"","max":"FF"}}],"Range":{"min":"","max":"FF"}}}`))
	for _, c := range []struct {
		rule     string
		format   changefeed.Format
		document map[string]any
	}{
		{".NET", changefeed.FormatDotNetPK, writer.DotNetPK("0", fakeOf(whole), leasefake.Fields{})},
		{".NET of before ranges", changefeed.FormatDotNetPK, writer.DotNetPKOld("0", leasefake.Fields{})},
		{"V2", changefeed.FormatDotNetPK, writer.V2Gremlin("0", leasefake.Fields{})},
		{".NET from V2", changefeed.FormatDotNetPK, writer.DotNetPKFromV2("0", leasefake.Fields{})},
		{"Java PK", changefeed.FormatJavaPK, writer.JavaPK("0", leasefake.Fields{Created: created})},
		{"Java EPK", changefeed.FormatJavaEPK, writer.JavaEPK(fakeOf(whole), leasefake.FromNow(), leasefake.Fields{Created: created})},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			before := maps.Clone(c.document)
			before["properties"], before["later"], before["_own"] = map[string]any{"a": "b"}, []any{1.0, nil}, "mine"
			if c.format == changefeed.FormatJavaEPK {
				before["ContinuationToken"] = state
			}
			written := maps.Clone(before)
			written["_ts"], written["_rid"], written["_self"], written["_attachments"], written["_etag"] = 5, "r", "s", "a", `"7"`
			text, err := json.Marshal(written)
			if err != nil {
				t.Fatal(err)
			}
			l, err := changefeed.ReadRecord(text)
			if err != nil {
				t.Fatal(err)
			}
			s := schemeOf(c.format, changefeed.Incremental, changefeed.StartFrom{})
			s.Own(l, "host1")
			s.Position(l, *leasefake.At(9))
			s.Stamp(l, updated)
			document, err := l.Document()
			if err != nil {
				t.Fatal(err)
			}
			got := plain(t, json.RawMessage(document))
			if l.ETag != `"7"` || got["Owner"] != "host1" {
				t.Errorf("got etag %s and %v", l.ETag, got)
			}
			if c.format == changefeed.FormatJavaEPK {
				want := `{"V":1,"Rid":"/dbs/mydb/colls/mycoll","Mode":"INCREMENTAL","StartFrom":{"Type":"LEASE","Etag":"\"7\"","Later":1},"Continuation":{"V":1,"Rid":"/dbs/mydb/colls/mycoll","Continuation":[{"token":"\"9\"","range":{"min":"","max":"FF"}}],"Range":{"min":"","max":"FF"}}}`
				if got["ContinuationToken"] != want {
					t.Errorf("got state %v, want %s", got["ContinuationToken"], want)
				}
			} else if got["ContinuationToken"] != *leasefake.At(9) {
				t.Errorf("got continuation %v", got["ContinuationToken"])
			}
			for name, value := range plain(t, before) {
				switch name {
				case "Owner", "ContinuationToken", "timestamp":
				default:
					if !reflect.DeepEqual(got[name], value) {
						t.Errorf("%s is %v, was %v", name, got[name], value)
					}
				}
				delete(got, name)
			}
			if c.format == changefeed.FormatDotNetPK && c.document["LeaseToken"] == nil { // of V2
				if got["LeaseToken"] != "0" || got["version"] != 0.0 {
					t.Errorf("a lease of V2 got %v, want what version 3 adds", got)
				}
				delete(got, "LeaseToken")
				delete(got, "version")
			}
			if len(got) > 0 {
				t.Errorf("it got %v", got)
			}
		})
	}
}

// FuzzLeaseDocuments holds that a document that is read as a lease can be changed and read again, and
// that nothing else of it changes.
func FuzzLeaseDocuments(f *testing.F) {
	for _, document := range []map[string]any{
		writer.DotNetPK("0", fakeOf(whole), leasefake.Fields{Continuation: leasefake.At(1)}), writer.DotNetEPK(fakeOf(half), leasefake.Fields{}),
		writer.V2("0", leasefake.Fields{}), writer.JavaPK("0", leasefake.Fields{Created: created}),
		writer.JavaEPK(fakeOf(half), leasefake.FromNow(), leasefake.Fields{Continuation: leasefake.At(3), Created: created}),
		writer.JavaEPKMigrated(fakeOf(half), leasefake.FromBeginning(), leasefake.Fields{Created: created}),
		writer.JavaEPKUnread(fakeOf(half), leasefake.FromTime(updated), leasefake.Fields{Created: created}),
	} {
		text, err := json.Marshal(document)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "host", `"77"`)
	}
	f.Fuzz(func(t *testing.T, text []byte, owner, etag string) {
		l, err := changefeed.ReadRecord(text)
		if err != nil || owner == "" || etag == "" {
			return
		}
		format := changefeed.FormatDotNetPK
		if l.Format == changefeed.FormatJavaEPK {
			format = changefeed.FormatJavaEPK
		}
		if etag = plainText(etag); plainText(owner) != `"`+owner+`"` {
			return
		}
		s := schemeOf(format, l.Mode, changefeed.StartFrom{})
		s.Own(l, owner)
		s.Position(l, etag)
		s.Stamp(l, updated)
		document, err := l.Document()
		if err != nil {
			t.Fatal(err)
		}
		again, err := changefeed.ReadRecord(document)
		if err != nil || again.Owner != owner || again.Continuation != etag || again.Token != l.Token || !again.Time.Equal(updated) {
			t.Errorf("%s\nis written as %s\nand read as %+v, %v", text, document, again, err)
		}
		var before, after map[string]any
		if json.Unmarshal(text, &before) != nil || json.Unmarshal(document, &after) != nil {
			t.Fatal("not an object")
		}
		for name, value := range before {
			switch name {
			case "Owner", "ContinuationToken", "timestamp", "_rid", "_self", "_etag", "_attachments", "_ts":
			default:
				if !reflect.DeepEqual(after[name], value) {
					t.Errorf("%s was %v and is %v", name, value, after[name])
				}
			}
		}
	})
}

// plainText is a text as a header and JSON can have it.
func plainText(text string) string {
	var kept []rune
	for _, r := range text {
		if r > ' ' && r < '~' {
			kept = append(kept, r)
		}
	}
	return fmt.Sprintf(`"%s"`, string(kept))[:min(2+len(kept), 500)]
}
