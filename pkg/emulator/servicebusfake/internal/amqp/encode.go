package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Append adds the encoding of a value to dst. It fails only on a Go type that stands for no AMQP
// type, or on an array of mixed types.
func Append(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(dst, codeNull), nil
	case bool:
		if v {
			return append(dst, codeTrue), nil
		}
		return append(dst, codeFalse), nil
	case uint32:
		switch {
		case v == 0:
			return append(dst, codeUint0), nil
		case v <= math.MaxUint8:
			return append(dst, codeSmallUint, byte(v)), nil
		}
	case uint64:
		switch {
		case v == 0:
			return append(dst, codeUlong0), nil
		case v <= math.MaxUint8:
			return append(dst, codeSmallUlong, byte(v)), nil
		}
	case int32:
		if v == int32(int8(v)) {
			return append(dst, codeSmallInt, byte(v)), nil
		}
	case int64:
		if v == int64(int8(v)) {
			return append(dst, codeSmallLong, byte(v)), nil
		}
	case []byte:
		return appendSized(dst, codeBinary8, codeBinary32, v), nil
	case string:
		return appendSized(dst, codeString8, codeString32, v), nil
	case Symbol:
		return appendSized(dst, codeSymbol8, codeSymbol32, v), nil
	case List:
		if len(v) == 0 {
			return append(dst, codeList0), nil
		}
	case Described:
		dst, err := Append(append(dst, codeDescribed), v.Descriptor)
		if err != nil {
			return nil, err
		}
		return Append(dst, v.Value)
	}
	code, err := wideCode(value)
	if err != nil {
		return nil, err
	}
	return appendBody(append(dst, code), value)
}

func appendSized[T ~string | ~[]byte](dst []byte, narrow, wide byte, v T) []byte {
	if len(v) <= math.MaxUint8 {
		return append(append(dst, narrow, byte(len(v))), v...)
	}
	return append(binary.BigEndian.AppendUint32(append(dst, wide), uint32(len(v))), v...)
}

// wideCode is the constructor that holds every value of the type, which is what the values of an
// array must share.
func wideCode(value any) (byte, error) {
	switch value.(type) {
	case nil:
		return codeNull, nil
	case bool:
		return codeBoolean, nil
	case uint8:
		return codeUbyte, nil
	case int8:
		return codeByte, nil
	case uint16:
		return codeUshort, nil
	case int16:
		return codeShort, nil
	case uint32:
		return codeUint, nil
	case int32:
		return codeInt, nil
	case float32:
		return codeFloat, nil
	case Char:
		return codeChar, nil
	case Decimal32:
		return codeDecimal32, nil
	case uint64:
		return codeUlong, nil
	case int64:
		return codeLong, nil
	case float64:
		return codeDouble, nil
	case Timestamp:
		return codeTimestamp, nil
	case Decimal64:
		return codeDecimal64, nil
	case Decimal128:
		return codeDecimal128, nil
	case UUID:
		return codeUUID, nil
	case []byte:
		return codeBinary32, nil
	case string:
		return codeString32, nil
	case Symbol:
		return codeSymbol32, nil
	case List:
		return codeList32, nil
	case Map:
		return codeMap32, nil
	case Array:
		return codeArray32, nil
	default:
		return 0, fmt.Errorf("amqp: no AMQP type for a %T", value)
	}
}

// appendBody adds what stands behind the constructor that wideCode names.
func appendBody(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return dst, nil
	case bool:
		if v {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case uint8:
		return append(dst, v), nil
	case int8:
		return append(dst, byte(v)), nil
	case uint16:
		return binary.BigEndian.AppendUint16(dst, v), nil
	case int16:
		return binary.BigEndian.AppendUint16(dst, uint16(v)), nil
	case uint32:
		return binary.BigEndian.AppendUint32(dst, v), nil
	case int32:
		return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
	case float32:
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(v)), nil
	case Char:
		return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
	case uint64:
		return binary.BigEndian.AppendUint64(dst, v), nil
	case int64:
		return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
	case float64:
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), nil
	case Timestamp:
		return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
	case Decimal32:
		return append(dst, v[:]...), nil
	case Decimal64:
		return append(dst, v[:]...), nil
	case Decimal128:
		return append(dst, v[:]...), nil
	case UUID:
		return append(dst, v[:]...), nil
	case []byte:
		return append(binary.BigEndian.AppendUint32(dst, uint32(len(v))), v...), nil
	case string:
		return append(binary.BigEndian.AppendUint32(dst, uint32(len(v))), v...), nil
	case Symbol:
		return append(binary.BigEndian.AppendUint32(dst, uint32(len(v))), v...), nil
	case List:
		return appendCompound(dst, len(v), func(dst []byte) ([]byte, error) { return appendAll(dst, v) })
	case Map:
		return appendCompound(dst, 2*len(v), func(dst []byte) ([]byte, error) { return appendPairs(dst, v) })
	case Array:
		return appendCompound(dst, len(v), func(dst []byte) ([]byte, error) { return appendElements(dst, v) })
	default:
		return nil, fmt.Errorf("amqp: no AMQP type for a %T", value)
	}
}

// appendCompound adds size and count, which stand before the content but are known only behind it.
func appendCompound(dst []byte, count int, content func([]byte) ([]byte, error)) ([]byte, error) {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(append(dst, 0, 0, 0, 0), uint32(count))
	dst, err := content(dst)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}

func appendAll(dst []byte, values []any) (_ []byte, err error) {
	for _, value := range values {
		if dst, err = Append(dst, value); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func appendPairs(dst []byte, m Map) (_ []byte, err error) {
	for _, pair := range m {
		if dst, err = Append(dst, pair.Key); err != nil {
			return nil, err
		}
		if dst, err = Append(dst, pair.Value); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// appendElements adds the constructor that all elements share, then their contents. An empty array
// has no type to tell, so it is one of nulls.
func appendElements(dst []byte, array Array) (_ []byte, err error) {
	if len(array) == 0 {
		return append(dst, codeNull), nil
	}
	first := array[0]
	described, isDescribed := first.(Described)
	if isDescribed {
		if dst, err = Append(append(dst, codeDescribed), described.Descriptor); err != nil {
			return nil, err
		}
		first = described.Value
	}
	code, err := wideCode(first)
	if err != nil {
		return nil, err
	}
	dst = append(dst, code)
	for _, element := range array {
		if isDescribed {
			next, ok := element.(Described)
			if !ok {
				return nil, fmt.Errorf("amqp: an array of described values and a %T", element)
			}
			element = next.Value
		}
		if other, err := wideCode(element); err != nil || other != code {
			return nil, fmt.Errorf("amqp: an array of %T and %T", first, element)
		}
		if dst, err = appendBody(dst, element); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
