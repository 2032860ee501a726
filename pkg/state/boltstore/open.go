package boltstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// ErrInUse is returned by Open if another process has the file open.
var ErrInUse = errors.New("another process has the state file open")

// ErrDamaged is returned by Open if the file is not a state file, or is damaged.
var ErrDamaged = errors.New("not a whole state file")

// The buckets of a state file. A change of the layout has to change their names.
var (
	statesBucket  = []byte("feedscale.states.v1")
	outboxBucket  = []byte("feedscale.outbox.v1")
	historyBucket = []byte("feedscale.history.v1")

	buckets = [][]byte{statesBucket, outboxBucket, historyBucket}

	// summariesBucket is within the history, before every processor's samples, so that an earlier release
	// opens the file and does not see it.
	summariesBucket = []byte{0}
)

const (
	historyFillRatio = 0.9 // how full bbolt leaves a page of the history, which grows at its end alone

	lockTimeout = time.Second          // how long a second process waits for the file before it gets ErrInUse
	batchDelay  = 2 * time.Millisecond // how long a commit waits for others to write to the disk together with it
)

// Open opens the state file at path, and creates the file and its folders if they are missing. Only one
// process can have it open: a second one gets ErrInUse after 1 s. The error is ErrDamaged if the file is
// damaged or not a state file; the file is then left as it is.
func Open(path string) (*Store, error) { return openWithin(path, lockTimeout) }

// OpenAtOnce is Open without the wait for another process.
func OpenAtOnce(path string) (*Store, error) { return openWithin(path, time.Nanosecond) }

func openWithin(path string, wait time.Duration) (*Store, error) {
	store, err := open(path, wait)
	switch {
	case err == nil:
		return store, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		err = fmt.Errorf("%w; end that process, or give this one another file in FEEDSCALE_STATE", ErrInUse)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("open state file: %w; let this user read and write it, or give another file in FEEDSCALE_STATE", err)
	case errors.Is(err, ErrDamaged):
		err = fmt.Errorf("%w; restore it from a backup, move it away to start afresh, or give another file in FEEDSCALE_STATE", err)
	}
	return nil, fmt.Errorf("open state file %s: %w", path, err)
}

func open(path string, wait time.Duration) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	var db *bolt.DB
	err := guard(func() (err error) {
		if db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: wait}); err != nil {
			return err
		}
		db.MaxBatchDelay = batchDelay
		return prepare(db)
	})
	if err != nil && db != nil {
		_ = db.Close() // err is the reason
	}
	return &Store{db}, err
}

// prepare checks that the file is an undamaged state file before it writes to it.
func prepare(db *bolt.DB) error {
	if err := db.View(check); err != nil {
		return err
	}
	return db.Update(func(tx *bolt.Tx) error {
		for _, bucket := range buckets {
			if _, err := tx.CreateBucketIfNotExists(bucket); err != nil {
				return err
			}
		}
		_, err := tx.Bucket(historyBucket).CreateBucketIfNotExists(summariesBucket)
		return err
	})
}

// guard turns each failure of bbolt on a damaged file into ErrDamaged: its errors, its panics, and the
// memory fault on a file that ends too early, which would otherwise end the process.
func guard(use func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			if _, fault := reason.(runtime.Error); fault {
				reason = "its pages name others that it does not have"
			}
			err = fmt.Errorf("%w: %v", ErrDamaged, reason)
		}
	}()
	err = use()
	var refusal syscall.Errno // of the operating system, whatever is in the file
	if err == nil || errors.As(err, &refusal) || errors.Is(err, bolterrors.ErrTimeout) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// check reads the pages of the whole file, so that damage is found before it is used. Call it within guard.
func check(tx *bolt.Tx) error {
	info, err := os.Stat(tx.DB().Path())
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("it ends after %d of %d bytes", info.Size(), tx.Size())
	}
	if err := tx.ForEach(checkBucket); err != nil {
		return err
	}
	// This comes last: it reads in another goroutine, which guard does not cover.
	var first error
	for err := range tx.Check() { // to the end, or its goroutine would leak
		first = cmp.Or(first, err)
	}
	return first
}

// checkBucket touches each page of a bucket, so that guard covers a fault. What is in a row is decoded when it is
// read, so that one that cannot be read concerns one processor alone.
func checkBucket(name []byte, bucket *bolt.Bucket) error {
	if !slices.ContainsFunc(buckets, func(known []byte) bool { return bytes.Equal(name, known) }) {
		return fmt.Errorf("it holds %q, which this version of feedscale does not write", name)
	}
	return bucket.ForEach(func(_, _ []byte) error { return nil })
}
