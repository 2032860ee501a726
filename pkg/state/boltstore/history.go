package boltstore

import (
	"bytes"
	"context"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/feedscale/feedscale/pkg/state"
)

// History implements state.Store.
func (s *Store) History(ctx context.Context, processor string, from, to time.Time) ([]state.Sample, error) {
	var samples []state.Sample
	err := s.view(ctx, func(tx *bolt.Tx) error {
		prefix := keyPrefix(processor)
		cursor := tx.Bucket(historyBucket).Cursor()
		for key, value := cursor.Seek(sampleKey(processor, from)); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			sample, err := readSample(key, value)
			if err != nil {
				return err
			}
			if !sample.Time.Before(to) {
				return nil
			}
			if !sample.Time.Before(from) {
				samples = append(samples, sample)
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.failed("read the history", processor, err)
	}
	return samples, nil
}

// Prune implements state.Store. The file does not become smaller: bbolt reuses the pages of what
// was removed.
func (s *Store) Prune(ctx context.Context, processor string, before time.Time) error {
	err := s.batch(ctx, func(tx *bolt.Tx) error {
		prefix, end := keyPrefix(processor), sampleKey(processor, before.Truncate(time.Hour))
		cursor := tx.Bucket(historyBucket).Cursor()
		// A cursor may skip a key after a deletion, so it seeks each time.
		for {
			key, _ := cursor.Seek(prefix)
			if key == nil || bytes.Compare(key, end) >= 0 {
				return nil
			}
			if err := cursor.Delete(); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return s.failed("prune the history", processor, err)
	}
	return nil
}
