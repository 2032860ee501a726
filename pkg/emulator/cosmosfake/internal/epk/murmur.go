package epk

import (
	"encoding/binary"
	"math/bits"
)

const (
	murmurC1 = 0x87c37b91114253d5
	murmurC2 = 0x4cf5ad432745937f
)

// murmur3 is MurmurHash3 x64 128 with seed zero.
func murmur3(data []byte) (low, high uint64) {
	length := uint64(len(data))
	for len(data) >= 16 {
		low ^= scrambleLow(binary.LittleEndian.Uint64(data))
		low = bits.RotateLeft64(low, 27) + high
		low = low*5 + 0x52dce729
		high ^= scrambleHigh(binary.LittleEndian.Uint64(data[8:]))
		high = bits.RotateLeft64(high, 31) + low
		high = high*5 + 0x38495ab5
		data = data[16:]
	}
	var tail [16]byte
	copy(tail[:], data)
	high ^= scrambleHigh(binary.LittleEndian.Uint64(tail[8:]))
	low ^= scrambleLow(binary.LittleEndian.Uint64(tail[:]))

	low ^= length
	high ^= length
	low += high
	high += low
	low, high = avalanche(low), avalanche(high)
	low += high
	high += low
	return low, high
}

func scrambleLow(k uint64) uint64  { return bits.RotateLeft64(k*murmurC1, 31) * murmurC2 }
func scrambleHigh(k uint64) uint64 { return bits.RotateLeft64(k*murmurC2, 33) * murmurC1 }

func avalanche(v uint64) uint64 {
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	v *= 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}
