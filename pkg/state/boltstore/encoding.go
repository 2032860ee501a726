package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// numberBytes is the size of the version in front of a State, and of the sequence or time at the
// end of a key. All are big-endian, so that bbolt sorts them as numbers.
const numberBytes = 8

// A value of the states bucket is its version, which increases with every commit to the file, and the
// encoded State.
func versionOf(number uint64) state.Version { return state.Version(strconv.FormatUint(number, 10)) }

// readVersion returns the version in a value of the states bucket; "" if there is no value.
func readVersion(value []byte) (state.Version, error) {
	if value == nil {
		return "", nil
	}
	if len(value) < numberBytes {
		return "", errors.New("the stored state is cut off")
	}
	return versionOf(binary.BigEndian.Uint64(value)), nil
}

// readState returns what is in a value of the states bucket; the zero Entry if there is no value. It copies
// the value, since bbolt's memory must not be used after the transaction. explain is that of state.Decode.
func readState(value []byte, explain func(error) error) (state.Entry, error) {
	version, err := readVersion(value)
	if err != nil || version == "" {
		return state.Entry{}, err
	}
	stored, err := state.Decode(bytes.Clone(value[numberBytes:]), explain)
	stored.Version = version
	return stored, err
}

// keyPrefix returns the prefix of the keys of a processor's events and samples. No name contains a
// zero byte, so no prefix is the beginning of another.
func keyPrefix(processor string) []byte { return append([]byte(processor), 0) }

// eventKey returns the key of an event, by which the outbox is sorted by processor and oldest
// first.
func eventKey(processor string, sequence int64) []byte {
	return binary.BigEndian.AppendUint64(keyPrefix(processor), uint64(sequence))
}

// sampleKey returns the key of a sample, by which the history is sorted by processor and oldest
// first, times before 1970 included. Samples of one interval have the same key.
func sampleKey(processor string, at time.Time) []byte {
	const signBit = 1 << 63
	return binary.BigEndian.AppendUint64(keyPrefix(processor), uint64(at.Truncate(state.SampleInterval).Unix())^signBit)
}

// readEvent copies the body, since bbolt's memory must not be used after the transaction.
func readEvent(key, body []byte) (state.Event, error) {
	end := len(key) - numberBytes - 1
	if end < 0 || key[end] != 0 {
		return state.Event{}, fmt.Errorf("the outbox has the key %q, which names no event", key)
	}
	return state.Event{
		Processor: string(key[:end]),
		Sequence:  int64(binary.BigEndian.Uint64(key[end+1:])),
		Body:      bytes.Clone(body),
	}, nil
}
