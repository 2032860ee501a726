package servicebusfake_test

import (
	"net"
	"slices"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// coordinated is a bare connection with a link to the queue (handle 0) and one to the coordinator
// (handle 1).
type coordinated struct {
	*testing.T
	socket net.Conn
	next   uint32
}

func newCoordinated(t *testing.T, s *servicebusfake.Server) *coordinated {
	t.Helper()
	// SASL PLAIN spares the token.
	socket := dial(t, s)
	writeFrame(t, socket, "AMQP\x03\x01\x00\x00", amqp.Frame{Kind: amqp.FrameSASL, Body: &amqp.SASLInit{
		Mechanism: "PLAIN", InitialResponse: []byte("\x00" + servicebusfake.DefaultKeyName + "\x00" + servicebusfake.DefaultKey),
	}})
	readHeader(t, socket)
	read(t, socket)
	read(t, socket)
	writeFrame(t, socket, "AMQP\x00\x01\x00\x00", amqp.Frame{Body: client()})
	readHeader(t, socket)
	read(t, socket)
	for _, body := range []amqp.Composite{
		&amqp.Begin{IncomingWindow: 10, OutgoingWindow: 10},
		&amqp.Attach{Name: "queue", Handle: 0, Target: &amqp.Target{Address: "orders"}},
		&amqp.Attach{Name: "coordinator", Handle: 1, Coordinator: &amqp.Coordinator{}},
	} {
		writeFrame(t, socket, "", amqp.Frame{Body: body})
	}
	return &coordinated{T: t, socket: socket}
}

func readHeader(t *testing.T, socket net.Conn) {
	t.Helper()
	_, err := socket.Read(make([]byte, 8))
	testworld.Must(t, err)
}

func writeFrame(t *testing.T, socket net.Conn, prefix string, frame amqp.Frame) {
	t.Helper()
	encoded, err := amqp.AppendFrame([]byte(prefix), frame)
	testworld.Must(t, err)
	_, err = socket.Write(encoded)
	testworld.Must(t, err)
}

// transfer sends a message and returns the state that it is answered with.
func (c *coordinated) transfer(handle uint32, state amqp.State, value any) amqp.State {
	c.Helper()
	var m amqp.Message
	testworld.Must(c.T, m.SetValue(value))
	content, err := m.Append(nil)
	testworld.Must(c.T, err)
	id := c.next
	c.next++
	writeFrame(c.T, c.socket, "", amqp.Frame{
		Body: &amqp.Transfer{Handle: handle, DeliveryID: &id, DeliveryTag: []byte{byte(id)}, State: state}, Payload: content,
	})
	for {
		if d, ok := read(c.T, c.socket).(*amqp.Disposition); ok {
			return d.State
		}
	}
}

func (c *coordinated) declare() []byte {
	c.Helper()
	declared, ok := c.transfer(1, nil, amqp.Described{Descriptor: uint64(0x31), Value: amqp.List{}}).(*amqp.Declared)
	if !ok {
		c.Fatal("no transaction was declared")
	}
	return declared.TransactionID
}

func (c *coordinated) discharge(id []byte, fail bool) amqp.State {
	return c.transfer(1, nil, amqp.Described{Descriptor: uint64(0x32), Value: amqp.List{id, fail}})
}

func TestATransactionHappensWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fail bool
		want []servicebusfake.State
	}{
		"committed":   {false, []servicebusfake.State{servicebusfake.Active, servicebusfake.Active}},
		"rolled back": {true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, orders(servicebusfake.QueueSpec{}))
			c := newCoordinated(t, s)
			id := c.declare()
			for _, body := range []string{"a", "b"} {
				if _, ok := c.transfer(0, &amqp.Transactional{TransactionID: id}, body).(*amqp.Transactional); !ok {
					t.Fatal("the message was not taken into the transaction")
				}
			}
			if got := states(s, "orders"); len(got) != 0 {
				t.Errorf("before the end: got %v", got)
			}
			if got, ok := c.discharge(id, test.fail).(*amqp.Accepted); !ok {
				t.Errorf("got %T", got)
			}
			if got := states(s, "orders"); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if got, ok := c.discharge(id, false).(*amqp.Rejected); !ok || got.Error.Condition != "amqp:transaction:unknown-id" {
				t.Errorf("discharged twice: got %+v", got)
			}
		})
	}
}
