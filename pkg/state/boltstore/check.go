package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// guard makes ErrDamaged of every way in which bbolt meets a file that is not
// whole: its errors, its panics, and the memory fault of a file that ends too
// early, which would otherwise end the process.
func guard(use func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, reason)
		}
	}()
	err = use()
	var refusal syscall.Errno // by the operating system, and no fault of the content
	if err == nil || errors.As(err, &refusal) || errors.Is(err, bolterrors.ErrTimeout) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// check reads the whole file, so that what is wrong with it is found before it
// is relied upon. It needs guard around it.
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
	// Last, since it reads in a goroutine of its own, where guard is of no use.
	var first error
	for err := range tx.Check() { // to the end, or the goroutine would stay
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
			if _, _, err := readState(value); err != nil {
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
		return nil // a week of samples is long to read, and nothing is decided by them: History tells which cannot be
	default:
		return fmt.Errorf("it holds %q, which this version of feedscale does not write", name)
	}
}
