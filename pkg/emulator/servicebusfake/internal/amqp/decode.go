package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// maxDepth bounds how deep values nest. Performatives need about five levels; a message body may
// bring its own.
const maxDepth = 64

var errTruncated = errors.New("amqp: the bytes end inside a value")

// Decode reads the first value of b and returns what is left behind it. Binary values share memory
// with b.
func Decode(b []byte) (value any, rest []byte, err error) { return decode(b, 0) }

func decode(b []byte, depth int) (any, []byte, error) {
	if depth > maxDepth {
		return nil, nil, fmt.Errorf("amqp: values nest deeper than %d", maxDepth)
	}
	if len(b) == 0 {
		return nil, nil, errTruncated
	}
	if b[0] == codeDescribed {
		descriptor, b, err := decode(b[1:], depth+1)
		if err != nil {
			return nil, nil, err
		}
		value, b, err := decode(b, depth+1)
		if err != nil {
			return nil, nil, err
		}
		return Described{Descriptor: descriptor, Value: value}, b, nil
	}
	return decodeBody(b[0], b[1:], depth)
}

// decodeBody reads the value behind a constructor. The high half of the constructor says how wide
// the value is (1.2.1).
func decodeBody(code byte, b []byte, depth int) (any, []byte, error) {
	switch code >> 4 {
	case 0x4:
		value, err := decodeEmpty(code)
		return value, b, err
	case 0x5, 0x6, 0x7, 0x8, 0x9:
		width := 1 << (code>>4 - 5)
		if len(b) < width {
			return nil, nil, errTruncated
		}
		value, err := decodeFixed(code, b[:width])
		return value, b[width:], err
	case 0xa, 0xb, 0xc, 0xd, 0xe, 0xf:
		wide := code>>4&1 == 1
		content, rest, err := takeSized(b, wide)
		if err != nil {
			return nil, nil, err
		}
		value, err := decodeSized(code, content, wide, depth)
		return value, rest, err
	default:
		return nil, nil, unknownCode(code)
	}
}

func unknownCode(code byte) error { return fmt.Errorf("amqp: unknown constructor 0x%02x", code) }

func takeSized(b []byte, wide bool) (content, rest []byte, err error) {
	size, b, err := takeLength(b, wide)
	if err != nil {
		return nil, nil, err
	}
	if uint64(size) > uint64(len(b)) {
		return nil, nil, errTruncated
	}
	return b[:size:size], b[size:], nil
}

func takeLength(b []byte, wide bool) (uint32, []byte, error) {
	if !wide {
		if len(b) < 1 {
			return 0, nil, errTruncated
		}
		return uint32(b[0]), b[1:], nil
	}
	if len(b) < 4 {
		return 0, nil, errTruncated
	}
	return binary.BigEndian.Uint32(b), b[4:], nil
}

func decodeEmpty(code byte) (any, error) {
	switch code {
	case codeNull:
		return nil, nil
	case codeTrue:
		return true, nil
	case codeFalse:
		return false, nil
	case codeUint0:
		return uint32(0), nil
	case codeUlong0:
		return uint64(0), nil
	case codeList0:
		return List{}, nil
	default:
		return nil, unknownCode(code)
	}
}

func decodeFixed(code byte, b []byte) (any, error) {
	switch code {
	case codeBoolean:
		if b[0] > 1 {
			return nil, fmt.Errorf("amqp: a boolean of 0x%02x", b[0])
		}
		return b[0] == 1, nil
	case codeUbyte:
		return b[0], nil
	case codeByte:
		return int8(b[0]), nil
	case codeSmallUint:
		return uint32(b[0]), nil
	case codeSmallUlong:
		return uint64(b[0]), nil
	case codeSmallInt:
		return int32(int8(b[0])), nil
	case codeSmallLong:
		return int64(int8(b[0])), nil
	case codeUshort:
		return binary.BigEndian.Uint16(b), nil
	case codeShort:
		return int16(binary.BigEndian.Uint16(b)), nil
	case codeUint:
		return binary.BigEndian.Uint32(b), nil
	case codeInt:
		return int32(binary.BigEndian.Uint32(b)), nil
	case codeFloat:
		return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
	case codeChar:
		return Char(binary.BigEndian.Uint32(b)), nil
	case codeDecimal32:
		return Decimal32(b), nil
	case codeUlong:
		return binary.BigEndian.Uint64(b), nil
	case codeLong:
		return int64(binary.BigEndian.Uint64(b)), nil
	case codeDouble:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case codeTimestamp:
		return Timestamp(binary.BigEndian.Uint64(b)), nil
	case codeDecimal64:
		return Decimal64(b), nil
	case codeDecimal128:
		return Decimal128(b), nil
	case codeUUID:
		return UUID(b), nil
	default:
		return nil, unknownCode(code)
	}
}

func decodeSized(code byte, b []byte, wide bool, depth int) (any, error) {
	switch code {
	case codeBinary8, codeBinary32:
		return b, nil
	case codeString8, codeString32:
		if !utf8.Valid(b) {
			return nil, errors.New("amqp: a string that is not UTF-8")
		}
		return string(b), nil
	case codeSymbol8, codeSymbol32:
		return Symbol(b), nil
	case codeList8, codeList32:
		return decodeList(b, wide, depth)
	case codeMap8, codeMap32:
		return decodeMap(b, wide, depth)
	case codeArray8, codeArray32:
		return decodeArray(b, wide, depth)
	default:
		return nil, unknownCode(code)
	}
}

// takeCount reads how many values follow. Each is taken to fill at least one byte, so that a short
// input cannot ask for a long slice; an array of values without any content that is longer than its
// own bytes is the one legal thing this refuses.
func takeCount(b []byte, wide bool) (int, []byte, error) {
	count, b, err := takeLength(b, wide)
	if err != nil {
		return 0, nil, err
	}
	if uint64(count) > uint64(len(b)) {
		return 0, nil, fmt.Errorf("amqp: %d values in %d bytes", count, len(b))
	}
	return int(count), b, nil
}

func decodeValues(count int, b []byte, depth int) ([]any, error) {
	values := make([]any, count)
	for i := range values {
		var err error
		if values[i], b, err = decode(b, depth+1); err != nil {
			return nil, err
		}
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("amqp: %d bytes behind the last of %d values", len(b), count)
	}
	return values, nil
}

func decodeList(b []byte, wide bool, depth int) (List, error) {
	count, b, err := takeCount(b, wide)
	if err != nil {
		return nil, err
	}
	return decodeValues(count, b, depth)
}

func decodeMap(b []byte, wide bool, depth int) (Map, error) {
	count, b, err := takeCount(b, wide)
	if err != nil {
		return nil, err
	}
	if count%2 != 0 {
		return nil, fmt.Errorf("amqp: a map of %d values, which leaves a key without one", count)
	}
	values, err := decodeValues(count, b, depth)
	if err != nil {
		return nil, err
	}
	m := make(Map, count/2)
	for i := range m {
		m[i] = Pair{Key: values[2*i], Value: values[2*i+1]}
	}
	return m, nil
}

func decodeArray(b []byte, wide bool, depth int) (Array, error) {
	count, b, err := takeCount(b, wide)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return nil, errTruncated
	}
	var descriptor any
	described := b[0] == codeDescribed
	if described {
		if descriptor, b, err = decode(b[1:], depth+1); err != nil {
			return nil, err
		}
		if len(b) == 0 {
			return nil, errTruncated
		}
	}
	code, b := b[0], b[1:]
	array := make(Array, count)
	for i := range array {
		if depth+1 > maxDepth {
			return nil, fmt.Errorf("amqp: values nest deeper than %d", maxDepth)
		}
		if array[i], b, err = decodeBody(code, b, depth+1); err != nil {
			return nil, err
		}
		if described {
			array[i] = Described{Descriptor: descriptor, Value: array[i]}
		}
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("amqp: %d bytes behind the last of %d array values", len(b), count)
	}
	return array, nil
}
