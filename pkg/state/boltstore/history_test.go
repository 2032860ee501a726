package boltstore_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
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
	record, err := storetest.Load(t.Context(), store, "orders")
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

// The history is not read at the start, so that a damaged sample is reported when it is read.
func TestASampleThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	const key = "orders\x00\x80\x00\x00\x00\x00\x00\x00\x00"
	for name, value := range map[string]string{
		"no JSON":         "hello",
		"of another time": `{"time":"1970-01-01T00:00:15Z"}`,
	} {
		path := filepath.Join(t.TempDir(), "feedscale.db")
		change(t, path, func(tx *bolt.Tx) error { return sample(tx, key, value) })
		store := open(t, path)
		_, err := store.History(t.Context(), "orders", time.Unix(0, 0), time.Unix(60, 0))
		if err == nil || !strings.Contains(err.Error(), "orders") || !strings.Contains(err.Error(), "sample") {
			t.Errorf("%s: got %v, want an error that names the sample", name, err)
		}
		closeStore(t, store)
	}
}

// sample writes a sample to the history as another program would.
func sample(tx *bolt.Tx, key, value string) error {
	history, err := tx.CreateBucketIfNotExists([]byte("feedscale.history.v1"))
	if err != nil {
		return err
	}
	return history.Put([]byte(key), []byte(value))
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
