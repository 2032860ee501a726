package servicebusfake

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Server is a running stand-in. Create it with Start.
type Server struct {
	options   Options
	listener  net.Listener
	namespace *namespace
	controls  controls
	done      chan struct{}
	started   time.Time
	running   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[*conn]struct{}
	opened uint64
}

// Start listens and serves until Close. It fails on an address that cannot be listened on and on a
// queue or topic that is described wrongly.
func Start(o Options) (*Server, error) {
	o = o.withDefaults()
	namespace := newNamespace(o.Now)
	for _, spec := range o.Queues {
		if err := namespace.create(spec); err != nil {
			return nil, fmt.Errorf("service bus stand-in: %w", err)
		}
	}
	for _, spec := range o.Topics {
		if err := namespace.createTopic(spec); err != nil {
			return nil, fmt.Errorf("service bus stand-in: %w", err)
		}
	}
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("service bus stand-in: %w", err)
	}
	if o.TLS != nil {
		listener = tls.NewListener(listener, o.TLS)
	}
	s := &Server{
		options: o, listener: listener, namespace: namespace, done: make(chan struct{}), started: o.Now(), conns: map[*conn]struct{}{},
	}
	s.running.Go(func() { namespace.run(s.done) })
	s.running.Go(s.accept)
	return s, nil
}

// Addr is the address that the stand-in listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// ConnectionString is what a client connects with. Without TLS it asks for the plain protocol in
// the way of the official emulator.
func (s *Server) ConnectionString() string {
	connection := fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s", s.reachable(), s.options.KeyName, s.options.Key)
	if s.options.TLS == nil {
		connection += ";UseDevelopmentEmulator=true"
	}
	return connection
}

// reachable is an address that a client of this machine can dial: the one listened on may stand for
// all of them.
func (s *Server) reachable() string {
	if address, ok := s.Addr().(*net.TCPAddr); ok && address.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", address.Port)
	}
	return s.Addr().String()
}

// CreateQueue adds a queue. It fails if there is one of that name, and where the description is
// wrong.
func (s *Server) CreateQueue(spec QueueSpec) error { return s.namespace.create(spec) }

// Tick does what is due by Options.Now. It is needed only after a jump of the clock.
func (s *Server) Tick() {
	s.namespace.advance()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.wakeUp()
	}
}

// Close ends every connection without a goodbye, as a broker that dies would, and returns when
// nothing of the stand-in runs any more.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	err := s.listener.Close()
	for c := range s.conns {
		_ = c.socket.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("service bus stand-in: %w", err)
	}
	return nil
}

func (s *Server) accept() {
	for {
		socket, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.options.Logger.Warn("accepting a connection failed", slog.Any("error", err))
			if !s.pause(100 * time.Millisecond) {
				return
			}
			continue
		}
		s.serve(socket)
	}
}

// pause waits, unless the server ends first, of which it tells.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.done:
		return false
	}
}

func (s *Server) serve(socket net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = socket.Close()
		return
	}
	s.opened++
	c := newConn(s, socket, s.opened)
	s.conns[c] = struct{}{}
	s.running.Go(func() {
		c.run()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	})
}
