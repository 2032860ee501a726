package app

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

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
	var strangers, neighbors []*caller
	for _, o := range c.open {
		if !o.held {
			strangers = append(strangers, o)
		}
		if !o.held && o.address == newest.address {
			neighbors = append(neighbors, o)
		}
	}
	switch {
	case len(neighbors) > maxStrangers && !newest.address.IsLoopback():
		strangers = neighbors
	case len(c.open) <= maxConnections:
		return newest
	}
	oldest := strangers[0]
	c.open = slices.DeleteFunc(c.open, func(o *caller) bool { return o == oldest })
	oldest.conn.Close()
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
