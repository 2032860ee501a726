package testworld

import (
	"context"
	"net"
	"sync"
)

// pipes are the connections of an account that is reached in memory.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newPipes() *pipes {
	return &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// listen is net.Listen for the account.
func (p *pipes) listen(string, string) (net.Listener, error) { return p, nil }

// dial connects to the account, whatever the address.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept is for the account's server.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case connection := <-p.accepted:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends what listens; the connections are closed by those who have them.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is an address for the account to name itself by.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081} }
