package amqp_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

func ptr[T any](v T) *T { return &v }

func frames() map[string]amqp.Frame {
	return map[string]amqp.Frame{
		"empty": {},
		"open": {Body: &amqp.Open{
			ContainerID: "c", Hostname: "h", MaxFrameSize: 512, ChannelMax: 7, IdleTimeout: 1000,
			Properties: amqp.Map{{Key: amqp.Symbol("product"), Value: "x"}},
		}},
		"open with defaults": {Body: &amqp.Open{ContainerID: "c", MaxFrameSize: 1<<32 - 1, ChannelMax: 1<<16 - 1}},
		"begin":              {Channel: 3, Body: &amqp.Begin{RemoteChannel: ptr(uint16(0)), IncomingWindow: 1, OutgoingWindow: 2, HandleMax: 255}},
		"attach": {Body: &amqp.Attach{
			Name: "l", Handle: 1, Role: amqp.RoleReceiver, SenderSettleMode: amqp.SenderSettled, ReceiverSettleMode: amqp.ReceiverSecond,
			Source: &amqp.Source{Address: "q", ExpiryPolicy: "session-end", Outcomes: []amqp.Symbol{"a", "b"},
				Filter: amqp.Map{{Key: amqp.Symbol("f"), Value: amqp.Described{Descriptor: uint64(1), Value: nil}}}},
			Target: &amqp.Target{Address: "t", ExpiryPolicy: "never"}, InitialDeliveryCount: ptr(uint32(0)), MaxMessageSize: 9,
		}},
		"attach to a coordinator": {Body: &amqp.Attach{Name: "l", SenderSettleMode: amqp.SenderMixed, Coordinator: &amqp.Coordinator{Capabilities: []amqp.Symbol{"amqp:local-transactions"}}}},
		"flow":                    {Body: &amqp.Flow{NextIncomingID: ptr(uint32(0)), Handle: ptr(uint32(0)), LinkCredit: ptr(uint32(5)), Drain: true}},
		"transfer": {Body: &amqp.Transfer{Handle: 1, DeliveryID: ptr(uint32(0)), DeliveryTag: []byte("t"), MessageFormat: ptr(uint32(0x80013700)), More: true,
			State: &amqp.Transactional{TransactionID: []byte("x"), Outcome: &amqp.Accepted{}}}, Payload: []byte("payload")},
		"disposition": {Body: &amqp.Disposition{Role: amqp.RoleReceiver, First: 1, Last: ptr(uint32(2)), Settled: true,
			State: &amqp.Rejected{Error: &amqp.Error{Condition: "c", Description: "d", Info: amqp.Map{{Key: amqp.Symbol("k"), Value: "v"}}}}}},
		"modified":  {Body: &amqp.Disposition{State: &amqp.Modified{UndeliverableHere: true, MessageAnnotations: amqp.Map{{Key: amqp.Symbol("k"), Value: int32(1)}}}}},
		"received":  {Body: &amqp.Disposition{State: &amqp.Received{SectionNumber: 1, SectionOffset: 2}}},
		"released":  {Body: &amqp.Disposition{State: &amqp.Released{}}},
		"declared":  {Body: &amqp.Disposition{State: &amqp.Declared{TransactionID: []byte("x")}}},
		"detach":    {Body: &amqp.Detach{Handle: 1, Closed: true, Error: &amqp.Error{Condition: "c"}}},
		"end":       {Body: &amqp.End{}},
		"close":     {Body: &amqp.Close{Error: &amqp.Error{Condition: "c"}}},
		"SASL":      {Kind: amqp.FrameSASL, Body: &amqp.SASLMechanisms{Mechanisms: []amqp.Symbol{"PLAIN", "ANONYMOUS"}}},
		"SASL init": {Kind: amqp.FrameSASL, Body: &amqp.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("r"), Hostname: "h"}},
		"outcome":   {Kind: amqp.FrameSASL, Body: &amqp.SASLOutcome{Code: 1}},
	}
}

func TestAFrameComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for name, want := range frames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			encoded, err := amqp.AppendFrame(nil, want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := amqp.ReadFrame(bytes.NewReader(encoded), 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Payload) == 0 {
				got.Payload = nil
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got.Body, want.Body)
			}
		})
	}
}

func TestBrokenFramesAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"a size beyond the limit":        "\x00\x01\x00\x00\x02\x00\x00\x00",
		"a size below the header":        "\x00\x00\x00\x07\x02\x00\x00\x00",
		"a body before the header ends":  "\x00\x00\x00\x08\x01\x00\x00\x00",
		"a body behind the end":          "\x00\x00\x00\x08\x03\x00\x00\x00",
		"an unknown kind":                "\x00\x00\x00\x08\x02\x02\x00\x00",
		"an end too early":               "\x00\x00\x00\x0a\x02\x00\x00\x00\x00",
		"a body that is no performative": "\x00\x00\x00\x09\x02\x00\x00\x00\x40",
		"an unknown performative":        "\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x19\x45",
		"an open without a container":    "\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x10\x45",
		"an open that is a map":          "\x00\x00\x00\x0e\x02\x00\x00\x00\x00\x53\x10\xc1\x01\x00",
		"a field of a wrong type":        "\x00\x00\x00\x10\x02\x00\x00\x00\x00\x53\x18\xc0\x03\x01\x50\x00",
	}
	for name, encoded := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if frame, err := amqp.ReadFrame(bytes.NewReader([]byte(encoded)), 1000); err == nil {
				t.Errorf("got %+v", frame)
			}
		})
	}
}
