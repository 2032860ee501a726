package servicebus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// newSignals returns signals in a namespace, and closes them with the test.
func newSignals(t *testing.T, connectionString string, o servicebus.SignalsOptions) *servicebus.Signals {
	t.Helper()
	s := servicebus.NewSignals(newPublisher(t, connectionString, patient()), o)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func keep(t *testing.T, s *servicebus.Signals, replicas int) {
	t.Helper()
	testworld.Must(t, s.Keep(t.Context(), "scale", replicas))
}

// active counts the messages that KEDA's azure-servicebus scaler counts.
func active(b *servicebusfake.Server) int {
	n := 0
	for _, m := range b.Messages("scale") {
		if m.State != servicebusfake.DeadLettered && m.State != servicebusfake.Scheduled {
			n++
		}
	}
	return n
}

func wantActive(t *testing.T, b *servicebusfake.Server, want int) {
	t.Helper()
	if got := active(b); got != want {
		t.Errorf("the queue holds %d messages, want %d", got, want)
	}
}

// receiveSome receives messages of the queue scale as another consumer would.
func receiveSome(t *testing.T, b *servicebusfake.Server, n int, mode azservicebus.ReceiveMode) (*azservicebus.Receiver, []*azservicebus.ReceivedMessage) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(b.ConnectionString(), nil)
	testworld.Must(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	receiver, err := client.NewReceiverForQueue("scale", &azservicebus.ReceiverOptions{ReceiveMode: mode})
	testworld.Must(t, err)
	var all []*azservicebus.ReceivedMessage
	for len(all) < n {
		some, err := receiver.ReceiveMessages(t.Context(), 1, nil)
		testworld.Must(t, err)
		all = append(all, some...)
	}
	return receiver, all
}

// sendOther sends a message that is no signal.
func sendOther(t *testing.T, b *servicebusfake.Server) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(b.ConnectionString(), nil)
	testworld.Must(t, err)
	defer client.Close(t.Context())
	sender, err := client.NewSender("scale", nil)
	testworld.Must(t, err)
	id := "order-17"
	testworld.Must(t, sender.SendMessage(t.Context(), &azservicebus.Message{MessageID: &id, Body: []byte("an order")}, nil))
}

func TestAQueueHoldsAsManySignalsAsReplicasAreWanted(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "", servicebusfake.QueueSpec{})
	s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
	for _, replicas := range []int{0, 3, 3, 8, 2, 300, 299, 0, 0, 1} {
		keep(t, s, replicas)
		wantActive(t, b, replicas)
	}
	m := b.Messages("scale")[0]
	if m.Subject != servicebus.SignalType || !m.ExpiresAt.IsZero() || m.ID == "" {
		t.Errorf("a signal is %+v", m)
	}
}

func TestAQueueThatDetectsDuplicatesTakesEverySignal(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "", servicebusfake.QueueSpec{DuplicateDetectionWindow: time.Hour})
	s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
	for _, replicas := range []int{4, 1, 5} {
		keep(t, s, replicas)
		wantActive(t, b, replicas)
	}
}

func TestTheCountIsRightAgainWhateverHappenedToIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		queue   servicebusfake.QueueSpec
		meddle  func(t *testing.T, b *servicebusfake.Server, clock *broker)
		between int // messages before the next Keep
	}{
		{"another consumer took messages", servicebusfake.QueueSpec{}, func(t *testing.T, b *servicebusfake.Server, _ *broker) {
			receiveSome(t, b, 2, azservicebus.ReceiveModeReceiveAndDelete)
		}, 3},
		{"another consumer dead-lettered one", servicebusfake.QueueSpec{}, func(t *testing.T, b *servicebusfake.Server, _ *broker) {
			receiver, messages := receiveSome(t, b, 1, azservicebus.ReceiveModePeekLock)
			testworld.Must(t, receiver.DeadLetterMessage(t.Context(), messages[0], nil))
		}, 4},
		{"another consumer deferred one, which a scaler counts", servicebusfake.QueueSpec{}, func(t *testing.T, b *servicebusfake.Server, _ *broker) {
			receiver, messages := receiveSome(t, b, 1, azservicebus.ReceiveModePeekLock)
			testworld.Must(t, receiver.DeferMessage(t.Context(), messages[0], nil))
		}, 5},
		{"another consumer locked some, which a scaler counts", servicebusfake.QueueSpec{}, func(t *testing.T, b *servicebusfake.Server, _ *broker) {
			receiveSome(t, b, 2, azservicebus.ReceiveModePeekLock)
		}, 5},
		{"the queue's default time to live was over", servicebusfake.QueueSpec{DefaultTTL: time.Hour}, func(_ *testing.T, _ *servicebusfake.Server, clock *broker) {
			clock.pass(2 * time.Hour)
		}, 0},
		{"messages expired into the dead-letter queue", servicebusfake.QueueSpec{DefaultTTL: time.Hour, DeadLetterOnExpiry: true}, func(_ *testing.T, _ *servicebusfake.Server, clock *broker) {
			clock.pass(2 * time.Hour)
		}, 0},
		{"nobody came for a year", servicebusfake.QueueSpec{}, func(_ *testing.T, _ *servicebusfake.Server, clock *broker) {
			clock.pass(365 * 24 * time.Hour)
		}, 5},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			b := startClocked(t, c.queue)
			s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
			keep(t, s, 5)
			c.meddle(t, b.Server, b)
			wantActive(t, b.Server, c.between)
			// Over a connection of its own: one that is open while the clock is ahead may lose its token to that.
			keep(t, newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{}), 5)
			wantActive(t, b.Server, 5)
		})
	}
}

// broker is a stand-in whose clock the test advances.
type broker struct {
	*servicebusfake.Server
	now atomic.Pointer[time.Time]
}

// pass lets time pass for what is in the queues, and puts the clock back, since tokens of clients are of the
// real time.
func (b *broker) pass(d time.Duration) {
	real, later := b.now.Load(), b.now.Load().Add(d)
	b.now.Store(&later)
	b.Tick()
	b.now.Store(real)
}

func startClocked(t *testing.T, spec servicebusfake.QueueSpec) *broker {
	t.Helper()
	b := &broker{}
	now := time.Now()
	b.now.Store(&now)
	spec.Name = "scale"
	var err error
	b.Server, err = servicebusfake.Start(servicebusfake.Options{Queues: []servicebusfake.QueueSpec{spec}, Now: func() time.Time { return *b.now.Load() }})
	testworld.Must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestMessagesThatOthersHoldLockedAreTakenBackInOtherOnes(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "", servicebusfake.QueueSpec{})
	s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
	keep(t, s, 5)
	receiveSome(t, b, 2, azservicebus.ReceiveModePeekLock) // the oldest
	keep(t, s, 3)
	wantActive(t, b, 3)
	err := s.Keep(t.Context(), "scale", 1)
	if err == nil || !strings.Contains(err.Error(), `holds 1 messages too many, which another consumer has locked or deferred: see that nothing else receives from it`) {
		t.Errorf("got %v", err)
	}
	wantActive(t, b, 2)
}

func TestAQueueWithOtherMessagesIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 4} {
		t.Run(fmt.Sprintf("behind %d signals", before), func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, "", servicebusfake.QueueSpec{})
			s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
			keep(t, s, before)
			sendOther(t, b)
			for _, replicas := range []int{0, 2, 9} {
				err := s.Keep(t.Context(), "scale", replicas)
				if err == nil || !strings.Contains(err.Error(), `holds messages that are no signals, such as "order-17": none is sent or taken`) {
					t.Errorf("%d: got %v", replicas, err)
				}
				wantActive(t, b, before+1)
			}
			if err := s.Empty(t.Context(), "scale"); err == nil {
				t.Error("it was emptied")
			}
		})
	}
}

func TestTwoThatActAtOnceConverge(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "", servicebusfake.QueueSpec{})
	one, other := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{}), newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
	for _, replicas := range []int{7, 2, 9, 1, 12, 3, 20, 5} {
		for range 2 {
			var both sync.WaitGroup
			both.Go(func() { testworld.Must(t, one.Keep(t.Context(), "scale", replicas)) })
			both.Go(func() { testworld.Must(t, other.Keep(t.Context(), "scale", replicas)) })
			both.Wait()
			if got := active(b); got < replicas {
				t.Errorf("%d messages where %d are wanted", got, replicas)
			}
		}
		wantActive(t, b, replicas)
	}
}

func TestAReplyThatWasLostChangesNoCount(t *testing.T) {
	t.Parallel()
	for _, op := range []servicebusfake.Op{servicebusfake.OpOpen, servicebusfake.OpPutToken, servicebusfake.OpAttach, servicebusfake.OpManage, servicebusfake.OpSend} {
		for _, lose := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, done %v", op, lose), func(t *testing.T) {
				t.Parallel()
				b := startBroker(t, "", servicebusfake.QueueSpec{})
				s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
				script(b, op, servicebusfake.Answer{Drop: true, LoseReply: lose})
				keep(t, s, 4)
				wantActive(t, b, 4)
			})
		}
	}
}

func TestARefusalOfASignalQueueSaysWhatToDo(t *testing.T) {
	t.Parallel()
	condition := func(op servicebusfake.Op, condition string) func(*servicebusfake.Server) {
		return func(b *servicebusfake.Server) {
			b.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
				if r.Op != op {
					return nil
				}
				return &servicebusfake.Answer{Condition: condition, Status: 401, Keep: true}
			})
		}
	}
	// refuseLinks refuses the links on which a queue is sent to, or received from.
	refuseLinks := func(receiver bool) func(*servicebusfake.Server) {
		return func(b *servicebusfake.Server) {
			b.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
				if r.Op != servicebusfake.OpAttach || r.Entity != "scale" || r.Receiver != receiver {
					return nil
				}
				return &servicebusfake.Answer{Condition: "amqp:unauthorized-access", Keep: true}
			})
		}
	}
	for _, c := range []struct {
		rule   string
		queue  string
		spec   servicebusfake.QueueSpec
		script func(*servicebusfake.Server)
		kind   servicebus.Kind
		want   string
	}{
		{"there is no such queue", "replicas", servicebusfake.QueueSpec{}, nil, servicebus.QueueNotFound, `queue "replicas" does not exist in Service Bus namespace`},
		{"the queue requires sessions", "scale", servicebusfake.QueueSpec{RequiresSession: true}, nil, servicebus.WrongSessions, "requires sessions: create it anew without requiresSession"},
		{"the key is refused", "scale", servicebusfake.QueueSpec{}, condition(servicebusfake.OpPutToken, "com.microsoft:auth-failed"), servicebus.NotPermitted, "whose policy has the Listen right"},
		{"the key may not listen", "scale", servicebusfake.QueueSpec{}, refuseLinks(true), servicebus.NotPermitted, "whose policy has the Listen right"},
		{"the key may not send", "scale", servicebusfake.QueueSpec{}, refuseLinks(false), servicebus.NotPermitted, "whose policy has the Send right"},
		{"the queue is full", "scale", servicebusfake.QueueSpec{}, condition(servicebusfake.OpSend, "amqp:resource-limit-exceeded"), servicebus.QueueFull, "is full"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, "", c.spec)
			if c.script != nil {
				c.script(b)
			}
			s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
			err := s.Keep(t.Context(), c.queue, 3)
			var refusal *servicebus.Refusal
			if !errors.As(err, &refusal) || refusal.Kind != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s: %q", err, c.kind, c.want)
			}
			if strings.Contains(fmt.Sprint(err), servicebusfake.DefaultKey) {
				t.Errorf("the error has the key: %v", err)
			}
		})
	}
}

func TestAQueueThatIsGoneIsEmpty(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "", servicebusfake.QueueSpec{})
	s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
	testworld.Must(t, s.Empty(t.Context(), "gone"))
	keep(t, s, 3)
	testworld.Must(t, s.Empty(t.Context(), "scale"))
	wantActive(t, b, 0)
}

func TestANamespaceThatIsSilentTakesNoLongerThanItsTries(t *testing.T) {
	t.Parallel()
	connection := "Endpoint=sb://" + silentListener(t) + ";SharedAccessKeyName=a;SharedAccessKey=" + servicebusfake.DefaultKey + ";UseDevelopmentEmulator=true"
	s := newSignals(t, connection, servicebus.SignalsOptions{TryTimeout: 100 * time.Millisecond})
	err := s.Keep(t.Context(), "scale", 3)
	if !errors.Is(err, events.ErrUnreachable) || !strings.Contains(err.Error(), "no answer from Service Bus namespace") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Keep(ctx, "scale", 3); err == nil {
		t.Error("no error")
	}
}

func TestSignalsOfABrokerThatRestartedAreKeptOnANewConnection(t *testing.T) {
	t.Parallel()
	first := startBroker(t, "", servicebusfake.QueueSpec{})
	s := newSignals(t, first.ConnectionString(), servicebus.SignalsOptions{})
	keep(t, s, 3)
	addr := first.Addr().String()
	testworld.Must(t, first.Close())
	second := startBroker(t, addr, servicebusfake.QueueSpec{})
	testworld.Eventually(t, "signals in the new broker", func() bool { return s.Keep(t.Context(), "scale", 3) == nil })
	wantActive(t, second, 3)
}

func TestAProbeOfASignalQueueChangesNothing(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "", servicebusfake.QueueSpec{})
	s := newSignals(t, b.ConnectionString(), servicebus.SignalsOptions{})
	testworld.Must(t, s.Probe(t.Context(), "scale"))
	keep(t, s, 2)
	testworld.Must(t, s.Probe(t.Context(), "scale"))
	wantActive(t, b, 2)
	sendOther(t, b)
	if err := s.Probe(t.Context(), "scale"); err == nil || !strings.Contains(err.Error(), "no signals") {
		t.Errorf("got %v", err)
	}
}
