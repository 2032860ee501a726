package servicebusfake_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// dial opens a bare connection to the stand-in, whose reads end some time.
func dial(t *testing.T, s *servicebusfake.Server) net.Conn {
	t.Helper()
	socket, err := net.Dial("tcp", s.Addr().String())
	testworld.Must(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	testworld.Must(t, socket.SetDeadline(time.Now().Add(testworld.Deadline)))
	return socket
}

// opened is a bare connection that both sides have opened, without SASL.
func opened(t *testing.T, s *servicebusfake.Server, open *amqp.Open) net.Conn {
	t.Helper()
	socket := dial(t, s)
	write(t, socket, "AMQP\x00\x01\x00\x00", open)
	header := make([]byte, 8)
	_, err := io.ReadFull(socket, header)
	testworld.Must(t, err)
	if _, ok := read(t, socket).(*amqp.Open); !ok {
		t.Fatal("the answer is not an open")
	}
	return socket
}

func write(t *testing.T, socket net.Conn, prefix string, body amqp.Composite) {
	t.Helper()
	encoded, err := amqp.AppendFrame([]byte(prefix), amqp.Frame{Body: body})
	testworld.Must(t, err)
	_, err = socket.Write(encoded)
	testworld.Must(t, err)
}

func read(t *testing.T, socket net.Conn) amqp.Composite {
	t.Helper()
	frame, err := amqp.ReadFrame(socket, 1<<16)
	testworld.Must(t, err)
	return frame.Body
}

func client() *amqp.Open {
	return &amqp.Open{ContainerID: "test", MaxFrameSize: 1 << 16, ChannelMax: 10}
}

func TestHostileBytesEndOnlyTheirConnection(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	for _, bytes := range []string{"GET / HTTP/1.1\r\n\r\n", "AMQP\x02\x01\x00\x00", "AMQP\x03\x01\x00\x00\xff\xff\xff\xff\x02\x01\x00\x00", "AMQP\x00\x01\x00\x00\x00\x00\x00\x08\x02\x00\x00\x00"} {
		socket := dial(t, s)
		_, err := io.WriteString(socket, bytes)
		testworld.Must(t, err)
		if _, err := io.ReadAll(socket); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: the connection did not end: %v", bytes, err)
		}
	}
	send(t, newSender(t, connect(t, s), "orders"), text("a"))
}

func TestAProtocolErrorIsTold(t *testing.T) {
	t.Parallel()
	begin := &amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10}
	id := uint32(0)
	tests := map[string]struct {
		channel uint16
		sent    []amqp.Composite
		want    amqp.Symbol
	}{
		"a link outside a session":     {0, []amqp.Composite{&amqp.Attach{Name: "l"}}, "amqp:connection:framing-error"},
		"a channel beyond the maximum": {5000, []amqp.Composite{begin}, "amqp:connection:framing-error"},
		"a session begun twice":        {1, []amqp.Composite{begin, begin}, "amqp:connection:framing-error"},
		"a second open":                {1, []amqp.Composite{begin, client()}, "amqp:connection:framing-error"},
		"a transfer without a link":    {1, []amqp.Composite{begin, &amqp.Transfer{DeliveryID: &id}}, "amqp:session:unattached-handle"},
		"a flow of no link":            {1, []amqp.Composite{begin, &amqp.Flow{Handle: &id}}, "amqp:session:unattached-handle"},
		"a detach of no link":          {1, []amqp.Composite{begin, &amqp.Detach{}}, "amqp:session:unattached-handle"},
		"a handle beyond the maximum":  {1, []amqp.Composite{begin, &amqp.Attach{Name: "l", Handle: 256}}, "amqp:session:handle-in-use"},
		"an outcome of no delivery": {
			1, []amqp.Composite{begin, &amqp.Disposition{Role: amqp.RoleReceiver, Last: ptr(uint32(1 << 30))}}, "amqp:decode-error",
		},
		"a link to nowhere in particular": {1, []amqp.Composite{begin, &amqp.Attach{Name: "l"}}, "com.microsoft:argument-error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := opened(t, start(t, servicebusfake.Options{}), client())
			for _, body := range test.sent {
				encoded, err := amqp.AppendFrame(nil, amqp.Frame{Channel: test.channel, Body: body})
				testworld.Must(t, err)
				_, err = socket.Write(encoded)
				testworld.Must(t, err)
			}
			if got := failure(t, socket); got == nil || got.Condition != test.want {
				t.Errorf("got %+v, want %s", got, test.want)
			}
		})
	}
}

// failure is the error of the first frame that ends something.
func failure(t *testing.T, socket net.Conn) *amqp.Error {
	t.Helper()
	for {
		switch body := read(t, socket).(type) {
		case *amqp.Close:
			return body.Error
		case *amqp.End:
			return body.Error
		case *amqp.Detach:
			return body.Error
		}
	}
}

func TestAQuietConnectionIsKeptAlive(t *testing.T) {
	t.Parallel()
	open := client()
	open.IdleTimeout = 20
	socket := opened(t, start(t, servicebusfake.Options{}), open)
	for range 3 {
		if body := read(t, socket); body != nil {
			t.Errorf("got %T, want an empty frame", body)
		}
	}
	write(t, socket, "", &amqp.Close{})
	for {
		switch body := read(t, socket).(type) {
		case nil:
			continue
		case *amqp.Close:
		default:
			t.Errorf("got %T", body)
		}
		return
	}
}

func plainly(t *testing.T, s *servicebusfake.Server, sasl goamqp.SASLType) (*goamqp.Conn, error) {
	t.Helper()
	conn, err := goamqp.Dial(deadline(t), "amqp://"+s.Addr().String(), &goamqp.ConnOptions{SASLType: sasl})
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

func attached(t *testing.T, s *servicebusfake.Server, o *goamqp.ReceiverOptions) (*goamqp.Receiver, error) {
	t.Helper()
	conn, err := plainly(t, s, goamqp.SASLTypePlain(servicebusfake.DefaultKeyName, servicebusfake.DefaultKey))
	testworld.Must(t, err)
	session, err := conn.NewSession(deadline(t), nil)
	testworld.Must(t, err)
	return session.NewReceiver(deadline(t), "orders", o)
}

func TestPlainAuthenticationTakesTheKeyOnly(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	if _, err := attached(t, s, nil); err != nil {
		t.Errorf("the key was refused: %v", err)
	}
	if _, err := plainly(t, s, goamqp.SASLTypePlain(servicebusfake.DefaultKeyName, "wrong")); err == nil {
		t.Error("a wrong key was taken")
	}
}

func TestWithoutATokenNothingIsAttached(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	conn, err := plainly(t, s, goamqp.SASLTypeAnonymous())
	testworld.Must(t, err)
	session, err := conn.NewSession(deadline(t), nil)
	testworld.Must(t, err)
	_, err = session.NewReceiver(deadline(t), "orders", nil)
	var refused *goamqp.Error
	if !errors.As(err, &refused) || refused.Condition != goamqp.ErrCondUnauthorizedAccess {
		t.Errorf("got %v, want unauthorized access", err)
	}
}

func TestCreditIsDrained(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	receiver, err := attached(t, s, &goamqp.ReceiverOptions{Credit: -1})
	testworld.Must(t, err)
	testworld.Must(t, receiver.IssueCredit(5))
	testworld.Must(t, receiver.DrainCredit(deadline(t), nil))
	send(t, newSender(t, connect(t, s), "orders"), text("a"))
	if m := receiver.Prefetched(); m != nil {
		t.Error("a message came without credit")
	}
	testworld.Must(t, receiver.IssueCredit(1))
	if _, err := receiver.Receive(deadline(t), nil); err != nil {
		t.Error(err)
	}
}

func TestALinkEndsWithItsToken(t *testing.T) {
	t.Parallel()
	var jumped atomic.Int64
	o := orders(servicebusfake.QueueSpec{})
	o.Now = func() time.Time { return time.Now().Add(time.Duration(jumped.Load())) }
	s := start(t, o)
	client := connect(t, s)
	receiver := newReceiver(t, client, "orders", nil)
	// Peeking attaches the link.
	_, err := receiver.PeekMessages(deadline(t), 1, nil)
	testworld.Must(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := receiver.ReceiveMessages(deadline(t), 1, nil)
		ended <- err
	}()
	jumped.Store(int64(24 * time.Hour))
	s.Tick()
	var refused *azservicebus.Error
	if err := <-ended; !errors.As(err, &refused) || refused.Code != azservicebus.CodeUnauthorizedAccess {
		t.Errorf("got %v, want unauthorized", err)
	}
}

func TestCloseEndsWaitingClients(t *testing.T) {
	t.Parallel()
	s, err := servicebusfake.Start(orders(servicebusfake.QueueSpec{}))
	testworld.Must(t, err)
	receiver, err := attached(t, s, nil)
	testworld.Must(t, err)
	testworld.Must(t, s.Close())
	testworld.Must(t, s.Close())
	if _, err := receiver.Receive(deadline(t), nil); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}

func TestASenderNeverRunsOutOfCredit(t *testing.T) {
	t.Parallel()
	// More than the credit of a link and than the window of a session.
	const count = 6000
	s := start(t, orders(servicebusfake.QueueSpec{}))
	conn, err := plainly(t, s, goamqp.SASLTypePlain(servicebusfake.DefaultKeyName, servicebusfake.DefaultKey))
	testworld.Must(t, err)
	session, err := conn.NewSession(deadline(t), nil)
	testworld.Must(t, err)
	sender, err := session.NewSender(deadline(t), "orders", &goamqp.SenderOptions{SettlementMode: goamqp.SenderSettleModeMixed.Ptr()})
	testworld.Must(t, err)
	for i := range count {
		testworld.Must(t, sender.Send(deadline(t), goamqp.NewMessage([]byte("x")), &goamqp.SendOptions{Settled: i < count-1}))
	}
	if got := len(s.Messages("orders")); got != count {
		t.Errorf("got %d messages, want %d", got, count)
	}
}

func TestDrainedCreditCounts(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	c := newCoordinated(t, s)
	handle, credit := uint32(2), uint32(5)
	writeFrame(t, c.socket, "", amqp.Frame{Body: &amqp.Attach{
		Name: "receiver", Handle: handle, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "orders"}, Target: &amqp.Target{Address: "here"},
	}})
	writeFrame(t, c.socket, "", amqp.Frame{Body: &amqp.Flow{
		NextIncomingID: new(uint32), IncomingWindow: 10, OutgoingWindow: 10, Handle: &handle, DeliveryCount: new(uint32), LinkCredit: &credit, Drain: true,
	}})
	for {
		flow, ok := read(t, c.socket).(*amqp.Flow)
		if !ok || *flow.Handle != handle {
			continue
		}
		if *flow.DeliveryCount != credit || *flow.LinkCredit != 0 || !flow.Drain {
			t.Errorf("got count %d, credit %d, drain %v", *flow.DeliveryCount, *flow.LinkCredit, flow.Drain)
		}
		return
	}
}
