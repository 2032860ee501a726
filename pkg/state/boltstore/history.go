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

// Summaries implements state.Store.
func (s *Store) Summaries(ctx context.Context, processor string, from, to time.Time) ([]state.Summary, error) {
	var summaries []state.Summary
	err := s.view(ctx, func(tx *bolt.Tx) error {
		prefix := keyPrefix(processor)
		cursor := tx.Bucket(historyBucket).Bucket(summariesBucket).Cursor()
		for key, value := cursor.Seek(sampleKey(processor, from)); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			var summary state.Summary
			if err := json.Unmarshal(value, &summary); err != nil {
				return fmt.Errorf("read the hour under the key %q: %w", key, err)
			}
			if !summary.Hour.Before(to) {
				return nil
			}
			if !summary.Hour.Before(from) {
				summaries = append(summaries, summary)
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.failed("read the history", processor, err)
	}
	return summaries, nil
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
	if err != nil {
		return s.failed("prune the history", processor, err)
	}
	return nil
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
