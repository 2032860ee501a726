// Package scaler is KEDA's external scaler: a gRPC server that tells KEDA's triggers external and
// external-push how many replicas a processor, or a group, is to have (docs/keda-external-scaler.md).
//
// It knows neither how that is decided nor where it is kept: it asks a [Source]. Start with [Server.Serve];
// admit.go bounds the calls. The folder externalscaler has KEDA's contract.
//
// The package is internal to the program: its API may change in any release.
package scaler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/report"
	pb "github.com/feedscale/feedscale/pkg/scaler/externalscaler"
)

// Source says how many replicas a processor or group is to have.
type Source interface {
	// Replicas returns the count. The error is report.ErrUnknownName if nothing has that name, and another
	// one if there is no reliable count.
	Replicas(ctx context.Context, name string) (int, error)
	// Changed returns a channel that is closed once the count may have changed; nil if the source cannot
	// tell, and Options.Interval says how often to look.
	Changed(name string) <-chan struct{}
}

// Options say how a Server serves.
type Options struct {
	Source   Source
	Interval time.Duration // between two looks for a stream; 0 = only when Source says that the count changed
	TLS      TLS           // zero = in plain
	Log      *slog.Logger
}

// The limits. KEDA's operator has one connection for all ScaledObjects with the same scalerAddress,
// and on it one stream for each that is external-push (external_scaler.go of
// github.com/kedacore/keda): a connection must bear all of them, and the other calls beside.
const (
	maxPushes  = 10_000 // streams of StreamIsActive, over all connections
	maxCalls   = 12_000 // open at once, of all kinds
	maxWaiting = 2_000  // of these, calls whose message has not come
	maxRequest = 16 << 10
	maxHeaders = 16 << 10 // of a request, in bytes
	// maxConnections is how many connections may be open. More wait until one is closed.
	maxConnections = 1_000
	// maxWarnings is how many refusals are logged at once, warningsPerSecond how many over time: anybody may
	// ask for any name.
	maxWarnings, warningsPerSecond = 1_000, 1

	handshakeTimeout = 10 * time.Second
	// messageTimeout is how long a call may be open without a message.
	messageTimeout = 10 * time.Second
	// idleTimeout closes a connection without a call, which KEDA opens again when it has one.
	idleTimeout = 2 * time.Minute
	// bufferSize is that of a connection's reader and writer in bytes, an eighth of gRPC's default.
	bufferSize = 4 << 10
	// aliveAfter and aliveTimeout find a client that is gone without closing, whose streams would stay.
	aliveAfter   = 30 * time.Second
	aliveTimeout = 10 * time.Second
	// leastPing is how often a client may ask whether the server is alive, with or without a call.
	leastPing = 10 * time.Second
	// drainTimeout is for calls in flight. Streams are ended before.
	drainTimeout = 5 * time.Second
	// streamLife is how long a stream lasts. After a stream that ended in an error, KEDA waits 2, 4, 8 s and
	// so on, up to a minute. It goes back to 2 s only after a stream that ended without one
	// (runStreamIsActive in external_scaler.go of github.com/kedacore/keda).
	streamLife = 10 * time.Minute
)

// TLS are files in PEM. They are read again for each connection, so that a renewed certificate counts without
// a restart.
type TLS struct {
	CertFile     string // the server's certificate, with the intermediate ones
	KeyFile      string
	ClientCAFile string // the CA of the certificates that clients must show; "" = they show none
}

func (t TLS) load() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s with the key %s cannot be used: %w", t.CertFile, t.KeyFile, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{certificate}}
	if t.ClientCAFile == "" {
		return config, nil
	}
	text, err := bounded.ReadFile(t.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("the CA of clients cannot be read: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the CA of clients, %s, has no certificate in PEM", t.ClientCAFile)
	}
	return config, nil
}

// The metric. Its target is 1 replica, so that HPA, which divides the value by it (AverageValue),
// arrives at the value.
const (
	metricPrefix = "feedscale-"
	targetSize   = 1
	// processorKey is the entry of the trigger's metadata that names a processor or a group.
	processorKey = "processor"
)

// Server answers KEDA.
type Server struct {
	pb.UnimplementedExternalScalerServer
	options  Options
	grpc     *grpc.Server
	health   *health.Server
	ending   chan struct{} // closed when streams have to end
	pushes   atomic.Int64  // streams
	warnings *rate.Limiter // of refusals
	refusals bounded.Notes // the text of the last one, by name
}

// New returns a Server. The error says what is wrong with the certificates.
func New(o Options) (*Server, error) {
	s := &Server{
		options: o, health: health.NewServer(), ending: make(chan struct{}),
		warnings: rate.NewLimiter(warningsPerSecond, maxWarnings),
	}
	options := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(bufferSize),
		grpc.WriteBufferSize(bufferSize),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: aliveAfter, Timeout: aliveTimeout, MaxConnectionIdle: idleTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
	}
	if o.TLS != (TLS{}) {
		if _, err := o.TLS.load(); err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion:         tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.TLS.load() },
		})))
	}
	s.grpc = grpc.NewServer(options...)
	var calls admission
	s.grpc.RegisterService(calls.of(pb.ExternalScaler_ServiceDesc), s)
	probes := grpc_health_v1.Health_ServiceDesc
	probes.Streams = nil // Watch would keep each name that it is asked for
	s.grpc.RegisterService(calls.of(probes), s.health)
	s.health.SetServingStatus(pb.ExternalScaler_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	return s, nil
}

// Serve answers until ctx ends. It ends streams without an error: KEDA opens these again after 2 s, and waits
// ever longer after any other end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.health.Shutdown()
		close(s.ending)
		cut := time.AfterFunc(drainTimeout, s.grpc.Stop)
		s.grpc.GracefulStop()
		cut.Stop()
	})
	s.options.Log.Info("listening for KEDA", "address", l.Addr().String(), "tls", s.options.TLS != TLS{}, "clientCertificates", s.options.TLS.ClientCAFile != "")
	err := s.grpc.Serve(netutil.LimitListener(l, maxConnections))
	if !stop() {
		<-stopped
	}
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// IsActive reports whether the count is above zero, and not whether there is lag: KEDA scales what is
// inactive to zero, also a count that minReplicaCount, a schedule or the cooldown holds.
func (s *Server) IsActive(ctx context.Context, ref *pb.ScaledObjectRef) (*pb.IsActiveResponse, error) {
	replicas, err := s.replicas(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &pb.IsActiveResponse{Result: replicas > 0}, nil
}

// processorOf reads which processor or group a call asks for. The error is a status of gRPC.
func processorOf(ref *pb.ScaledObjectRef) (string, error) {
	name := ref.GetScalerMetadata()[processorKey]
	switch {
	case name == "":
		return "", status.Error(codes.InvalidArgument, "the trigger names no processor; allowed is metadata such as processor: orders")
	case !events.IsName(name):
		return "", status.Errorf(codes.InvalidArgument, "the trigger names a processor that cannot be; allowed are %s", events.NameForm)
	}
	return name, nil
}

// GetMetricSpec describes the metric, also without a decision: KEDA needs the metric's spec before it can
// apply a fallback (getScalerState in scale_handler.go of github.com/kedacore/keda).
func (s *Server) GetMetricSpec(ctx context.Context, ref *pb.ScaledObjectRef) (*pb.GetMetricSpecResponse, error) {
	switch _, err := s.replicas(ctx, ref); status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.Canceled, codes.DeadlineExceeded:
		return nil, err
	}
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{{MetricName: metricOf(ref), TargetSize: targetSize, TargetSizeFloat: targetSize}}}, nil
}

// GetMetrics tells the count.
func (s *Server) GetMetrics(ctx context.Context, r *pb.GetMetricsRequest) (*pb.GetMetricsResponse, error) {
	ref := r.GetScaledObjectRef()
	replicas, err := s.replicas(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &pb.GetMetricsResponse{MetricValues: []*pb.MetricValue{{MetricName: metricOf(ref), MetricValue: int64(replicas), MetricValueFloat: float64(replicas)}}}, nil
}

func metricOf(ref *pb.ScaledObjectRef) string {
	return metricPrefix + ref.GetScalerMetadata()[processorKey]
}

// replicas asks the source for the count of a call.
func (s *Server) replicas(ctx context.Context, ref *pb.ScaledObjectRef) (int, error) {
	name, err := processorOf(ref)
	if err != nil {
		return 0, err
	}
	return s.ask(ctx, name)
}

// ask asks the source. Its error is a status of gRPC, which KEDA logs and counts as a failure.
func (s *Server) ask(ctx context.Context, name string) (int, error) {
	replicas, err := s.options.Source.Replicas(ctx, name)
	switch {
	case ctx.Err() != nil:
		return 0, status.FromContextError(ctx.Err()).Err()
	case err == nil:
		if s.refusals.News(name, "") {
			s.options.Log.Info("the scaler answers again", "processor", name, "replicas", replicas)
		}
		return replicas, nil
	}
	code, says := codes.Unavailable, "the scaler has no answer, so that KEDA's fallback applies"
	if errors.Is(err, report.ErrUnknownName) {
		code, says = codes.NotFound, "KEDA asks for what no entry names, and says that no metric specs were returned"
	}
	if s.refusals.News(name, err.Error()) && s.warnings.Allow() {
		s.options.Log.Warn(says, "processor", name, "error", err.Error())
	}
	return 0, status.Error(code, err.Error())
}

// StreamIsActive tells at once whether the count is above zero, and again whenever that changes.
//
// Without a reliable count it says nothing: KEDA takes its fallback from GetMetrics, and after an error it
// would wait longer than until the next count.
func (s *Server) StreamIsActive(ref *pb.ScaledObjectRef, stream grpc.ServerStreamingServer[pb.IsActiveResponse]) error {
	defer s.pushes.Add(-1)
	if s.pushes.Add(1) > maxPushes {
		return status.Errorf(codes.ResourceExhausted, "%d streams are open, which is the most", maxPushes)
	}
	name, err := processorOf(ref) // all that is kept of the message
	if err != nil {
		return err
	}
	ctx, life, look := stream.Context(), time.After(streamLife), time.Tick(s.options.Interval) // nil without an interval
	for told, active := false, false; ; {
		changed := s.options.Source.Changed(name) // before the look, so that no change falls between the two
		replicas, err := s.ask(ctx, name)
		switch {
		case status.Code(err) == codes.NotFound || ctx.Err() != nil:
			return err
		case err == nil && (!told || active != (replicas > 0)):
			told, active = true, replicas > 0
			if err := stream.Send(&pb.IsActiveResponse{Result: active}); err != nil {
				return err
			}
			s.options.Log.Debug("pushed", "processor", name, "active", active)
		}
		select {
		case <-changed:
		case <-look:
		case <-life:
			return nil
		case <-s.ending:
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}
