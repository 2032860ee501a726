package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/feedscale/feedscale/pkg/state"
)

// History implements state.Store.
func (s *Store) History(ctx context.Context, processor string, from, to time.Time) (samples []state.Sample, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		samples, err = between(tx.Bucket(historyBucket), processor, from, to, func(s state.Sample) time.Time { return s.Time })
		return err
	})
	return samples, s.failed("read the history", processor, err)
}

// Summaries implements state.Store.
func (s *Store) Summaries(ctx context.Context, processor string, from, to time.Time) (hours []state.Summary, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		hours, err = between(tx.Bucket(historyBucket).Bucket(summariesBucket), processor, from, to, func(s state.Summary) time.Time { return s.Hour })
		return err
	})
	return hours, s.failed("read the history", processor, err)
}

// between returns what a bucket has of a processor with from <= time < to, by the time of each.
func between[T any](bucket *bolt.Bucket, processor string, from, to time.Time, timeOf func(T) time.Time) (found []T, err error) {
	prefix, cursor := keyPrefix(processor), bucket.Cursor()
	for key, value := cursor.Seek(sampleKey(processor, from)); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
		var one T
		if err := json.Unmarshal(value, &one); err != nil {
			return nil, fmt.Errorf("read the sample of the history under the key %q: %w", key, err)
		}
		switch at := timeOf(one); {
		case !bytes.Equal(key, sampleKey(processor, at)):
			return nil, fmt.Errorf("the history has a sample of %s under the key %q", at, key)
		case !at.Before(to):
			return found, nil
		case !at.Before(from):
			found = append(found, one)
		}
	}
	return found, nil
}

// Prune implements state.Store. The file does not become smaller: bbolt reuses the pages of what
// was removed.
func (s *Store) Prune(ctx context.Context, processor string, before time.Time) error {
	err := s.batch(ctx, func(tx *bolt.Tx) error {
		prefix, end := keyPrefix(processor), sampleKey(processor, before.Truncate(time.Hour))
		history := tx.Bucket(historyBucket)
		if err := prune(history.Bucket(summariesBucket).Cursor(), prefix, end); err != nil {
			return err
		}
		return prune(history.Cursor(), prefix, end)
	})
	return s.failed("prune the history", processor, err)
}

// prune removes the keys from begin to end.
func prune(cursor *bolt.Cursor, begin, end []byte) error {
	// A cursor may skip a key after a deletion, so it seeks each time.
	for {
		key, _ := cursor.Seek(begin)
		if key == nil || bytes.Compare(key, end) >= 0 {
			return nil
		}
		if err := cursor.Delete(); err != nil {
			return err
		}
	}
}
