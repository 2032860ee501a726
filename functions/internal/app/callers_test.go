package app

import (
	"net"
	"net/http"
	"testing"
)

// remote is a connection from an address.
type remote struct {
	net.Conn
	address string
	closed  bool
}

func (r *remote) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(r.address), Port: 1}
}

func (r *remote) Close() error {
	r.closed = true
	return nil
}

func TestStrangersOfOneAddressMakeRoomForEachOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, address, next string
		closed              bool
	}{
		{"one address", "192.0.2.1", "192.0.2.1", true},
		{"another", "192.0.2.1", "192.0.2.2", false},
		{"one network of IPv6", "2001:db8::1", "2001:db8::ffff", true},
		{"another network", "2001:db8::1", "2001:db8:0:1::1", false},
		{"this machine, where a proxy may stand before everybody", "127.0.0.1", "127.0.0.1", false},
		{"this machine over IPv6", "::1", "::1", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var callers callers
			var server http.Server
			callers.watch(&server)
			first := &remote{address: c.address}
			server.ConnContext(t.Context(), first)
			for range maxStrangers - 1 {
				server.ConnContext(t.Context(), &remote{address: c.address})
			}
			if first.closed {
				t.Fatal("it is closed before there are too many")
			}
			server.ConnContext(t.Context(), &remote{address: c.next})
			if first.closed != c.closed {
				t.Errorf("the first of %s is closed: %v", c.address, first.closed)
			}
		})
	}
}
