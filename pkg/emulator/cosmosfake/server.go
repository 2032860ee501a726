package cosmosfake

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// WellKnownKey is the account key that the vendor's own emulator uses; it is public and protects
// nothing.
const WellKnownKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// Options configure an account. The zero value is one region on a free port of 127.0.0.1, plain
// HTTP, the well-known key.
type Options struct {
	// Addr is the address of the first region's listener. With a fixed port every further region
	// takes the next one.
	Addr string
	// Listen opens a listener; default net.Listen. A test under testing/synctest gives one in
	// memory, since the clock of its bubble stands still while anybody waits for a socket.
	Listen func(network, address string) (net.Listener, error)
	// TLS serves HTTPS with these certificates.
	TLS *tls.Config
	// Key is the account key in base64.
	Key string
	// Regions are the account's regions; the first accepts writes, the others only reads, until
	// Failover says otherwise.
	Regions []string
	// Consistency is the account's default consistency level, such as Strong; default Session.
	Consistency string
	// Serverless accounts have no offers, and nothing in them is throttled.
	Serverless bool
	// Now is the clock of timestamps, expiry, throughput and the Date of answers. It may be any;
	// the dates of signatures are held against the real time.
	Now func() time.Time
	// Token checks the bearer token of a request that uses Microsoft Entra ID; an error refuses it
	// with 401, an error that wraps ErrForbidden with 403. Without it such requests are refused.
	Token func(bearer string) error
	// VersionRetention is how long the feed of all versions and deletes reaches back; zero means
	// that the account does not offer that feed. A container's changeFeedPolicy has its own.
	VersionRetention time.Duration
	// Logger gets every request at debug level, and at warning level what a client hides of a
	// refusal; without it nothing is logged.
	Logger *slog.Logger
}

// ErrForbidden is the error of a valid token without the permission.
var ErrForbidden = errors.New("the identity lacks the permission")

// Server is a running account.
type Server struct {
	key         []byte
	keyText     string
	now         func() time.Time
	token       func(string) error
	retention   time.Duration
	consistency string
	serverless  bool
	logger      *slog.Logger

	regions     []*region
	writeRegion atomic.Int64 // its place among them
	databases   directory[*database]
	serial      atomic.Uint64 // makes entity tags unique
	controls    controls
	meter       meter
	holdOffers  atomic.Int64 // nanoseconds that a replaced offer is pending
	hybridRow   sync.Once    // tells of the first refusal of a batch in that form

	stop context.CancelFunc
	done <-chan struct{}
	wait sync.WaitGroup
}

// Start listens and serves until Close. The error names the address or option that cannot be used.
func Start(o Options) (*Server, error) {
	if o.Key == "" {
		o.Key = WellKnownKey
	}
	key, err := base64.StdEncoding.DecodeString(o.Key)
	if err != nil {
		return nil, errors.New("starting the Cosmos DB stand-in: the account key is not base64")
	}
	if len(o.Regions) == 0 {
		o.Regions = []string{"Local"}
	}
	if o.Consistency == "" {
		o.Consistency = "Session"
	}
	level := consistencyRank(o.Consistency)
	if level < 0 {
		return nil, fmt.Errorf("starting the Cosmos DB stand-in: %q is not a consistency level", o.Consistency)
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		key: key, keyText: o.Key, now: o.Now, token: o.Token, retention: o.VersionRetention, logger: o.Logger, consistency: consistencyLevels[level], serverless: o.Serverless,
		meter: newMeter(), stop: stop, done: ctx.Done(),
	}
	for i, name := range o.Regions {
		if err := s.listen(o, i, name); err != nil {
			return nil, errors.Join(fmt.Errorf("starting region %q of the Cosmos DB stand-in: %w", name, err), s.Close())
		}
	}
	for _, r := range s.regions {
		s.serveRegion(r)
	}
	return s, nil
}

func (s *Server) listen(o Options, index int, name string) error {
	addr, err := regionAddr(o.Addr, index)
	if err != nil {
		return err
	}
	r := &region{name: name, listen: o.Listen}
	r.condition.Store(&condition{state: Online, over: make(chan struct{})})
	if o.TLS != nil {
		r.tls = o.TLS.Clone()
		r.tls.NextProtos = []string{"http/1.1"}
	}
	r.newServer = func() *http.Server {
		return &http.Server{
			Handler:   http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { s.serve(r, w, q) }),
			ConnState: s.track,
			ErrorLog:  slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
		}
	}
	if err := r.open(addr); err != nil {
		return err
	}
	s.regions = append(s.regions, r)
	return nil
}

// track counts connections, so that Close can wait for the goroutine of each.
func (s *Server) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.wait.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.wait.Done()
	}
}

func regionAddr(addr string, index int) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", fmt.Errorf("the port of %q is not a number", addr)
	}
	if n != 0 {
		n += index
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// Close ends every connection at once and returns when nothing of the server runs any more.
func (s *Server) Close() error {
	s.stop()
	var errs []error
	for _, r := range s.regions {
		r.mu.Lock()
		errs = append(errs, r.close())
		r.mu.Unlock()
	}
	s.wait.Wait()
	return errors.Join(errs...)
}

// Endpoint is the account's address, that of the first region.
func (s *Server) Endpoint() string { return s.RegionEndpoint(0) }

// RegionEndpoint is the address of a region by its place in Options.Regions.
func (s *Server) RegionEndpoint(i int) string {
	r := s.regions[i]
	host, port, _ := net.SplitHostPort(r.addr)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return r.scheme() + "://" + net.JoinHostPort(host, port) + "/"
}

// ConnectionString is the account's connection string, as the portal shows it.
func (s *Server) ConnectionString() string {
	return "AccountEndpoint=" + s.Endpoint() + ";AccountKey=" + s.keyText + ";"
}

// etag returns an entity tag that was never used before.
func (s *Server) etag() string {
	return fmt.Sprintf(`"%08x-0000-0d00-0000-%012x"`, s.serial.Add(1), s.now().Unix())
}
