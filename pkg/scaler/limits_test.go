package scaler_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaler"
	pb "github.com/feedscale/feedscale/pkg/scaler/externalscaler"
)

// failing is a source that is out of reach.
type failing struct{ asked map[string]bool }

func (f failing) Replicas(_ context.Context, name string) (int, error) {
	f.asked[name] = true
	return 0, errors.New("feedscale cannot be asked")
}

func (failing) Changed(string) <-chan struct{} { return nil }

func TestWhatACallerSendsIsBounded(t *testing.T) {
	t.Parallel()
	source := failing{asked: make(map[string]bool)}
	c := pb.NewExternalScalerClient(dial(t, serve(t, scaler.Options{Source: source}).address))
	for rule, call := range map[string]struct {
		name, header string
		metadata     int // bytes beside
		want         codes.Code
	}{
		"the longest name":       {name: strings.Repeat("a", 63), want: codes.Unavailable},
		"a longer one":           {name: strings.Repeat("b", 64), want: codes.InvalidArgument},
		"a path of another API":  {name: "../../admin/host/keys", want: codes.InvalidArgument},
		"a line of a log":        {name: "orders\r\n", want: codes.InvalidArgument},
		"a longer request":       {name: "c", metadata: 16 << 10, want: codes.ResourceExhausted},
		"headers of any length":  {name: "d", header: strings.Repeat("x", 17<<10), want: codes.Internal},
		"headers that are usual": {name: "e", header: strings.Repeat("x", 8<<10), want: codes.Unavailable},
	} {
		ref := of(call.name)
		ref.ScalerMetadata["more"] = strings.Repeat("x", call.metadata)
		_, err := c.IsActive(metadata.AppendToOutgoingContext(t.Context(), "x-long", call.header), ref)
		if status.Code(err) != call.want || (call.want == codes.Unavailable) != source.asked[call.name] {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestOneConnectionTooManyWaits has callers that take every connection there is and say nothing. Their
// handshakes time out, so it has the time of its bubble.
func TestOneConnectionTooManyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(1 << 10)
		stop := serveOn(t, l, scaler.Options{Source: newDecided(map[string]any{"orders": 1})})
		const most = 1_000
		var first net.Conn
		for range most {
			c, err := l.Dial()
			testworld.Must(t, err)
			t.Cleanup(func() { c.Close() })
			first = c
		}
		late := pb.NewExternalScalerClient(dialPipe(t, l))
		brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := late.IsActive(brief, of("orders"), grpc.WaitForReady(true)); status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("one too many is answered, or cut off: %v", err)
		}
		testworld.Must(t, first.Close())
		again, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := late.IsActive(again, of("orders"), grpc.WaitForReady(true)); err != nil {
			t.Errorf("once another left: %v", err)
		}
		testworld.Must(t, stop())
	})
}
