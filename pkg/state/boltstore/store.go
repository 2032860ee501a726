package boltstore

import (
	"bytes"
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/feedscale/feedscale/pkg/state"
)

// Store is a state.Store in one bbolt file.
type Store struct {
	db *bolt.DB
}

var _ state.Store = (*Store)(nil)

// plainBytes is the most that a State has, in bytes, which is not compressed.
const plainBytes = 2 << 10

// LoadPacked implements state.Store.
func (s *Store) LoadPacked(ctx context.Context, processor string) (state.Record, error) {
	var loaded state.Record
	err := s.db.View(func(tx *bolt.Tx) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		loaded, err = readState(tx.Bucket(statesBucket).Get([]byte(processor)))
		if err != nil {
			return err
		}
		prefix := keyPrefix(processor)
		cursor := tx.Bucket(outboxBucket).Cursor()
		for key, body := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, body = cursor.Next() {
			event, err := readEvent(key, body)
			if err != nil {
				return err
			}
			loaded.Outbox = append(loaded.Outbox, event)
		}
		return nil
	})
	if err != nil {
		return state.Record{}, s.failed("load", processor, err)
	}
	loaded.Explain(func(err error) error { return s.failed("load", processor, unreadable(err)) })
	return loaded, nil
}

// Commit implements state.Store. Once it has returned, what it stored survives a crash of the
// process and of the machine.
func (s *Store) Commit(ctx context.Context, version state.Version, next state.State, event *state.Event) error {
	if err := s.commit(ctx, version, next, event); err != nil {
		return s.failed("commit", next.Processor, err)
	}
	return nil
}

func (s *Store) commit(ctx context.Context, version state.Version, next state.State, event *state.Event) error {
	if event != nil && (event.Processor != next.Processor || event.Sequence < 1 || event.Sequence > maxSequence) {
		return fmt.Errorf("event %d of processor %q cannot be committed with it", event.Sequence, event.Processor)
	}
	encoded, err := state.Encode(next, plainBytes)
	if err != nil {
		return err
	}
	sample, err := next.Sample().Encode()
	if err != nil {
		return err
	}
	// Concurrent commits share one write to the disk.
	return s.db.Batch(func(tx *bolt.Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		states := tx.Bucket(statesBucket)
		stored, err := readVersion(states.Get([]byte(next.Processor)))
		if err != nil {
			return err
		}
		if stored != version {
			return state.ErrConflict
		}
		if event != nil {
			if err := addEvent(tx.Bucket(outboxBucket), *event); err != nil {
				return err
			}
		}
		if !next.AttemptedAt.IsZero() {
			history := tx.Bucket(historyBucket)
			history.FillPercent = historyFillRatio
			if err := history.Put(sampleKey(next.Processor, next.AttemptedAt), sample); err != nil {
				return err
			}
		}
		number, err := states.NextSequence()
		if err != nil {
			return err
		}
		return states.Put([]byte(next.Processor), appendState(number, encoded))
	})
}

// addEvent adds an event. It never replaces one, which another tick has put there.
func addEvent(outbox *bolt.Bucket, event state.Event) error {
	key := eventKey(event.Processor, event.Sequence)
	if outbox.Get(key) != nil {
		return state.ErrConflict
	}
	return outbox.Put(key, event.Body)
}

// Outbox implements state.Store.
func (s *Store) Outbox(ctx context.Context, except []string) ([]state.Event, error) {
	excepted := make(map[string]bool, len(except))
	for _, processor := range except {
		excepted[processor] = true
	}
	var events []state.Event
	err := s.db.View(func(tx *bolt.Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return tx.Bucket(outboxBucket).ForEach(func(key, body []byte) error {
			event, err := readEvent(key, body)
			if err == nil && !excepted[event.Processor] {
				events = append(events, event)
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("state file %s: read the outbox: %w", s.db.Path(), err)
	}
	return events, nil
}

// Remove implements state.Store.
func (s *Store) Remove(ctx context.Context, processor string, sequences ...int64) error {
	err := s.db.Batch(func(tx *bolt.Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		outbox := tx.Bucket(outboxBucket)
		for _, sequence := range sequences {
			if err := outbox.Delete(eventKey(processor, sequence)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s.failed(fmt.Sprintf("remove events %d", sequences), processor, err)
	}
	return nil
}

// Close releases the file for another process.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close state file: %w", err)
	}
	return nil
}

func (s *Store) failed(what, processor string, err error) error {
	return fmt.Errorf("state file %s: %s of processor %q: %w", s.db.Path(), what, processor, err)
}
