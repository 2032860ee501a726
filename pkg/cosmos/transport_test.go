package cosmos_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestConnectionsAreKeptAndTLSSessionsResumed counts the handshakes of two ticks, and of one behind which
// every connection was closed.
func TestConnectionsAreKeptAndTLSSessionsResumed(t *testing.T) {
	t.Parallel()
	const concurrency, ticks, requests = 8, 2, 200
	var full, resumed atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }))
	server.TLS = &tls.Config{VerifyConnection: func(c tls.ConnectionState) error {
		if c.DidResume {
			resumed.Add(1)
		} else {
			full.Add(1)
		}
		if c.NegotiatedProtocol == "h2" {
			t.Error("HTTP/2: all requests would share one connection")
		}
		return nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := cosmos.NewTransport(concurrency)
	transport.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	a, err := cosmos.NewAccount(cosmos.Options{
		Endpoint: server.URL, Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: concurrency, Transport: &http.Client{Transport: transport},
	})
	testworld.Must(t, err)
	tick := func() {
		var reading sync.WaitGroup
		for range concurrency {
			reading.Go(func() {
				for range requests / concurrency {
					if _, _, err := a.FeedPage(t.Context(), orders, changefeed.Position{Range: "0", Continuation: `"1"`}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		reading.Wait()
	}
	for range ticks {
		tick()
	}
	// A connection that is opened while another one gets free is one too many, and is closed again.
	if n := full.Load() + resumed.Load(); n > ticks*requests/10 {
		t.Errorf("%d handshakes for %d requests of which %d are in flight", n, ticks*requests, concurrency)
	}
	before := full.Load()
	transport.CloseIdleConnections()
	tick()
	if full.Load() != before || resumed.Load() == 0 {
		t.Errorf("%d connections with a handshake anew, %d resumed", full.Load()-before, resumed.Load())
	}
}
