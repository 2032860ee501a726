package servicebusfake_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestMessagesExpire has the rules of
// https://learn.microsoft.com/azure/service-bus-messaging/message-expiration.
func TestMessagesExpire(t *testing.T) {
	t.Parallel()
	const sessionID = "s"
	cases := []struct {
		name string
		spec servicebusfake.QueueSpec
		ttl  time.Duration // of the message; 0 = it says nothing
		live time.Duration // what a receiver is told; 0 = nothing
		dead bool          // it ends in the dead-letter queue
	}{
		{"never, where neither message nor queue says so", servicebusfake.QueueSpec{}, 0, 0, false},
		{"after their own time", servicebusfake.QueueSpec{}, time.Minute, time.Minute, false},
		{"after the queue's time", servicebusfake.QueueSpec{DefaultTTL: time.Minute}, 0, time.Minute, false},
		{"after the queue's time where that is less", servicebusfake.QueueSpec{DefaultTTL: time.Minute}, time.Hour, time.Minute, false},
		{"after their own time where that is less", servicebusfake.QueueSpec{DefaultTTL: time.Hour}, time.Minute, time.Minute, false},
		{"into the dead-letter queue, where the queue says so", servicebusfake.QueueSpec{DeadLetterOnExpiry: true}, time.Minute, time.Minute, true},
		{"the same for what the queue's own time ends", servicebusfake.QueueSpec{DeadLetterOnExpiry: true, DefaultTTL: time.Minute}, 0, time.Minute, true},
	}
	for _, c := range cases {
		for kind, sessions := range map[string]bool{"without sessions": false, "with sessions": true} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				t.Parallel()
				var passed atomic.Int64
				began := time.Now().Truncate(time.Millisecond)
				spec := c.spec
				spec.Name, spec.RequiresSession = "orders", sessions
				s := start(t, servicebusfake.Options{
					Queues: []servicebusfake.QueueSpec{spec},
					Now:    func() time.Time { return began.Add(time.Duration(passed.Load())) },
				})
				client := connect(t, s)
				m := text("a")
				m.SessionID = ptr(sessionID)
				if c.ttl > 0 {
					m.TimeToLive = &c.ttl
				}
				send(t, newSender(t, client, "orders"), m)

				var receiver receiving
				var err error
				if sessions {
					receiver, err = client.AcceptSessionForQueue(deadline(t), "orders", sessionID, nil)
				} else {
					receiver, err = client.NewReceiverForQueue("orders", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModePeekLock})
				}
				testworld.Must(t, err)
				got := receive(t, receiver, 1)[0]
				if live := *got.TimeToLive; live != c.live {
					t.Errorf("the receiver is told %v, want %v", live, c.live)
				}
				if end := began.Add(c.live); c.live > 0 && !got.ExpiresAt.Equal(end) {
					t.Errorf("the receiver is told that it ends at %v, want %v", got.ExpiresAt, end)
				}
				testworld.Must(t, receiver.(interface {
					AbandonMessage(context.Context, *azservicebus.ReceivedMessage, *azservicebus.AbandonMessageOptions) error
				}).AbandonMessage(deadline(t), got, nil))

				wait := func(d time.Duration) {
					passed.Add(int64(d))
					s.Tick()
				}
				wait(time.Minute - time.Millisecond)
				if left := s.Messages("orders"); len(left) != 1 || left[0].State == servicebusfake.DeadLettered {
					t.Fatalf("before its time the queue holds %+v", left)
				}
				wait(time.Millisecond)
				left := s.Messages("orders")
				switch {
				case c.live == 0:
					if len(left) != 1 || left[0].State == servicebusfake.DeadLettered {
						t.Errorf("the queue holds %+v, want the message", left)
					}
				case !c.dead:
					if len(left) != 0 {
						t.Errorf("the queue holds %+v, want nothing, not even a dead letter", left)
					}
				case len(left) != 1 || left[0].State != servicebusfake.DeadLettered || left[0].Properties["DeadLetterReason"] != "TTLExpiredException":
					t.Errorf("the queue holds %+v, want a dead letter that says why", left)
				default:
					wait(1000 * time.Hour)
					if left := s.Messages("orders"); len(left) != 1 {
						t.Error("a dead letter expired, which it never does")
					}
				}
			})
		}
	}
}
