package amqp

import "time"

// An AMQP value is held in the Go type that says which AMQP type it is, so that a value that was
// decoded is encoded as the same type again:
//
//	null nil             boolean bool        ubyte..ulong uint8..uint64   byte..long int8..int64
//	float float32        double float64      binary []byte                string string
//	symbol Symbol        uuid UUID           timestamp Timestamp          char Char
//	list List            map Map             array Array                  described Described
//	decimal32, 64, 128   Decimal32, Decimal64, Decimal128
type (
	// Symbol is a name from a constrained domain, such as an error condition. ASCII.
	Symbol string
	// UUID is in the byte order of RFC 4122.
	UUID [16]byte
	// Timestamp is in milliseconds since the Unix epoch.
	Timestamp int64
	// Char is one Unicode code point.
	Char rune
	// Decimal32 is an IEEE 754 decimal, kept as its bytes.
	Decimal32 [4]byte
	// Decimal64 is an IEEE 754 decimal, kept as its bytes.
	Decimal64 [8]byte
	// Decimal128 is an IEEE 754 decimal, kept as its bytes.
	Decimal128 [16]byte
	// List is a sequence of values of any types.
	List []any
	// Array is a sequence of values of one and the same type.
	Array []any
	// Map keeps the order of its pairs, since the order is the sender's to choose.
	Map []Pair
	// Pair is one entry of a Map.
	Pair struct{ Key, Value any }
	// Described is a value with a descriptor that says what it means.
	Described struct{ Descriptor, Value any }
)

// NewTimestamp is t to the millisecond; what is finer is cut off.
func NewTimestamp(t time.Time) Timestamp { return Timestamp(t.UnixMilli()) }

// Time is the instant in UTC.
func (t Timestamp) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Get is the value under a key that is a string or a symbol, or nil: clients write the keys of one
// and the same map as either.
func (m Map) Get(key string) any {
	for _, pair := range m {
		if isKey(pair.Key, key) {
			return pair.Value
		}
	}
	return nil
}

// With is the map with the key set to the value: in place where the key is there, else as a last
// pair with the key as given.
func (m Map) With(key, value any) Map {
	out := make(Map, len(m), len(m)+1)
	copy(out, m)
	name := keyName(key)
	for i := range out {
		if isKey(out[i].Key, name) {
			out[i].Value = value
			return out
		}
	}
	return append(out, Pair{Key: key, Value: value})
}

func isKey(key any, name string) bool {
	switch key := key.(type) {
	case string:
		return key == name
	case Symbol:
		return string(key) == name
	default:
		return false
	}
}

func keyName(key any) string {
	if symbol, ok := key.(Symbol); ok {
		return string(symbol)
	}
	name, _ := key.(string)
	return name
}
