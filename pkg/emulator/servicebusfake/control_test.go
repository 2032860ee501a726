package servicebusfake_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func on(op servicebusfake.Op, answer servicebusfake.Answer) func(*servicebusfake.Request) *servicebusfake.Answer {
	return func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op != op {
			return nil
		}
		return &answer
	}
}

func TestControlScriptsOneAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		op     servicebusfake.Op
		answer servicebusfake.Answer
		fails  bool // the client sees the failure instead of trying again
		sent   int  // messages in the queue in the end
	}{
		"a refused connection is tried again":                {servicebusfake.OpOpen, servicebusfake.Answer{Condition: "amqp:internal-error"}, false, 1},
		"a dropped connection is tried again":                {servicebusfake.OpOpen, servicebusfake.Answer{Drop: true}, false, 1},
		"a refused link fails":                               {servicebusfake.OpAttach, servicebusfake.Answer{Condition: "amqp:unauthorized-access"}, true, 0},
		"a busy queue is tried again":                        {servicebusfake.OpSend, servicebusfake.Answer{Condition: "com.microsoft:server-busy"}, false, 1},
		"a full queue fails":                                 {servicebusfake.OpSend, servicebusfake.Answer{Condition: "amqp:resource-limit-exceeded"}, true, 0},
		"a connection dropped before a message is taken":     {servicebusfake.OpSend, servicebusfake.Answer{Drop: true}, false, 1},
		"a connection dropped behind it doubles the message": {servicebusfake.OpSend, servicebusfake.Answer{Drop: true, LoseReply: true}, false, 2},
		"a refused token fails":                              {servicebusfake.OpPutToken, servicebusfake.Answer{Condition: "com.microsoft:auth-failed", Status: 401}, true, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, orders(servicebusfake.QueueSpec{}))
			s.Control(on(test.op, test.answer))
			err := newSender(t, connect(t, s), "orders").SendMessage(deadline(t), text("a"), nil)
			if (err != nil) != test.fails {
				t.Errorf("got %v, want a failure: %v", err, test.fails)
			}
			if got := len(s.Messages("orders")); got != test.sent {
				t.Errorf("got %d messages, want %d", got, test.sent)
			}
		})
	}
}

func TestControlSeesWhatIsSent(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	var seen atomic.Pointer[servicebusfake.Request]
	s.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op == servicebusfake.OpSend {
			seen.Store(r)
		}
		return nil
	})
	send(t, newSender(t, connect(t, s), "orders"), &azservicebus.Message{Body: []byte("a"), MessageID: ptr("m1")})
	got := seen.Load()
	if got == nil || got.Entity != "orders" || len(got.Messages) != 1 || got.Messages[0].ID != "m1" || string(got.Messages[0].Body) != "a" {
		t.Errorf("got %+v", got)
	}
}

func TestControlRefusesManagementAndSettlement(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	client := connect(t, s)
	send(t, newSender(t, client, "orders"), text("a"))
	receiver := newReceiver(t, client, "orders", nil)
	m := receive(t, receiver, 1)[0]
	s.Control(on(servicebusfake.OpManage, servicebusfake.Answer{Condition: "com.microsoft:message-lock-lost", Status: 410}))
	var lost *azservicebus.Error
	if err := receiver.RenewMessageLock(deadline(t), m, nil); !errors.As(err, &lost) || lost.Code != azservicebus.CodeLockLost {
		t.Errorf("renewing: got %v, want lock lost", err)
	}
	s.Control(on(servicebusfake.OpSettle, servicebusfake.Answer{Condition: "com.microsoft:message-lock-lost"}))
	if err := receiver.CompleteMessage(deadline(t), m, nil); !errors.As(err, &lost) || lost.Code != azservicebus.CodeLockLost {
		t.Errorf("completing: got %v, want lock lost", err)
	}
	testworld.Must(t, receiver.CompleteMessage(deadline(t), m, nil))
}

func TestTheServerStartsOnlyOnGoodOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options servicebusfake.Options
		want    string
	}{
		"a queue without a name":  {servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{}}}, "needs a name"},
		"a dead-letter queue":     {servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: "a/$DeadLetterQueue"}}}, "without $DeadLetterQueue"},
		"one name twice":          {servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: "a"}, {Name: "A"}}}, "exists already"},
		"a negative duration":     {servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: "a", LockDuration: -1}}}, "cannot be negative"},
		"an address of elsewhere": {servicebusfake.Options{Addr: "192.0.2.1:1"}, "192.0.2.1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := servicebusfake.Start(test.options)
			if err == nil {
				_ = s.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q in it", err, test.want)
			}
		})
	}
}
