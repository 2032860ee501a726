package servicebus

import (
	"context"
	"time"
)

// closeTimeout bounds how long the end of a connection, or of a request, is waited for.
const closeTimeout = time.Second

// within calls the SDK for at most a time. Its error is errNoAnswer once that is over.
func within[T any](ctx context.Context, limit time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	return await(ctx, call)
}

// await returns at most closeTimeout after the end of ctx. The SDK alone may take longer: it waits for locks
// and tokens without looking at its context.
func await[T any](ctx context.Context, call func(context.Context) (value T, err error)) (value T, err error) {
	returned := make(chan struct{})
	var result T
	var failure error
	go func() {
		defer close(returned)
		result, failure = call(ctx)
	}()
	select {
	case <-returned:
		value, err = result, failure
	case <-ctx.Done():
		// The call may still return messages, which must not stay locked.
		select {
		case <-returned:
			value, err = result, failure
		case <-time.After(closeTimeout):
			err = ctx.Err()
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the SDK's own error is then only that it was interrupted
	}
	return value, err
}

// perform is within for a call that returns nothing.
func perform(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	_, err := within(ctx, limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

// closeBounded closes something of the SDK, whatever the broker does.
func closeBounded(closeIt func(context.Context) error) {
	_ = perform(context.Background(), closeTimeout, closeIt)
}
