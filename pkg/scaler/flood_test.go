package scaler_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaler"
	pb "github.com/feedscale/feedscale/pkg/scaler/externalscaler"
)

const mebibyte = 1 << 20

// inUse is the memory of this process, garbage included, as the limit of a container counts it.
func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// flood opens n calls on one connection, each with a message unless that is nil, and returns once the
// server has read all of it.
func flood(t *testing.T, address, method string, n int, message proto.Message) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	testworld.Must(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = io.WriteString(c, http2.ClientPreface)
	testworld.Must(t, err)
	framer := http2.NewFramer(c, c)
	testworld.Must(t, framer.WriteSettings())
	answered := make(chan struct{})
	go func() {
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
				close(answered)
				_, _ = io.Copy(io.Discard, c)
				return
			}
		}
	}()
	var data []byte
	if message != nil {
		text, err := proto.Marshal(message)
		testworld.Must(t, err)
		data = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range n {
		block.Reset()
		for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "feedscale:6000"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
			testworld.Must(t, encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
		}
		testworld.Must(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true}))
		if message != nil {
			testworld.Must(t, framer.WriteData(uint32(2*i+1), true, data))
		}
	}
	testworld.Must(t, framer.WritePing(false, [8]byte{1}))
	select {
	case <-answered:
	case <-time.After(time.Minute):
		t.Fatal("the server does not answer a ping")
	}
}

// TestHalfOpenCallsTakeNoMemoryToSpeakOf is not parallel to others, whose memory would count.
func TestHalfOpenCallsTakeNoMemoryToSpeakOf(t *testing.T) {
	const calls = "/externalscaler.ExternalScaler/"
	address := serve(t, scaler.Options{Source: newDecided(map[string]any{"orders": 1})}).address
	runtime.GC()
	before := inUse()
	for _, method := range []string{calls + "StreamIsActive", calls + "IsActive", calls + "StreamMetricSpec", "/grpc.health.v1.Health/Check"} {
		flood(t, address, method, 11_900, nil)
	}
	if grown := inUse() - before; grown > 128*mebibyte {
		t.Errorf("47,600 half-open calls take %d MiB", grown/mebibyte)
	}
}

// TestWhatAStreamWasAskedWithIsNotKept has as many streams as there may be, each with the longest message.
func TestWhatAStreamWasAskedWithIsNotKept(t *testing.T) {
	long := of("orders")
	long.ScalerMetadata["more"] = strings.Repeat("x", 15<<10)
	address := serve(t, scaler.Options{Source: newDecided(map[string]any{"orders": 1})}).address
	runtime.GC()
	before := inUse()
	for range 2 {
		flood(t, address, "/externalscaler.ExternalScaler/StreamIsActive", 6_000, long)
		flood(t, address, "/grpc.health.v1.Health/Watch", 6_000, &grpc_health_v1.HealthCheckRequest{Service: long.ScalerMetadata["more"]})
	}
	runtime.GC()
	if grown := inUse() - before; grown > 192*mebibyte { // the messages alone are 375 MiB
		t.Errorf("24,000 streams take %d MiB", grown/mebibyte)
	}
}

// TestACallWhoseMessageDoesNotComeEnds has the time of its bubble.
func TestACallWhoseMessageDoesNotComeEnds(t *testing.T) {
	t.Parallel()
	for rule, method := range map[string]string{"a stream": "StreamIsActive", "another call": "IsActive"} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := bufconn.Listen(1 << 16)
				stop := serveOn(t, l, scaler.Options{Source: newDecided(map[string]any{"orders": 1})})
				started := time.Now()
				stream, err := dialPipe(t, l).NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/externalscaler.ExternalScaler/"+method)
				testworld.Must(t, err)
				err = stream.RecvMsg(new(pb.IsActiveResponse))
				if status.Code(err) != codes.DeadlineExceeded || time.Since(started).Round(time.Second) != 10*time.Second {
					t.Errorf("it ended with %v after %s", err, time.Since(started))
				}
				testworld.Must(t, stop())
			})
		})
	}
}
