package cosmos_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// memory answers each request from memory: what is measured is what this package adds to net/http.
type memory struct {
	header http.Header
	body   string
}

func (m memory) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: m.header, Body: io.NopCloser(strings.NewReader(m.body)), Request: r}, nil
}

// BenchmarkFeedPage reads one page of a change feed after the other (docs/decisions/0022-speed.md).
func BenchmarkFeedPage(b *testing.B) {
	account, err := cosmos.NewAccount(cosmos.Options{Endpoint: "https://contoso.documents.azure.com:443/", Key: cosmosfake.WellKnownKey, Concurrency: 64, Transport: memory{
		http.Header{
			"Date": {"Thu, 01 Jan 2026 00:00:00 GMT"}, "Etag": {`"9"`}, "X-Ms-Session-Token": {"0:-1#9"}, "X-Ms-Request-Charge": {"1"},
			"X-Ms-Content-Path": {"AAAA"},
		},
		`{"_rid":"AAAA","Documents":[{"id":"1","_lsn":5,"_ts":1767225600}],"_count":1}`,
	}})
	if err != nil {
		b.Fatal(err)
	}
	orders, position := cosmos.Container{Database: "shop", ID: "orders"}, changefeed.Position{Range: "7", Continuation: `"4"`}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := account.FeedPage(context.Background(), orders, position); err != nil {
			b.Fatal(err)
		}
	}
}
