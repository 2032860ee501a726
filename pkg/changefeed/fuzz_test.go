package changefeed_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// The corpus of these targets is in testdata/fuzz: a file for each shape that the service or an SDK
// is known to write, and for each that once broke the code.

func FuzzParseLease(f *testing.F) {
	for _, document := range []string{
		``, `null`, `7`, `[]`, `{}`, `{ }`, "{\n}", `{"id":"a..0","LeaseToken":"0","Owner":null,"_ts":7}`,
		`{"id":"a","ID":"b","leasetoken":"1","FEEDRANGE":{"Range":{"min":"","max":"FF"}},"version":1}`,
		`{"id":7}`, `{"Owner":"\u0041\\\"}"}`, `{"\u0069d":"a"}`, `{"_ts":1e3}`, `{"_ts":null,"id":null}`, `{"_ts":"1"}`,
		` { "id" : "a" , "other" : [ {"id":"b]}"} , "c\\" ] , "_ts" : 1 } `, `{"id":"a"`, `{"id":"a"} x`, "{\"id\":\"\xff\"}",
		`{"LeaseToken":{},"PartitionId":"2"}`, `{"ContinuationToken":"\"5\"","timestamp":"2026-01-01T00:00:00Z","Mode":"Incremental Feed"}`,
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		l, err := changefeed.ParseLease(document)
		if err != nil {
			return
		}
		if l.Token == "" {
			t.Error("a lease without a token")
		}
		for _, r := range []*changefeed.Range{l.Range, l.Bounds} {
			if r != nil && !isRange(*r) {
				t.Errorf("the range %+v is none", *r)
			}
		}
		if l.Range != nil && l.Bounds != nil {
			t.Error("both an EPK lease and a PK-range lease")
		}
		if l.StartFrom != nil && l.Continuation != "" && l.StartFrom.Time.IsZero() {
			t.Errorf("both a start, %+v, and a position, %q", *l.StartFrom, l.Continuation)
		}
	})
}

// isRange says in other words what the bounds of a range are.
func isRange(r changefeed.Range) bool {
	for _, digit := range r.Min + r.Max {
		if !strings.ContainsRune("0123456789ABCDEFabcdef", digit) {
			return false
		}
	}
	width := max(len(r.Min), len(r.Max))
	fill := func(s string) string { return s + strings.Repeat("0", width-len(s)) }
	return fill(r.Min) < fill(r.Max)
}

func FuzzSessionLSN(f *testing.F) {
	f.Fuzz(func(t *testing.T, token string) {
		lsn, ok := changefeed.SessionLSN(token)
		if !ok {
			if lsn != 0 {
				t.Errorf("%d where there is none", lsn)
			}
			return
		}
		for rule, same := range map[string]string{
			"simple":                fmt.Sprintf("0:%d", lsn),
			"vector":                fmt.Sprintf("0:-1#%d", lsn),
			"vector with regions":   fmt.Sprintf("0:-1#%d#1=7#2=9", lsn),
			"without a range":       fmt.Sprintf("-1#%d", lsn),
			"with one more region":  withRegion(token),
			"with a range in front": withRange(token),
		} {
			if again, ok := changefeed.SessionLSN(same); !ok || again != lsn {
				t.Errorf("%s: %q reads as %d, %v; want %d", rule, same, again, ok, lsn)
			}
		}
	})
}

// withRegion adds a region to a vector token; another has no place for one.
func withRegion(token string) string {
	if strings.Contains(token[strings.Index(token, ":")+1:], "#") {
		return token + "#3=11"
	}
	return token
}

// withRange names a range in a token that names none.
func withRange(token string) string {
	if strings.Contains(token, ":") {
		return token
	}
	return "12:" + token
}

func FuzzContinuationLSN(f *testing.F) {
	f.Fuzz(func(t *testing.T, etag string) {
		lsn, ok := changefeed.ContinuationLSN(etag)
		if !ok {
			if lsn != 0 {
				t.Errorf("%d where there is none", lsn)
			}
			return
		}
		for _, same := range []string{fmt.Sprint(lsn), fmt.Sprintf(`"%d"`, lsn), fmt.Sprintf(`W/"%d"`, lsn)} {
			if again, ok := changefeed.ContinuationLSN(same); !ok || again != lsn {
				t.Errorf("%q reads as %d, %v; want %d", same, again, ok, lsn)
			}
		}
	})
}

func FuzzMeasure(f *testing.F) {
	f.Fuzz(func(t *testing.T, unchanged bool, session string, date int64, body []byte, everyVersion bool) {
		answer := changefeed.Answer{Status: 200, SessionToken: session, Date: time.Unix(date, 0)}
		mode := changefeed.Incremental
		if unchanged {
			answer.Status = 304
		}
		if everyVersion {
			mode = changefeed.FullFidelity
		}
		r, err := measure(answer, body, mode)
		if err != nil {
			return
		}
		if r.Age != nil && *r.Age < 0 {
			t.Errorf("age %d", *r.Age)
		}
		if unchanged {
			if r.Lag != 0 || r.Age != nil {
				t.Errorf("nothing is pending, but %+v", r)
			}
			return
		}
		if has := hasDocument(body); has == r.More {
			t.Errorf("it has a document: %v, and more is to be read: %v", has, r.More)
		}
		page, _ := changefeed.ReadPage(bytes.NewReader(body), mode) // measure has read it
		var first *int64
		if page.First != nil {
			first = page.First.LSN
		}
		if want := pending(r.SessionLSN, first); r.Lag != want {
			t.Errorf("lag %d, want %d", r.Lag, want)
		}
		if exact := r.SessionLSN != nil && first != nil && *r.SessionLSN >= *first; r.Approximate == exact {
			t.Errorf("approximate %v with %+v", r.Approximate, r)
		}
	})
}

// FuzzReadPage holds that what is taken for a page is one for a reader that keeps everything, with as
// many documents, and that a page is read alike however its bytes arrive.
func FuzzReadPage(f *testing.F) {
	for _, body := range []string{
		`{"Documents":[{"id":"a","_lsn":512,"_ts":1772668516}],"_count":1}`, `{"Documents":[]}`, `{}`, ``, `[]`, `{"Documents":null}`,
		`{"_rid":"x","Documents":[{"a":"\\\"","b":"\\","_lsn":7},{"c":[1,{"d":null}]}],"_count":2}`,
		`{"Documents":[{"current":{"_lsn":1},"metadata":{"lsn":9,"crts":5}}]}`, `{"Documents":[{"_lsn":"1,000.0"}]} `, `{"Documents":[1]} x`,
	} {
		f.Add([]byte(body), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, everyVersion bool) {
		mode := changefeed.Incremental
		if everyVersion {
			mode = changefeed.FullFidelity
		}
		page, err := changefeed.ReadPage(bytes.NewReader(body), mode)
		slow, slowErr := changefeed.ReadPage(iotest.OneByteReader(bytes.NewReader(body)), mode)
		if (err == nil) != (slowErr == nil) || !reflect.DeepEqual(page, slow) {
			t.Errorf("at once %+v, %v; byte by byte %+v, %v", page, err, slow, slowErr)
		}
		if err != nil || !json.Valid(body) {
			return
		}
		var whole struct{ Documents []json.RawMessage }
		if err := json.Unmarshal(body, &whole); err != nil {
			return // names in another case, or twice
		}
		if hasDocument(body) != (page.Items > 0) {
			t.Errorf("%d items of %s", page.Items, body)
		}
	})
}

// pending is the lag of a page with a document, in floating point, which cannot wrap around, where
// the numbers are far apart.
func pending(newest, first *int64) int64 {
	if newest == nil || first == nil || *newest <= *first {
		return 1
	}
	if float64(*newest)-float64(*first) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return *newest - *first + 1
}

// hasDocument reports whether a page has a document, as a reader without any knowledge of the feed
// sees it.
func hasDocument(body []byte) bool {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return false
	}
	has := false
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return false
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return false
		}
		if text, ok := name.(string); ok && text == "Documents" {
			var documents []json.RawMessage
			has = json.Unmarshal(value, &documents) == nil && len(documents) > 0
		}
	}
	return has
}
