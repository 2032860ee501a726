package scaler

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/feedscale/feedscale/pkg/scaler/externalscaler"
)

// streamLife is how long a stream lasts. After a stream that ended in an error, KEDA waits 2, 4, 8 s and so
// on, up to a minute. It goes back to 2 s only after a stream that ended without one (runStreamIsActive in
// external_scaler.go of github.com/kedacore/keda). So each stream has to end at some time.
const streamLife = 10 * time.Minute

// StreamIsActive tells at once whether the count is above zero, and again whenever that changes.
//
// Without a reliable count it says nothing: KEDA takes its fallback from GetMetrics, and after an error it
// would wait longer than until the next count.
func (s *Server) StreamIsActive(ref *pb.ScaledObjectRef, stream grpc.ServerStreamingServer[pb.IsActiveResponse]) error {
	if s.pushes.Add(1) > maxPushes {
		s.pushes.Add(-1)
		return status.Errorf(codes.ResourceExhausted, "%d streams are open, which is the most", maxPushes)
	}
	defer s.pushes.Add(-1)
	t, err := triggerOf(ref) // all that is kept of the message
	if err != nil {
		return err
	}
	life := time.NewTimer(streamLife)
	defer life.Stop()
	var look <-chan time.Time
	if s.options.Interval > 0 {
		ticker := time.NewTicker(s.options.Interval)
		defer ticker.Stop()
		look = ticker.C
	}
	ctx := stream.Context()
	for told, active := false, false; ; {
		changed := s.options.Source.Changed(t.processor) // before the look, so that no change falls between the two
		replicas, err := s.ask(ctx, t)
		switch code := status.Code(err); {
		case code == codes.InvalidArgument || code == codes.NotFound || ctx.Err() != nil:
			return err
		case err == nil && (!told || active != (replicas > 0)):
			told, active = true, replicas > 0
			if err := stream.Send(&pb.IsActiveResponse{Result: active}); err != nil {
				return err
			}
			s.options.Log.Debug("pushed", "processor", t.processor, "active", active)
		}
		select {
		case <-changed:
		case <-look:
		case <-life.C:
			return nil
		case <-s.ending:
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}
