package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Handler processes a batch of changes. A checkpoint follows where it returns nil; an error has the
// partition given up, for this or another host to begin again behind the last checkpoint. Its
// context ends when the partition was lost or the host is to stop, as the SDK's cancellation token
// does.
type Handler func(ctx context.Context, b Batch) error

// Batch is a page of changes of one partition, in their order.
type Batch struct {
	Partition string // lease token
	Changes   []json.RawMessage
	// Killed is closed when the host is killed: a handler that does not heed its context ends then.
	Killed <-chan struct{}

	rewind func(continuation *string) error
}

// errScripted is what handlers fail with that are to fail.
var errScripted = errors.New("the handler fails, as it was told to")

// Ignores is a handler that has nothing to do.
func Ignores() Handler { return func(context.Context, Batch) error { return nil } }

// Throws is a handler that fails on every batch.
func Throws() Handler { return func(context.Context, Batch) error { return errScripted } }

// ThrowsOn fails on every batch of one partition, and has another handler for the others.
func ThrowsOn(partition string, others Handler) Handler {
	return func(ctx context.Context, b Batch) error {
		if b.Partition == partition {
			return errScripted
		}
		return others(ctx, b)
	}
}

// Hangs is a handler that never returns, whatever its context says, until its host is killed.
func Hangs() Handler {
	return func(_ context.Context, b Batch) error {
		<-b.Killed
		return errScripted
	}
}

// Skips has another handler for all batches but those of which skip reports true, which are
// checkpointed and handled by nobody.
func Skips(skip func(Batch) bool, others Handler) Handler {
	return func(ctx context.Context, b Batch) error {
		if skip(b) {
			return nil
		}
		return others(ctx, b)
	}
}

// Rewinds has another handler for all batches. Behind one of which when reports true it sets the
// continuation of the partition's lease back, nil being none, and fails, so that whoever takes the
// lease next reads from there.
func Rewinds(continuation *string, when func(Batch) bool, others Handler) Handler {
	return func(ctx context.Context, b Batch) error {
		if err := others(ctx, b); err != nil || !when(b) {
			return err
		}
		if err := b.rewind(continuation); err != nil {
			return fmt.Errorf("setting the continuation back: %w", err)
		}
		return errScripted
	}
}
