package servicebus

import (
	"context"
	"time"
)

// await returns soon after the end of ctx even where the SDK, which waits for locks and tokens without
// looking at its context, does not.
func await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	returned := make(chan outcome, 1)
	go func() {
		value, err := call()
		returned <- outcome{value, err}
	}()
	select {
	case o := <-returned:
		return o.value, o.err
	case <-ctx.Done():
	}
	// What the SDK has already received is not to stay locked.
	select {
	case o := <-returned:
		return o.value, o.err
	case <-time.After(closeTimeout):
		var none T
		return none, context.Cause(ctx)
	}
}

// deadlineContext reports another deadline than its context has. The SDK tells the broker how long to wait by
// the deadline of a context: an earlier one lets the broker's answer arrive before the caller gives up.
type deadlineContext struct {
	context.Context
	at time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) { return c.at, true }
