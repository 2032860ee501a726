package main_test

import (
	"io"
	"log"
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

// front is a proxy in front of Azurite.
type front struct {
	connection string

	mu     sync.Mutex
	around func(http.ResponseWriter, *http.Request, http.Handler)
}

// control installs a function that is called before a request is passed on, and replaces the one
// before. It may wait, or panic with http.ErrAbortHandler to break the connection.
func (f *front) control(asks func(*http.Request)) {
	f.intercept(func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		asks(r)
		if r.Context().Err() == nil { // the client still waits
			behind.ServeHTTP(w, r)
		}
	})
}

// intercept installs a function that answers each request, with or without Azurite, and replaces
// the one before.
func (f *front) intercept(around func(w http.ResponseWriter, r *http.Request, behind http.Handler)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.around = around
}

func newFront(t *testing.T) *front {
	t.Helper()
	connection := made(t, startTables).ConnectionString()
	_, endpoint, _ := strings.Cut(strings.TrimSuffix(connection, ";"), "TableEndpoint=")
	behind, err := url.Parse(endpoint)
	testworld.Must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testworld.Must(t, err)
	f := &front{connection: strings.Replace(connection, behind.Host, listener.Addr().String(), 1)}
	f.control(func(*http.Request) {})
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of requests that the client gave up
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		around := f.around
		f.mu.Unlock()
		around(w, r, proxy)
	})}
	go func() { _ = server.Serve(listener) }() // it ends with the test
	t.Cleanup(func() { testworld.Must(t, server.Close()) })
	return f
}
