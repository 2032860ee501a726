package app

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/config"
)

// healthPath answers probes, which have no key. It says nothing but that HTTP is answered.
const healthPath = "/healthz"

// Where a Functions host looks for its key, so that a caller need not know who answers
// (https://learn.microsoft.com/azure/azure-functions/function-keys-how-to).
const (
	keyHeader    = "x-functions-key"
	keyParameter = "code"
	bearer       = "Bearer " // in Authorization: the only header that Prometheus fills from a Secret
)

// wrongKeyDelay is how long the answer to a wrong key takes. An address has only so many connections that
// can wait for one.
const wrongKeyDelay = time.Second

// guarded requires the key, if there is one, and on loopback a Host header that names this machine:
// otherwise a page in a browser could let its own name resolve to 127.0.0.1 and read everything.
// Under a Functions host, the host checks both. After a request without the right key, the
// connection is closed.
func (h *Host) guarded(next http.Handler, c *callers) http.Handler {
	if h.options.BehindHost {
		return next
	}
	key, local := h.config.Settings.APIKey.Reveal(), config.IsLoopback(h.config.Settings.Listen)
	refuse := func(w http.ResponseWriter, r *http.Request, status int, why string) {
		w.Header().Set("Connection", "close")
		problem.Write(w, r, status, why)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := givenKey(r)
		// The answer to a probe must not reveal whether a key is right.
		isProbe := r.URL.Path == healthPath
		switch {
		case local && !config.IsLoopback(r.Host):
			refuse(w, r, http.StatusForbidden, "only this machine is answered here: ask for 127.0.0.1 or localhost")
		case key != "" && !isProbe && subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 0:
			if given != "" {
				select {
				case <-time.After(wrongKeyDelay):
				case <-r.Context().Done():
				}
			}
			refuse(w, r, http.StatusUnauthorized, "send the key of FEEDSCALE_API_KEY in the header "+keyHeader+", or as ?"+keyParameter+"=")
		default:
			if key != "" && isProbe {
				w.Header().Set("Connection", "close")
			}
			defer c.hold(r, key != "" && !isProbe)()
			next.ServeHTTP(w, r)
		}
	})
}

// givenKey is the key that a request brings, in a header or, if there is none, in the query.
func givenKey(r *http.Request) string {
	if given := r.Header.Get(keyHeader); given != "" {
		return given
	}
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), bearer); ok {
		return given
	}
	return r.URL.Query().Get(keyParameter)
}

// The connections of callers. Who brings no key cannot take the place of others: the oldest connection of
// a stranger makes room for the next one, so that a flood does not silence probes.
const (
	maxConnections = 1_000 // at once
	maxStrangers   = 250   // of these, from one address beyond loopback, where a proxy may stand before everybody
)

// callers are the open connections of a server, the oldest first.
type callers struct {
	mu   sync.Mutex
	open []*caller
}

// caller is one connection.
type caller struct {
	conn    net.Conn
	address netip.Addr // with IPv6 that of its network, of which one machine has all addresses
	held    bool       // it brought the key, or is being answered
}

// callerKey is the key of a request's caller in its context.
type callerKey struct{}

// watch has a server tell of its connections.
func (c *callers) watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, callerKey{}, c.admit(conn))
	}
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.open = slices.DeleteFunc(c.open, func(o *caller) bool { return o.conn == conn })
		}
	}
}

// admit counts a connection, and closes the oldest one of a stranger if there are too many.
func (c *callers) admit(conn net.Conn) *caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := &caller{conn: conn, address: addressOf(conn)}
	c.open = append(c.open, newest)
	strangers := slices.DeleteFunc(slices.Clone(c.open), func(o *caller) bool { return o.held })
	neighbors := slices.DeleteFunc(slices.Clone(strangers), func(o *caller) bool { return o.address != newest.address })
	if len(neighbors) > maxStrangers && !newest.address.IsLoopback() {
		strangers = neighbors
	} else if len(c.open) <= maxConnections {
		return newest
	}
	c.open = slices.DeleteFunc(c.open, func(o *caller) bool { return o == strangers[0] })
	strangers[0].conn.Close()
	return newest
}

// hold keeps the connection of a request until release, and after that if it brought the key.
func (c *callers) hold(r *http.Request, hasKey bool) (release func()) {
	set := func(held bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if of, watched := r.Context().Value(callerKey{}).(*caller); watched {
			of.held = held
		}
	}
	set(true)
	return func() { set(hasKey) }
}

func addressOf(conn net.Conn) netip.Addr {
	at, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // none, if it is not of TCP
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() && !address.IsLoopback() {
		network, _ := address.Prefix(64)
		return network.Addr()
	}
	return address
}
