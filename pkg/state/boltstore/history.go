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
func (s *Store) History(ctx context.Context, processor string, from, to time.Time) ([]state.Sample, error) {
	return between[state.Sample](ctx, s, historyOf, processor, from, to)
}

// Summaries implements state.Store.
func (s *Store) Summaries(ctx context.Context, processor string, from, to time.Time) ([]state.Summary, error) {
	return between[state.Summary](ctx, s, summariesOf, processor, from, to)
}

func historyOf(tx *bolt.Tx) *bolt.Bucket   { return tx.Bucket(historyBucket) }
func summariesOf(tx *bolt.Tx) *bolt.Bucket { return historyOf(tx).Bucket(summariesBucket) }

// between returns what a bucket has of a processor with from <= time < to, by time.
func between[T state.HistoryEntry](ctx context.Context, s *Store, bucket func(*bolt.Tx) *bolt.Bucket, processor string, from, to time.Time) (found []T, err error) {
	err = within(ctx, s.db.View, func(tx *bolt.Tx) error {
		prefix, cursor := keyPrefix(processor), bucket(tx).Cursor()
		for key, value := cursor.Seek(sampleKey(processor, from)); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			var one T
			if err := json.Unmarshal(value, &one); err != nil {
				return fmt.Errorf("read the sample of the history under the key %q: %w", key, err)
			}
			switch at := one.At(); {
			case !bytes.Equal(key, sampleKey(processor, at)):
				return fmt.Errorf("the history has a sample of %s under the key %q", at, key)
			case !at.Before(to):
				return nil
			case !at.Before(from):
				found = append(found, one)
			}
		}
		return nil
	})
	return found, s.failed("read the history", processor, err)
}

// Prune implements state.Store. The file does not become smaller: bbolt reuses the pages of what
// was removed.
func (s *Store) Prune(ctx context.Context, processor string, before time.Time) error {
	err := within(ctx, s.db.Batch, func(tx *bolt.Tx) error {
		prefix, end := keyPrefix(processor), sampleKey(processor, before.Truncate(time.Hour))
		for _, bucket := range []*bolt.Bucket{summariesOf(tx), historyOf(tx)} {
			// A cursor may skip a key after a deletion, so it seeks each time.
			cursor := bucket.Cursor()
			for key, _ := cursor.Seek(prefix); key != nil && bytes.Compare(key, end) < 0; key, _ = cursor.Seek(prefix) {
				if err := cursor.Delete(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return s.failed("prune the history", processor, err)
}
