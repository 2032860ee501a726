package amqp_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

func described(t *testing.T, code uint64, value any) []byte {
	t.Helper()
	encoded, err := amqp.Append(nil, amqp.Described{Descriptor: code, Value: value})
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func sections(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestTheSendersSectionsStayHisBytes(t *testing.T) {
	t.Parallel()
	// A wide encoding of a short string: what would be encoded anew would be shorter.
	properties := []byte("\x00\x53\x73\xd0\x00\x00\x00\x0b\x00\x00\x00\x01\xb1\x00\x00\x00\x02id")
	application := described(t, 0x74, amqp.Map{{Key: "k", Value: int64(1)}})
	body := sections(described(t, 0x75, []byte("one")), described(t, 0x75, []byte("two")))
	footer := described(t, 0x78, amqp.Map{{Key: amqp.Symbol("f"), Value: true}})
	m, err := amqp.ParseMessage(sections(described(t, 0x72, amqp.Map{{Key: amqp.Symbol("a"), Value: "b"}}), properties, application, body, footer))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Data(); !reflect.DeepEqual(got, [][]byte{[]byte("one"), []byte("two")}) {
		t.Errorf("got data %q", got)
	}
	if got, err := m.DecodeProperties(); err != nil || got.MessageID != "id" {
		t.Errorf("got properties %+v, %v", got, err)
	}
	m.Header = &amqp.Header{Priority: amqp.DefaultPriority, DeliveryCount: 3}
	m.Annotations = m.Annotations.With(amqp.Symbol("n"), int64(1))
	got, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := sections(properties, application, body, footer); !bytes.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end with %q", got, want)
	}
	again, err := amqp.ParseMessage(got)
	if err != nil || again.Header.DeliveryCount != 3 || again.Annotations.Get("n") != int64(1) || again.Annotations.Get("a") != "b" {
		t.Errorf("got %+v, %v", again, err)
	}
}

func TestBrokenMessagesAreRefused(t *testing.T) {
	t.Parallel()
	data := described(t, 0x75, []byte("x"))
	tests := map[string][]byte{
		"no section":                       []byte("\x40"),
		"an unknown section":               described(t, 0x79, nil),
		"a section cut off":                data[:len(data)-1],
		"properties behind the body":       sections(data, described(t, 0x73, amqp.List{})),
		"properties twice":                 sections(described(t, 0x73, amqp.List{}), described(t, 0x73, amqp.List{})),
		"application properties of a list": described(t, 0x74, amqp.List{}),
		"data of a string":                 described(t, 0x75, "x"),
		"a header with a wrong field":      described(t, 0x70, amqp.List{"x"}),
	}
	for name, encoded := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if m, err := amqp.ParseMessage(encoded); err == nil {
				t.Errorf("got %+v", m)
			}
		})
	}
}

func TestOnlyTheRightBodiesHaveAValueOrData(t *testing.T) {
	t.Parallel()
	var m amqp.Message
	if _, err := m.Value(); err == nil || m.Data() != nil {
		t.Error("an empty message has a body")
	}
	if err := m.SetValue("v"); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Value(); err != nil || got != "v" || m.Data() != nil {
		t.Errorf("got %v, %v, data %v", got, err, m.Data())
	}
}

func FuzzDecode(f *testing.F) {
	for _, frame := range frames() {
		encoded, err := amqp.AppendFrame(nil, frame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded[8:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		value, rest, err := amqp.Decode(b)
		if err != nil {
			return
		}
		encoded, err := amqp.Append(nil, value)
		if err != nil {
			t.Fatalf("decoded %#v of %x, which is not encoded again: %v", value, b[:len(b)-len(rest)], err)
		}
		again, rest, err := amqp.Decode(encoded)
		if err != nil || len(rest) > 0 {
			t.Fatalf("%#v was encoded as %x, which is not decoded: %v", value, encoded, err)
		}
		if twice, err := amqp.Append(nil, again); err != nil || !bytes.Equal(twice, encoded) {
			t.Fatalf("%#v changed to %#v", value, again)
		}
	})
}

func FuzzDecodeFrame(f *testing.F) {
	for _, frame := range frames() {
		encoded, err := amqp.AppendFrame(nil, frame)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := amqp.ReadFrame(bytes.NewReader(b), 4096)
		if err != nil {
			return
		}
		if _, err := amqp.AppendFrame(nil, frame); err != nil {
			t.Fatalf("%+v is not encoded again: %v", frame, err)
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte("\x00\x53\x75\xa0\x01x"))
	f.Add([]byte("\x00\x53\x70\xc0\x02\x01\x41\x00\x53\x77\x43"))
	f.Add([]byte("\x00\x53\x73\xc0\x05\x01\xa1\x02id\x00\x53\x74\xc1\x01\x00\x00\x53\x76\x45"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := amqp.ParseMessage(b)
		if err != nil {
			return
		}
		m.Data()
		if _, err := m.DecodeProperties(); err != nil {
			t.Fatalf("checked properties are not decoded: %v", err)
		}
		if _, err := m.DecodeApplicationProperties(); err != nil {
			t.Fatalf("checked application properties are not decoded: %v", err)
		}
		encoded, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := amqp.ParseMessage(encoded); err != nil {
			t.Fatalf("%x was encoded as %x, which is not parsed: %v", b, encoded, err)
		}
	})
}
