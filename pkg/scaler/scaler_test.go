package scaler_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaler"
	pb "github.com/feedscale/feedscale/pkg/scaler/externalscaler"
)

// decided is a Source whose counts the test sets.
type decided struct {
	silent bool // it does not tell that a count changed
	mu     sync.Mutex
	counts map[string]any // int or error
	tell   chan struct{}
}

func newDecided(counts map[string]any) *decided {
	return &decided{counts: counts, tell: make(chan struct{})}
}

func (d *decided) Replicas(_ context.Context, name string) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch count := d.counts[name].(type) {
	case int:
		return count, nil
	case error:
		return 0, count
	}
	return 0, report.UnknownName(name)
}

func (d *decided) Changed(string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.silent {
		return nil
	}
	return d.tell
}

func (d *decided) set(name string, count any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[name] = count
	close(d.tell)
	d.tell = make(chan struct{})
}

// served is a scaler on a real listener.
type served struct {
	address string
	stop    func() error // returns how Serve ended
}

func serve(t *testing.T, o scaler.Options) served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testworld.Must(t, err)
	return served{l.Addr().String(), serveOn(t, l, o)}
}

func serveOn(t *testing.T, l net.Listener, o scaler.Options) (stop func() error) {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	s, err := scaler.New(o)
	testworld.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { testworld.Must(t, stop()) })
	return stop
}

func dial(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	if len(options) == 0 {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	c, err := grpc.NewClient(address, options...)
	testworld.Must(t, err)
	t.Cleanup(func() { _ = c.Close() }) // of a server that may be gone
	return c
}

// of is the ScaledObject of a processor.
func of(processor string) *pb.ScaledObjectRef {
	return &pb.ScaledObjectRef{Name: processor, Namespace: "shop", ScalerMetadata: map[string]string{"scalerAddress": "feedscale:6000", "processor": processor}}
}

func TestTheMetricIsTheReplicasAtATargetOfOne(t *testing.T) {
	t.Parallel()
	source := newDecided(map[string]any{"orders": 5, "asleep": 0})
	c := pb.NewExternalScalerClient(dial(t, serve(t, scaler.Options{Source: source}).address))
	for name, want := range map[string]int{"orders": 5, "asleep": 0} {
		spec, err := c.GetMetricSpec(t.Context(), of(name))
		testworld.Must(t, err)
		if len(spec.MetricSpecs) != 1 || spec.MetricSpecs[0].MetricName != "feedscale-"+name || spec.MetricSpecs[0].TargetSize != 1 || spec.MetricSpecs[0].TargetSizeFloat != 1 {
			t.Errorf("the spec of %s is %v", name, spec)
		}
		got, err := c.GetMetrics(t.Context(), &pb.GetMetricsRequest{ScaledObjectRef: of(name), MetricName: spec.MetricSpecs[0].MetricName})
		testworld.Must(t, err)
		if len(got.MetricValues) != 1 || got.MetricValues[0].MetricName != "feedscale-"+name || got.MetricValues[0].MetricValue != int64(want) || got.MetricValues[0].MetricValueFloat != float64(want) {
			t.Errorf("the metrics of %s are %v, want %d", name, got, want)
		}
		active, err := c.IsActive(t.Context(), of(name))
		if err != nil || active.Result != (want > 0) {
			t.Errorf("%s at %d is active: %v, %v", name, want, active, err)
		}
	}
}

func TestWhatIsNotKnownIsAnErrorSoThatKEDAFallsBack(t *testing.T) {
	t.Parallel()
	source := newDecided(map[string]any{"stale": errors.New("processor stale was last polled long ago")})
	c := pb.NewExternalScalerClient(dial(t, serve(t, scaler.Options{Source: source}).address))
	for _, r := range []struct {
		rule string
		ref  *pb.ScaledObjectRef
		want codes.Code
		says string
		spec codes.Code // KEDA needs it for its fallback
	}{
		{"no number can be stood by", of("stale"), codes.Unavailable, "processor stale was last polled long ago", codes.OK},
		{"nothing has that name", of("nobody"), codes.NotFound, `no processor or group is named "nobody": the processors file says which there are`, codes.NotFound},
		{"no name is given", &pb.ScaledObjectRef{Name: "orders", Namespace: "shop"}, codes.InvalidArgument, "the trigger names no processor; allowed is metadata such as processor: orders", codes.InvalidArgument},
	} {
		_, active := c.IsActive(t.Context(), r.ref)
		_, metrics := c.GetMetrics(t.Context(), &pb.GetMetricsRequest{ScaledObjectRef: r.ref})
		for _, err := range []error{active, metrics} {
			if status.Code(err) != r.want || status.Convert(err).Message() != r.says {
				t.Errorf("%s: %v", r.rule, err)
			}
		}
		if _, err := c.GetMetricSpec(t.Context(), r.ref); status.Code(err) != r.spec {
			t.Errorf("%s: the spec is %v, want %s", r.rule, err, r.spec)
		}
	}
	if _, err := c.GetMetrics(t.Context(), &pb.GetMetricsRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a ScaledObject: %v", err)
	}
}

// await returns what a stream says next.
func await(t *testing.T, stream grpc.ServerStreamingClient[pb.IsActiveResponse]) bool {
	t.Helper()
	got, err := stream.Recv()
	testworld.Must(t, err)
	return got.Result
}

func TestAStreamTellsWhatIsAndThenEachChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		silent   bool
		interval time.Duration
	}{
		{"that the source tells", false, 0},
		{"that is looked for", true, time.Millisecond},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			source := newDecided(map[string]any{"orders": 1})
			source.silent = c.silent
			stream, err := pb.NewExternalScalerClient(dial(t, serve(t, scaler.Options{Source: source, Interval: c.interval}).address)).StreamIsActive(t.Context(), of("orders"))
			testworld.Must(t, err)
			if !await(t, stream) {
				t.Error("1 replica is not active")
			}
			source.set("orders", 4)                       // which changes nothing for a stream
			source.set("orders", errors.New("no answer")) // which is no answer, either way
			source.set("orders", 0)
			if await(t, stream) {
				t.Error("0 replicas are active, or an answer came twice")
			}
			source.set("orders", 2)
			if !await(t, stream) {
				t.Error("2 replicas are not active")
			}
		})
	}
}

func TestAStreamWaitsForTheFirstAnswer(t *testing.T) {
	t.Parallel()
	source := newDecided(map[string]any{"orders": errors.New("processor orders was never polled")})
	stream, err := pb.NewExternalScalerClient(dial(t, serve(t, scaler.Options{Source: source}).address)).StreamIsActive(t.Context(), of("orders"))
	testworld.Must(t, err)
	source.set("orders", 0)
	if await(t, stream) {
		t.Error("0 replicas are active")
	}
}

func TestAStreamAboutNothingIsRefused(t *testing.T) {
	t.Parallel()
	c := pb.NewExternalScalerClient(dial(t, serve(t, scaler.Options{Source: newDecided(nil)}).address))
	for want, ref := range map[codes.Code]*pb.ScaledObjectRef{codes.NotFound: of("nobody"), codes.InvalidArgument: {Name: "orders"}} {
		stream, err := c.StreamIsActive(t.Context(), ref)
		testworld.Must(t, err)
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestNoMetricSpecIsPushed(t *testing.T) {
	t.Parallel()
	stream, err := pb.NewExternalScalerClient(dial(t, serve(t, scaler.Options{Source: newDecided(map[string]any{"orders": 1})}).address)).StreamMetricSpec(t.Context(), of("orders"))
	testworld.Must(t, err)
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v, want what has KEDA ask instead", err)
	}
}

func TestTheEndOfTheServerIsAnOrderlyEndOfItsStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, scaler.Options{Source: newDecided(map[string]any{"orders": 1})})
	stream, err := pb.NewExternalScalerClient(dial(t, s.address)).StreamIsActive(t.Context(), of("orders"))
	testworld.Must(t, err)
	await(t, stream)
	if err := s.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v, want io.EOF: after any other end KEDA waits ever longer", err)
	}
}

func dialPipe(t *testing.T, l *bufconn.Listener) *grpc.ClientConn {
	t.Helper()
	return dial(t, "passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return l.DialContext(ctx)
	}))
}

// TestAStreamEndsInOrderAfterTenMinutes has the time of its bubble.
func TestAStreamEndsInOrderAfterTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(1 << 16)
		stop := serveOn(t, l, scaler.Options{Source: newDecided(map[string]any{"orders": 1})})
		started := time.Now()
		stream, err := pb.NewExternalScalerClient(dialPipe(t, l)).StreamIsActive(t.Context(), of("orders"))
		testworld.Must(t, err)
		await(t, stream)
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) || time.Since(started).Round(time.Second) != 10*time.Minute {
			t.Errorf("it ended with %v after %s", err, time.Since(started))
		}
		testworld.Must(t, stop())
	})
}

// TestTooManyStreamsAreRefusedAndOtherCallsAnswered is also that a client bears the most on one
// connection: KEDA has one.
func TestTooManyStreamsAreRefusedAndOtherCallsAnswered(t *testing.T) {
	t.Parallel()
	c := pb.NewExternalScalerClient(dial(t, serve(t, scaler.Options{Source: newDecided(map[string]any{"orders": 1})}).address))
	const most = 10_000
	for i := range most {
		stream, err := c.StreamIsActive(t.Context(), of("orders"))
		testworld.Must(t, err)
		if i%100 == 99 {
			await(t, stream)
		}
	}
	testworld.Eventually(t, "one too many is refused", func() bool {
		stream, err := c.StreamIsActive(t.Context(), of("orders"))
		testworld.Must(t, err)
		_, err = stream.Recv()
		return status.Code(err) == codes.ResourceExhausted
	})
	if active, err := c.IsActive(t.Context(), of("orders")); err != nil || !active.Result {
		t.Errorf("%v, %v", active, err)
	}
}

func TestItsHealthIsAskedForAsGRPCHasIt(t *testing.T) {
	t.Parallel()
	c := grpc_health_v1.NewHealthClient(dial(t, serve(t, scaler.Options{Source: newDecided(nil)}).address))
	for _, service := range []string{"", "externalscaler.ExternalScaler"} {
		got, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil || got.Status != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, got, err)
		}
	}
}
