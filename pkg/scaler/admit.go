package scaler

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// admission counts calls from the moment that they open, over all connections. A call needs no key, and uses
// memory before its message comes.
type admission struct{ calls, waiting atomic.Int64 }

// of returns a service with the admission before each call reads its message. gRPC reads the message before
// it calls the handler of a single answer, so that this becomes a stream of one answer, which is the same
// on the wire.
func (a *admission) of(service grpc.ServiceDesc) *grpc.ServiceDesc {
	var streams []grpc.StreamDesc
	for _, m := range service.Methods {
		streams = append(streams, grpc.StreamDesc{StreamName: m.MethodName, ServerStreams: true, Handler: func(server any, stream grpc.ServerStream) error {
			answer, err := m.Handler(server, stream.Context(), stream.RecvMsg, nil)
			if err != nil {
				return err
			}
			return stream.SendMsg(answer)
		}})
	}
	service.Methods, service.Streams = nil, append(streams, service.Streams...)
	for i, s := range service.Streams {
		service.Streams[i].Handler = func(server any, stream grpc.ServerStream) error {
			defer a.calls.Add(-1)
			if a.calls.Add(1) > maxCalls {
				return status.Errorf(codes.ResourceExhausted, "%d calls are open, which is the most", maxCalls)
			}
			return s.Handler(server, waitingStream{stream, a})
		}
	}
	return &service
}

// waitingStream is a call whose message has not come yet.
type waitingStream struct {
	grpc.ServerStream
	*admission
}

// RecvMsg waits for the message up to messageTimeout. Then the handler ends the call, and thereby the wait
// of the goroutine.
func (w waitingStream) RecvMsg(m any) error {
	defer w.waiting.Add(-1)
	if w.waiting.Add(1) > maxWaiting {
		return status.Errorf(codes.ResourceExhausted, "%d calls wait for their message, which is the most", maxWaiting)
	}
	received := make(chan error, 1)
	go func() { received <- w.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		return err
	case <-time.After(messageTimeout):
		return status.Errorf(codes.DeadlineExceeded, "no message came within %s", messageTimeout)
	}
}
