// Package boltstore is a state.Store in one local file, for a single process: `run`, `poll` and
// `demo` without an Azure account.
//
// It knows bbolt and the file system, and nothing of what a State means. Start with store.go (State
// and outbox) and history.go; open.go opens the file, and refuses one that is in use, damaged or
// not a state file.
//
// The package is internal to the program: its API may change in any release.
package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/feedscale/feedscale/pkg/state"
)

// Store is a state.Store in one bbolt file.
type Store struct {
	db *bolt.DB
}

var _ state.Store = (*Store)(nil)

// plainBytes is the greatest length, in bytes, of a State that is not compressed.
const plainBytes = 2 << 10

// within runs a transaction, unless ctx has ended. run is View or Batch of the file: with Batch, concurrent writes
// share one to the disk.
func within(ctx context.Context, run func(func(*bolt.Tx) error) error, do func(*bolt.Tx) error) error {
	return run(func(tx *bolt.Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return do(tx)
	})
}

// Load implements state.Store.
func (s *Store) Load(ctx context.Context, processor string) (state.Entry, error) {
	var loaded state.Entry
	err := within(ctx, s.db.View, func(tx *bolt.Tx) (err error) {
		if loaded, err = readState(tx.Bucket(statesBucket).Get([]byte(processor))); err == nil {
			loaded.Outbox, err = outbox(tx, keyPrefix(processor))
		}
		return err
	})
	if err != nil {
		return state.Entry{}, s.failed("load", processor, err)
	}
	return loaded, nil
}

// Commit implements state.Store. Once it has returned, what it stored survives a crash of the
// process and of the machine.
func (s *Store) Commit(ctx context.Context, version state.Version, next state.State, event *state.Event) error {
	write, err := state.NewWrite(next, event, plainBytes)
	if err == nil {
		err = within(ctx, s.db.Batch, func(tx *bolt.Tx) error { return commit(tx, version, next, event, write) })
	}
	return s.failed("commit", next.Processor, err)
}

func commit(tx *bolt.Tx, version state.Version, next state.State, event *state.Event, write state.Write) error {
	outbox, history := tx.Bucket(outboxBucket), historyOf(tx)
	history.FillPercent = historyFillRatio
	_, err := replace(tx, next.Processor, version, write.State)
	if err == nil && event != nil {
		key := eventKey(event.Processor, event.Sequence)
		if outbox.Get(key) != nil {
			return state.ErrConflict // another tick has put it there
		}
		err = outbox.Put(key, event.Body)
	}
	if err == nil && write.Summary != nil {
		err = summariesOf(tx).Put(sampleKey(next.Processor, next.Finished.Hour), write.Summary)
	}
	if err == nil && write.Sample != nil {
		err = history.Put(sampleKey(next.Processor, next.AttemptedAt), write.Sample)
	}
	return err
}

// replace replaces what is stored under a name, and returns the new version; without content, it removes it.
func replace(tx *bolt.Tx, name string, from state.Version, content []byte) (state.Version, error) {
	states := tx.Bucket(statesBucket)
	stored, err := readVersion(states.Get([]byte(name)))
	switch {
	case err != nil:
		return "", err
	case stored != from:
		return "", state.ErrConflict
	case content == nil:
		return "", states.Delete([]byte(name))
	}
	number, err := states.NextSequence()
	if err != nil {
		return "", err
	}
	value := append(binary.BigEndian.AppendUint64(nil, number), content...)
	return state.Version(value[:numberBytes]), states.Put([]byte(name), value)
}

// Documents implements state.Store.
func (s *Store) Documents(ctx context.Context, prefix string) (found []state.Document, err error) {
	err = within(ctx, s.db.View, func(tx *bolt.Tx) error {
		cursor := tx.Bucket(statesBucket).Cursor()
		for name, value := cursor.Seek([]byte(prefix)); bytes.HasPrefix(name, []byte(prefix)); name, value = cursor.Next() {
			version, err := readVersion(value)
			if err != nil {
				return err
			}
			found = append(found, state.Document{Name: string(name), Version: version, Text: bytes.Clone(value[numberBytes:])})
		}
		return nil
	})
	return found, s.failed("load", prefix, err)
}

// Put implements state.Store.
func (s *Store) Put(ctx context.Context, d state.Document) (version state.Version, err error) {
	err = within(ctx, s.db.Batch, func(tx *bolt.Tx) (err error) {
		version, err = replace(tx, d.Name, d.Version, d.Text)
		return err
	})
	return version, s.failed("commit", d.Name, err)
}

// Outbox implements state.Store.
func (s *Store) Outbox(ctx context.Context, except []string) (events []state.Event, err error) {
	err = within(ctx, s.db.View, func(tx *bolt.Tx) error {
		events, err = outbox(tx, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("state file %s: read the outbox: %w", s.db.Path(), err)
	}
	return slices.DeleteFunc(events, func(e state.Event) bool { return slices.Contains(except, e.Processor) }), nil
}

// outbox reads the events whose keys have a prefix.
func outbox(tx *bolt.Tx, prefix []byte) (events []state.Event, err error) {
	cursor := tx.Bucket(outboxBucket).Cursor()
	for key, body := cursor.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, body = cursor.Next() {
		event, err := readEvent(key, body)
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	return events, nil
}

// Remove implements state.Store.
func (s *Store) Remove(ctx context.Context, processor string, sequences ...int64) error {
	err := within(ctx, s.db.Batch, func(tx *bolt.Tx) error {
		outbox := tx.Bucket(outboxBucket)
		for _, sequence := range sequences {
			if err := outbox.Delete(eventKey(processor, sequence)); err != nil {
				return err
			}
		}
		return nil
	})
	return s.failed(fmt.Sprintf("remove events %d", sequences), processor, err)
}

// Close releases the file for another process.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close state file: %w", err)
	}
	return nil
}

// failed returns the error of an operation, nil where it did not fail.
func (s *Store) failed(what, processor string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("state file %s: %s of processor %q: %w", s.db.Path(), what, processor, err)
}

// numberBytes is the size of the version in front of a State, and of the sequence or time at the
// end of a key. All are big-endian, so that bbolt sorts them as numbers.
const numberBytes = 8

// readVersion returns the version in a value of the states bucket; "" if there is no value. A value is its
// version, which increases with every commit to the file, and the encoded State.
func readVersion(value []byte) (state.Version, error) {
	if value == nil {
		return "", nil
	}
	if len(value) < numberBytes {
		return "", errors.New("the stored state is cut off")
	}
	return state.Version(value[:numberBytes]), nil
}

// readState returns what is in a value of the states bucket; the zero Entry if there is no value. It copies
// the value, since bbolt's memory must not be used after the transaction.
func readState(value []byte) (state.Entry, error) {
	version, err := readVersion(value)
	if err != nil || version == "" {
		return state.Entry{}, err
	}
	stored, err := state.Decode(bytes.Clone(value[numberBytes:]))
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
