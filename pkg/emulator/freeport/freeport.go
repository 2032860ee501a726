// Package freeport finds ports of this machine for programs that are started later.
package freeport

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// given are the ports that this process has given away: until its program listens, or between two
// runs of it, a port is free for others.
var given sync.Map

// Find finds a port of 127.0.0.1 at which nobody listens. It lies outside the range that the system
// gives to clients and to listeners on port 0, so that nobody takes it meanwhile.
func Find() (port int, err error) {
	for range 20 {
		port = 12_000 + rand.IntN(20_000)
		if _, before := given.LoadOrStore(port, true); before {
			continue
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, listener.Close()
		}
	}
	return 0, cmp.Or(err, errors.New("20 ports that were tried are taken"))
}
