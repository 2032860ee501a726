package main_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	pb "github.com/feedscale/feedscale/pkg/scaler/externalscaler"
)

// asKEDA returns a client of a scaler and its stream for orders, once the stream has said that there
// is nothing to do. The stream ends with an error where the test hangs.
func asKEDA(t *testing.T, address string) (pb.ExternalScalerClient, grpc.ServerStreamingClient[pb.IsActiveResponse]) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, conn.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), testworld.Deadline)
	t.Cleanup(cancel)
	c := pb.NewExternalScalerClient(conn)
	stream, err := c.StreamIsActive(ctx, orders)
	testworld.Must(t, err)
	if first, err := stream.Recv(); err != nil || first.Result {
		t.Fatalf("with nothing to do: %v, %v", first, err)
	}
	return c, stream
}

var orders = &pb.ScaledObjectRef{Name: "orders", Namespace: "shop", ScalerMetadata: map[string]string{"processor": testworld.Orders}}

// soon is how long after the commit a push may come.
const soon = time.Second

func TestRunPushesADecisionWithinASecondOfItsCommit(t *testing.T) {
	t.Parallel()
	w, settings := runs(t)
	settings["FEEDSCALE_TIMER_SCHEDULE"] = "* * * * * *"
	settings["FEEDSCALE_SCALER_LISTEN"] = testworld.FreeAddress(t)
	run := start(t, t.TempDir(), settings, "run")
	c, stream := asKEDA(t, settings["FEEDSCALE_SCALER_LISTEN"])
	w.Write(testworld.Orders, 5)
	pushed := make(chan time.Time, 1)
	go func() {
		if second, err := stream.Recv(); err == nil && second.Result {
			pushed <- time.Now()
		}
		close(pushed)
	}()
	run.stdout.await(t, `-000000000002"`) // it is published after the commit
	published := time.Now()
	at, ok := <-pushed
	if !ok || at.Sub(published) > soon+testworld.Busy {
		t.Errorf("pushed %s after it was published, want at most %s", at.Sub(published), soon+testworld.Busy)
	}
	metrics, err := c.GetMetrics(t.Context(), &pb.GetMetricsRequest{ScaledObjectRef: orders})
	if err != nil || metrics.MetricValues[0].MetricValueFloat != 1 {
		t.Errorf("%v, %v", metrics, err)
	}
	testworld.Must(t, run.Process.Signal(os.Interrupt))
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	if err := run.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

func TestScalerAsksTheAPIOfAnother(t *testing.T) {
	t.Parallel()
	w, settings := runs(t)
	settings["FEEDSCALE_TIMER_SCHEDULE"] = "* * * * * *"
	settings["FEEDSCALE_LISTEN"] = testworld.FreeAddress(t)
	run := start(t, t.TempDir(), settings, "run")
	run.stdout.await(t, `-000000000001"`)
	address := testworld.FreeAddress(t)
	scaler := start(t, t.TempDir(), map[string]string{"FEEDSCALE_URL": "http://" + settings["FEEDSCALE_LISTEN"]}, "scaler", "--listen", address, "--interval", "100ms")
	c, stream := asKEDA(t, address)
	w.Write(testworld.Orders, 5)
	run.stdout.await(t, `-000000000002"`)
	started := time.Now()
	if second, err := stream.Recv(); err != nil || !second.Result || time.Since(started) > soon+testworld.Busy {
		t.Errorf("%v, %v, %s after it was published", second, err, time.Since(started))
	}
	if _, err := c.IsActive(t.Context(), &pb.ScaledObjectRef{ScalerMetadata: map[string]string{"processor": "nobody"}}); status.Code(err) != codes.NotFound {
		t.Errorf("of an unknown name: %v", err)
	}
	run.interrupt(t)
	if _, err := c.GetMetrics(t.Context(), &pb.GetMetricsRequest{ScaledObjectRef: orders}); status.Code(err) != codes.Unavailable {
		t.Errorf("of a feedscale that is gone: %v", err)
	}
	scaler.interrupt(t)
}

// TestAnEventTellsTheScalerWhatHasChanged has an interval so long that the scaler never looks by
// itself.
func TestAnEventTellsTheScalerWhatHasChanged(t *testing.T) {
	t.Parallel()
	bus := testworld.StartNamespace(t, servicebusfake.Options{})
	testworld.Must(t, bus.CreateTopic(servicebusfake.TopicSpec{Name: "decisions"}))
	testworld.Must(t, bus.CreateSubscription("decisions", servicebusfake.SubscriptionSpec{Name: "keda"}))
	w, settings := runs(t)
	settings["FEEDSCALE_TIMER_SCHEDULE"] = "* * * * * *"
	settings["FEEDSCALE_LISTEN"] = testworld.FreeAddress(t)
	settings["SERVICEBUS"], settings["FEEDSCALE_EVENTS"] = bus.ConnectionString(), "servicebus:SERVICEBUS/decisions"
	run := start(t, t.TempDir(), settings, "run")
	address := testworld.FreeAddress(t)
	scaler := start(t, t.TempDir(), map[string]string{"FEEDSCALE_URL": "http://" + settings["FEEDSCALE_LISTEN"], "SERVICEBUS": bus.ConnectionString()},
		"scaler", "--listen", address, "--interval", "1h", "--events", "servicebus:SERVICEBUS/decisions/Subscriptions/keda")
	_, stream := asKEDA(t, address)
	w.Write(testworld.Orders, 5)
	if second, err := stream.Recv(); err != nil || !second.Result {
		t.Errorf("%v, %v", second, err)
	}
	run.interrupt(t)
	scaler.interrupt(t)
}

func TestScalerReadsTheStateOfAnother(t *testing.T) {
	t.Parallel()
	w, settings := runs(t)
	settings["TABLES"] = made(t, startTables).ConnectionString()
	settings["FEEDSCALE_STATE"] = "table:TABLES/scaler"
	if r := command(t, t.TempDir(), settings, "poll"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	settings["FEEDSCALE_SCALER_LISTEN"] = testworld.FreeAddress(t)
	scaler := start(t, t.TempDir(), settings, "scaler", "--interval", "100ms")
	_, stream := asKEDA(t, settings["FEEDSCALE_SCALER_LISTEN"])
	w.Write(testworld.Orders, 5)
	if r := command(t, t.TempDir(), settings, "poll"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	if second, err := stream.Recv(); err != nil || !second.Result {
		t.Errorf("%v, %v", second, err)
	}
	scaler.interrupt(t)
}

func TestTheScalersMistakesAreStatusTwo(t *testing.T) {
	t.Parallel()
	_, settings := runs(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, taken.Close()) })
	with := func(more ...string) map[string]string {
		s := maps.Clone(settings)
		for _, entry := range more {
			name, value, _ := strings.Cut(entry, "=")
			s[name] = value
		}
		return s
	}
	for _, c := range []struct {
		rule     string
		settings map[string]string
		args     []string
		says     string
	}{
		{"an address that is taken", with("FEEDSCALE_SCALER_LISTEN=" + taken.Addr().String()), []string{"run"}, "set FEEDSCALE_SCALER_LISTEN to another address"},
		{"certificates that are not there", with("FEEDSCALE_SCALER_LISTEN=127.0.0.1:0", "FEEDSCALE_SCALER_CERT_FILE=none.crt", "FEEDSCALE_SCALER_KEY_FILE=none.key"), []string{"run"}, "the certificate none.crt with the key none.key cannot be used"},
		{"a state that is for one process", with(), []string{"scaler"}, "set FEEDSCALE_SCALER_LISTEN for feedscale run, or ask it with --url"},
		{"an address of no API", map[string]string{}, []string{"scaler", "--url", "app"}, "it is not the address of feedscale's HTTP API"},
		{"two places to ask", map[string]string{}, []string{"scaler", "--url", "http://app.example", "--config", "processors.yaml"}, "--config: has no effect with --url"},
		{"an interval that floods", map[string]string{}, []string{"scaler", "--interval", "1ms", "--listen", "6000"}, `--interval is "1ms"; allowed are durations, such as 90s or 1h30m, from 100ms to 1h`},
	} {
		if r := command(t, t.TempDir(), c.settings, c.args...); r.Status != 2 || !strings.Contains(r.Stderr, c.says) {
			t.Errorf("%s: status %d, %s", c.rule, r.Status, r.Stderr)
		}
	}
}
