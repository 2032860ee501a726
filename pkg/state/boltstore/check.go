package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/feedscale/feedscale/pkg/state"
)

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

// check reads the whole file except the content of the history, so that damage is found before it is used.
// Call it within guard.
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
		if first == nil {
			first = err
		}
	}
	return first
}

func checkBucket(name []byte, bucket *bolt.Bucket) error {
	switch {
	case bytes.Equal(name, statesBucket):
		return bucket.ForEach(func(processor, value []byte) error {
			if state.IsDocument(string(processor)) {
				return nil // Document.Decode reports what cannot be read
			}
			// The State of a newer release is no damage: Load refuses it alone.
			stored, err := readState(value, func(err error) error { return err })
			if err == nil {
				_, err = stored.State()
			}
			if err != nil && !errors.Is(err, state.ErrNewer) {
				return fmt.Errorf("processor %q: %w", processor, err)
			}
			return nil
		})
	case bytes.Equal(name, outboxBucket):
		return bucket.ForEach(func(key, body []byte) error {
			_, err := readEvent(key, body)
			return err
		})
	case bytes.Equal(name, historyBucket):
		return nil // reading a week of samples takes long, and no decision depends on them; History reports what it cannot read
	default:
		return fmt.Errorf("it holds %q, which this version of feedscale does not write", name)
	}
}
