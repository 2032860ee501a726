package changefeed

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzLeaseFieldsAreWhatEncodingJSONReads holds the scan of a lease against encoding/json.
func FuzzLeaseFieldsAreWhatEncodingJSONReads(f *testing.F) {
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
		var want leaseFields
		wantErr := json.Unmarshal(document, &want)
		got, err := readLeaseFields(document, json.Valid(document))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, want %v", err, wantErr)
		}
		for _, raw := range []*json.RawMessage{&got.Continuation, &got.Timestamp, &got.Version, &got.FeedRange, &got.Mode, &want.Continuation, &want.Timestamp, &want.Version, &want.FeedRange, &want.Mode} {
			*raw = append(json.RawMessage{}, *raw...) // absent or empty
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}
