package cosmosfake

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// RegionState is the behaviour of a region toward clients.
type RegionState int

const (
	// Online is the state of every region at first.
	Online RegionState = iota
	// Unavailable answers every request with 503.
	Unavailable
	// Refusing refuses connections, and ends those that are open.
	Refusing
	// Hanging takes connections and requests and answers none of them.
	Hanging
)

// region is one of the account's regions: a name and a listener.
type region struct {
	name      string
	addr      string // host and port, the same each time it listens
	tls       *tls.Config
	listen    func(network, address string) (net.Listener, error)
	newServer func() *http.Server
	condition atomic.Pointer[condition]

	mu       sync.Mutex // guards what follows
	listener net.Listener
	http     *http.Server // nil while it refuses
}

// condition is a state with a channel that ends it.
type condition struct {
	state RegionState
	over  chan struct{} // closed when another follows
}

// open listens, on the address of the first time if there was one.
func (r *region) open(addr string) error {
	listener, err := r.listen("tcp", addr)
	if err != nil {
		return err
	}
	if r.addr == "" {
		r.addr = listener.Addr().String()
	}
	if r.tls != nil {
		listener = tls.NewListener(listener, r.tls)
	}
	r.listener, r.http = listener, r.newServer()
	return nil
}

// close ends every connection at once.
func (r *region) close() error {
	if r.http == nil {
		return nil
	}
	errs := []error{r.http.Close()}
	if err := r.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		errs = append(errs, err)
	}
	r.http = nil
	return errors.Join(errs...)
}

func (s *Server) serveRegion(r *region) {
	server, listener := r.http, r.listener
	s.wait.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("the Cosmos DB stand-in stopped serving", "region", r.name, "error", err)
		}
	})
}

// SetRegion puts a region, by its place in Options.Regions, into a state. The error tells that a
// region that refused connections cannot have its port back.
func (s *Server) SetRegion(i int, state RegionState) error {
	r := s.regions[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.condition.Swap(&condition{state, make(chan struct{})})
	close(before.over)
	switch {
	case state == Refusing:
		if err := r.close(); err != nil {
			return fmt.Errorf("closing region %q of the Cosmos DB stand-in: %w", r.name, err)
		}
	case r.http == nil && s.running():
		if err := r.open(r.addr); err != nil {
			return fmt.Errorf("opening region %q of the Cosmos DB stand-in again: %w", r.name, err)
		}
		s.serveRegion(r)
	}
	return nil
}

func (s *Server) running() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Failover makes a region, by its place in Options.Regions, the one that accepts writes. It then
// comes first in the account's locations, as the region of the highest priority does.
func (s *Server) Failover(i int) { s.writeRegion.Store(int64(i)) }

func (s *Server) writes(r *region) bool { return s.regions[s.writeRegion.Load()] == r }

// meet applies the state of the region. It returns true if the request must then be handled as
// usual.
func (c *call) meet(w http.ResponseWriter, r *http.Request) bool {
	switch now := c.region.condition.Load(); now.state {
	case Unavailable:
		c.send(w, (&fault{status: http.StatusServiceUnavailable, message: "Service is currently unavailable."}).reply(c.activity))
	case Hanging:
		select {
		case <-now.over:
		case <-r.Context().Done():
		case <-c.server.done:
		}
		hangUp(w)
	default:
		return true
	}
	return false
}

func (r *region) scheme() string {
	if r.tls != nil {
		return "https"
	}
	return "http"
}

// url is the address of the region for a client that reached the account under the given Host
// header.
func (r *region) url(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, port, _ := net.SplitHostPort(r.addr)
	return r.scheme() + "://" + net.JoinHostPort(strings.Trim(host, "[]"), port) + "/"
}
