package tablestore_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// TestMoreThanATableMaySendIsAnError has a state of little text that decompresses to much, and a query
// whose pages have no end.
func TestMoreThanATableMaySendIsAnError(t *testing.T) {
	t.Parallel()
	packed := func(size int) string {
		var text bytes.Buffer
		w := gzip.NewWriter(&text)
		_, _ = w.Write([]byte(`{"processor":"orders"`))
		_, _ = w.Write(bytes.Repeat([]byte(" "), size-len(`{"processor":"orders"}`)))
		_, _ = w.Write([]byte("}"))
		_ = w.Close() // into memory, which cannot fail
		return `{"PartitionKey":"orders","RowKey":"state","odata.etag":"1","state0@odata.type":"Edm.Binary","state0":"` + base64.StdEncoding.EncodeToString(text.Bytes()) + `"}`
	}
	row := `{"PartitionKey":"orders","RowKey":"outbox-000000000001","body0@odata.type":"Edm.Binary","body0":"eA=="}`
	page := strings.Repeat(row+",", 999) + row
	for _, c := range []struct {
		rule   string
		answer func() *http.Response
		says   string // "" = it is read
	}{
		{"a state of as much as is allowed", func() *http.Response { return rows(packed(64 << 20)) }, ""},
		{"of one byte more", func() *http.Response { return rows(packed(64<<20 + 1)) }, "longer than 64 MiB once decompressed"},
		{"rows without an end", func() *http.Response {
			r := rows(page)
			r.Header.Set("x-ms-continuation-NextPartitionKey", "orders")
			return r
		}, "more than 100000 rows"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			asked := 0
			store := openThrough(t, keyed, func(*http.Request) (*http.Response, error) {
				asked++
				return c.answer(), nil
			})
			record, err := storetest.Load(t.Context(), store, "orders")
			if c.says == "" && (err != nil || record.State.Processor != "orders") || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %+v, %v", record.State, err)
			}
			if asked > 101 {
				t.Errorf("it was asked %d times", asked)
			}
		})
	}
}
