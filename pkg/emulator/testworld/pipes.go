package testworld

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// firstPort is the first that pipes give away: the emulator's own.
const firstPort = 8081

// given is how many ports were given away. No two networks of a process have one in common, since
// azcosmos shares its caches between all clients of an endpoint.
var given atomic.Int64

// pipes are a network in memory: a listener is found by its port, whatever the host.
type pipes struct {
	mu        sync.Mutex
	listening map[int]*pipe
}

func newPipes() *pipes { return &pipes{listening: make(map[int]*pipe)} }

// listen is net.Listen for a region of the account.
func (p *pipes) listen(_, address string) (net.Listener, error) {
	port, err := portOf(address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if port == 0 {
		port = firstPort + int(given.Add(1)) - 1
	}
	if p.listening[port] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE}
	}
	l := &pipe{network: p, port: port, accepted: make(chan net.Conn), closed: make(chan struct{})}
	p.listening[port] = l
	return l, nil
}

func portOf(address string) (int, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

// dial connects to whoever listens on the port of an address.
func (p *pipes) dial(ctx context.Context, _, address string) (net.Conn, error) {
	port, err := portOf(address)
	if err != nil {
		return nil, err
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	p.mu.Lock()
	l := p.listening[port]
	p.mu.Unlock()
	if l == nil {
		return nil, refused
	}
	client, server := net.Pipe()
	select {
	case l.accepted <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipe is a listener.
type pipe struct {
	network  *pipes
	port     int
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Accept is for the account's server.
func (l *pipe) Accept() (net.Conn, error) {
	select {
	case connection := <-l.accepted:
		return connection, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends what listens; the connections are closed by those who have them.
func (l *pipe) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.listening, l.port)
	})
	return nil
}

// Addr is an address for the account to name itself by.
func (l *pipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.port} }
