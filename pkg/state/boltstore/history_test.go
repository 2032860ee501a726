package boltstore_test

import (
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/feedscale/feedscale/pkg/state"
)

func TestAFileFromBeforeTheHistoryOpensAndKeepsOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feedscale.db")
	store := open(t, path)
	if err := store.Commit(t.Context(), "", state.State{Processor: "orders", Sequence: 7}, nil); err != nil {
		t.Fatal(err)
	}
	closeStore(t, store)
	change(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("feedscale.history.v1")) })

	store = open(t, path)
	record, err := store.Load(t.Context(), "orders")
	if err != nil || record.State.Sequence != 7 {
		t.Fatalf("got sequence %d and %v, want 7", record.State.Sequence, err)
	}
	polled := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := store.Commit(t.Context(), record.Version, state.State{Processor: "orders", AttemptedAt: polled}, nil); err != nil {
		t.Fatal(err)
	}
	closeStore(t, store)

	store = open(t, path)
	if samples, err := store.History(t.Context(), "orders", polled, polled.Add(time.Second)); err != nil || len(samples) != 1 {
		t.Errorf("got %d samples and %v, want 1", len(samples), err)
	}
	closeStore(t, store)
}

// change writes to a closed state file as another program would.
func change(t *testing.T, path string, write func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(write); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
