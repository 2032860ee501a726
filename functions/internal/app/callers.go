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

// callers are the open connections of a server.
type callers struct {
	mu       sync.Mutex
	open     map[net.Conn]*caller
	arrivals int
}

// caller is one connection.
type caller struct {
	address netip.Addr // with IPv6 that of its network, of which one machine has all addresses
	arrival int
	held    bool // it brought the key, or is being answered
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// watch has a server tell of its connections.
func (c *callers) watch(s *http.Server) {
	c.open = make(map[net.Conn]*caller)
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.admit(conn)
		case http.StateClosed, http.StateHijacked:
			c.mu.Lock()
			delete(c.open, conn)
			c.mu.Unlock()
		}
	}
}

// admit counts a connection, and closes the oldest one of a stranger if there are too many.
func (c *callers) admit(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrivals++
	newest := &caller{addressOf(conn), c.arrivals, false}
	c.open[conn] = newest
	var strangers, neighbors []net.Conn
	for other, o := range c.open {
		if !o.held {
			strangers = append(strangers, other)
		}
		if !o.held && o.address == newest.address {
			neighbors = append(neighbors, other)
		}
	}
	switch {
	case len(neighbors) > maxStrangers && !newest.address.IsLoopback():
		strangers = neighbors
	case len(c.open) <= maxConnections:
		return
	}
	oldest := slices.MinFunc(strangers, func(a, b net.Conn) int { return c.open[a].arrival - c.open[b].arrival })
	delete(c.open, oldest)
	oldest.Close()
}

// hold keeps the connection of a request until release, and after that if it brought the key.
func (c *callers) hold(r *http.Request, hasKey bool) (release func()) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	set := func(held bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if caller := c.open[conn]; caller != nil {
			caller.held = held
		}
	}
	set(true)
	return func() { set(hasKey) }
}

func addressOf(conn net.Conn) netip.Addr {
	tcp, _ := conn.RemoteAddr().(*net.TCPAddr)
	if tcp == nil {
		return netip.Addr{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if network, err := address.Prefix(64); err == nil && address.Is6() && !address.IsLoopback() {
		return network.Addr()
	}
	return address
}
