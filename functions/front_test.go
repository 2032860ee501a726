package main_test

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// front stands before Azurite.
type front struct {
	connection string

	mu   sync.Mutex
	asks func(*http.Request)
}

// control has a function asked before a request is passed on, in place of the one before. It may wait, or
// panic with http.ErrAbortHandler to break the connection.
func (f *front) control(asks func(*http.Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks = asks
}

func (f *front) before(r *http.Request) {
	f.mu.Lock()
	asks := f.asks
	f.mu.Unlock()
	asks(r)
}

func newFront(t *testing.T) *front {
	t.Helper()
	connection := made(t, startTables).ConnectionString()
	_, endpoint, _ := strings.Cut(strings.TrimSuffix(connection, ";"), "TableEndpoint=")
	behind, err := url.Parse(endpoint)
	testworld.Must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testworld.Must(t, err)
	f := &front{connection: strings.Replace(connection, behind.Host, listener.Addr().String(), 1), asks: func(*http.Request) {}}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.before(r)
		if r.Context().Err() == nil { // whoever asked is still there
			proxy.ServeHTTP(w, r)
		}
	})}
	go func() { _ = server.Serve(listener) }() // it ends with the test
	t.Cleanup(func() { testworld.Must(t, server.Close()) })
	return f
}
