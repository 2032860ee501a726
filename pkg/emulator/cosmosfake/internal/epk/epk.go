// Package epk computes effective partition keys: the position of a logical partition in the key
// space that physical partitions divide between them. It follows version 2 of the service's
// partition key hash, so that clients which compute positions themselves agree with the stand-in
// about the owner of a document.
//
// The package knows nothing of documents or requests. Start reading at Of.
//
// The package is internal to the program: its API may change in any release.
package epk

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strings"
)

// The key space runs from Min to Max. The hash leaves the two top bits clear, so that every
// position sorts below Max.
const (
	Min = ""
	Max = "FF"
)

// Undefined stands for a partition key value that the document does not have; it differs from null.
type Undefined struct{}

// Of returns the position of a partition key, in upper-case hexadecimal. A component is nil, a
// bool, a float64, a string or Undefined. With hierarchical false the components are hashed
// together, into 32 digits; with hierarchical true each one adds 32 digits, so that keys with a
// common beginning are neighbours.
func Of(components []any, hierarchical bool) string {
	if !hierarchical {
		var input []byte
		for _, c := range components {
			input = appendComponent(input, c)
		}
		return digits(input)
	}
	var b strings.Builder
	for _, c := range components {
		b.WriteString(digits(appendComponent(nil, c)))
	}
	return b.String()
}

// Compare orders two positions. A position that is the beginning of the other counts as filled up
// with zeros, since containers with hierarchical keys have bounds of several lengths.
func Compare(a, b string) int {
	n := min(len(a), len(b))
	if c := strings.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	switch {
	case strings.Trim(a[n:], "0") != "":
		return 1
	case strings.Trim(b[n:], "0") != "":
		return -1
	}
	return 0
}

// Bounds returns the n+1 bounds that divide the key space into n equal parts.
func Bounds(n int) []string {
	bounds := []string{Min}
	for i := 1; i < n; i++ {
		at := new(big.Int).Div(new(big.Int).Mul(space(), big.NewInt(int64(i))), big.NewInt(int64(n)))
		bounds = append(bounds, format(at.Sub(at, big.NewInt(1))))
	}
	return append(bounds, Max)
}

// Middle returns the bound that halves the part of the key space between two bounds; ok is false if
// the part is too narrow to be halved.
func Middle(low, high string) (middle string, ok bool) {
	at := new(big.Int).Add(start(low), start(high))
	at.Rsh(at, 1)
	middle = format(at.Sub(at, big.NewInt(1)))
	return middle, Compare(low, middle) < 0 && Compare(middle, high) < 0
}

// space is the number of positions: 126 bits.
func space() *big.Int { return new(big.Int).Lsh(big.NewInt(1), 126) }

func format(at *big.Int) string {
	if at.Sign() < 0 {
		return Min
	}
	var b [16]byte
	return strings.ToUpper(hex.EncodeToString(at.FillBytes(b[:])))
}

// start reads the first 32 digits of a bound, as the round number that the service's bounds are one
// below. A bound that is no hexadecimal number counts as the start of the space.
func start(bound string) *big.Int {
	switch bound {
	case Min:
		return new(big.Int)
	case Max:
		return space()
	}
	first := (bound + strings.Repeat("0", 32))[:32]
	at, ok := new(big.Int).SetString(first, 16)
	if !ok {
		return new(big.Int)
	}
	return at.Add(at, big.NewInt(1))
}

// The type marks that precede a component in the hash input.
const (
	markUndefined = 0x00
	markNull      = 0x01
	markFalse     = 0x02
	markTrue      = 0x03
	markNumber    = 0x05
	markString    = 0x08
	endOfString   = 0xFF
)

func appendComponent(input []byte, c any) []byte {
	switch v := c.(type) {
	case nil:
		return append(input, markNull)
	case bool:
		if v {
			return append(input, markTrue)
		}
		return append(input, markFalse)
	case float64:
		return binary.LittleEndian.AppendUint64(append(input, markNumber), math.Float64bits(v))
	case string:
		return append(append(append(input, markString), v...), endOfString)
	default:
		return append(input, markUndefined)
	}
}

func digits(input []byte) string {
	low, high := murmur3(input)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], high)
	binary.BigEndian.PutUint64(b[8:], low)
	b[0] &= 0x3F
	return strings.ToUpper(hex.EncodeToString(b[:]))
}
