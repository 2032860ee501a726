package amqp_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

func TestAValueComesBackInItsType(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	values := map[string]any{
		"null": nil, "true": true, "false": false,
		"ubyte": uint8(255), "ushort": uint16(65535), "uint 0": uint32(0), "small uint": uint32(255), "uint": uint32(256),
		"ulong 0": uint64(0), "small ulong": uint64(255), "ulong": uint64(1 << 40),
		"byte": int8(-128), "short": int16(-300), "small int": int32(-1), "int": int32(128), "small long": int64(-128), "long": int64(-129),
		"float": float32(1.5), "double": -2.25, "char": amqp.Char('ü'), "timestamp": amqp.Timestamp(-1),
		"decimal32": amqp.Decimal32{1}, "decimal64": amqp.Decimal64{2}, "decimal128": amqp.Decimal128{3}, "uuid": amqp.UUID{4},
		"binary": []byte("b"), "long binary": []byte(long), "string": "ü", "long string": long, "symbol": amqp.Symbol("s"), "long symbol": amqp.Symbol(long),
		"empty list": amqp.List{}, "list": amqp.List{int32(1), "a", nil}, "empty map": amqp.Map{}, "map": amqp.Map{{Key: "b", Value: int64(1)}, {Key: "a", Value: nil}},
		"array of longs":     amqp.Array{int64(1), int64(-1 << 40)},
		"array of booleans":  amqp.Array{true, false},
		"array of strings":   amqp.Array{"a", long},
		"array of lists":     amqp.Array{amqp.List{int32(1)}, amqp.List{}},
		"array of described": amqp.Array{amqp.Described{Descriptor: uint64(1), Value: "a"}, amqp.Described{Descriptor: uint64(1), Value: "b"}},
		"empty array":        amqp.Array{},
		"described":          amqp.Described{Descriptor: amqp.Symbol("d"), Value: amqp.List{"a"}},
	}
	for name, want := range values {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			encoded, err := amqp.Append([]byte("before"), want)
			if err != nil {
				t.Fatal(err)
			}
			got, rest, err := amqp.Decode(append(encoded[len("before"):], "behind"...))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) || string(rest) != "behind" {
				t.Errorf("got %#v and %q, want %#v", got, rest, want)
			}
		})
	}
}

func TestWhatHasNoTypeIsNotEncoded(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"a Go int": 1, "within a list": amqp.List{1}, "as a key": amqp.Map{{Key: 1}}, "an array of two types": amqp.Array{int32(1), "a"},
		"an array half described": amqp.Array{amqp.Described{Descriptor: "d", Value: "a"}, "b"},
	} {
		if _, err := amqp.Append(nil, value); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
}

func TestBrokenBytesAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"nothing":                                "",
		"an unknown constructor":                 "\x3f",
		"an unknown fixed constructor":           "\x57\x00",
		"an unknown variable constructor":        "\xa2\x00",
		"an integer cut off":                     "\x71\x00\x00",
		"a string longer than the bytes":         "\xa1\x05abc",
		"a string with a huge length":            "\xb1\xff\xff\xff\xffabc",
		"a string that is not UTF-8":             "\xa1\x01\xff",
		"a boolean of neither":                   "\x56\x02",
		"a list with more values than bytes":     "\xd0\x00\x00\x00\x05\xff\xff\xff\xff\x40",
		"a list with bytes left over":            "\xc0\x03\x01\x40\x40",
		"a map with an odd count":                "\xc1\x02\x01\x40",
		"an array of endless nulls":              "\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40",
		"an array without a constructor":         "\xe0\x01\x00",
		"an array cut off behind its descriptor": "\xe0\x04\x01\x00\x53\x01",
		"a descriptor without a value":           "\x00\x53\x01",
		"lists nested too deep":                  strings.Repeat("\xc0\x7f\x01", 40) + strings.Repeat("\x00", 200),
		"descriptors nested too deep":            strings.Repeat("\x00", 1000),
	}
	for name, bytes := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if value, _, err := amqp.Decode([]byte(bytes)); err == nil {
				t.Errorf("got %#v", value)
			}
		})
	}
}

func TestAMapFindsStringsAndSymbols(t *testing.T) {
	t.Parallel()
	m := amqp.Map{{Key: "a", Value: 1}, {Key: amqp.Symbol("b"), Value: 2}, {Key: int32(3), Value: 3}}
	if m.Get("a") != 1 || m.Get("b") != 2 || m.Get("c") != nil {
		t.Errorf("got %v, %v, %v", m.Get("a"), m.Get("b"), m.Get("c"))
	}
	changed := m.With("b", 4).With(amqp.Symbol("c"), 5)
	if changed.Get("b") != 4 || changed.Get("c") != 5 || m.Get("b") != 2 || len(changed) != 4 {
		t.Errorf("got %v from %v", changed, m)
	}
}

func TestATimestampIsInMilliseconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_999_999, time.UTC)
	if got := amqp.NewTimestamp(at).Time(); !got.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("got %v", got)
	}
}
