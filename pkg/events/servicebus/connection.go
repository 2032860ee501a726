package servicebus

import (
	"context"
	"sync"
	"time"
)

// closeTimeout bounds how long the end of a connection, or of a request, is waited for.
const closeTimeout = time.Second

// await calls the SDK for at most a time; then its error is errNoAnswer. It returns at most closeTimeout
// after that and after the end of ctx. The SDK alone may take longer: it waits for locks and tokens without
// looking at its context. What call returns counts only without an error.
func await(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	returned := make(chan error, 1)
	go func() { returned <- call(ctx) }()
	var err error
	select {
	case err = <-returned:
	case <-ctx.Done():
		// The call may still return messages, which must not stay locked.
		select {
		case err = <-returned:
		case <-time.After(closeTimeout):
			err = ctx.Err()
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // the SDK's own error is then only that it was interrupted
	}
	return err
}

// closeBounded closes something of the SDK, whatever the broker does.
func closeBounded(closeIt func(context.Context) error) {
	_ = await(context.Background(), closeTimeout, closeIt)
}

// connection keeps a Link: it is opened at the first call, and replaced once a call failed. It is safe for
// concurrent use.
type connection struct {
	open func() (Link, error) // does no I/O: the SDK connects lazily
	life context.Context      // ends with close
	end  context.CancelFunc

	mu      sync.Mutex
	current Link // nil where none is open
}

func newConnection(open func() (Link, error)) *connection {
	c := &connection{open: open}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// use calls the SDK for at most a time. After a failure that may have broken the link, the next call
// connects anew; others that use the same link at once fail, too.
func (c *connection) use(ctx context.Context, limit time.Duration, call func(context.Context, Link) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	link, err := c.acquire()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(errClosed) })()
	err = await(ctx, limit, func(ctx context.Context) error { return call(ctx, link) })
	if err != nil && !refusesMessage(err) {
		c.retire(link)
	}
	return err
}

func (c *connection) acquire() (Link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return nil, errClosed
	}
	if c.current == nil {
		link, err := c.open()
		if err != nil {
			return nil, err
		}
		c.current = link
	}
	return c.current, nil
}

// retire forgets a link, unless another call has, and closes it in the background.
func (c *connection) retire(old Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != old || old == nil {
		return
	}
	c.current = nil
	go closeBounded(old.Close)
}

// close ends the connection without waiting for the broker. Calls fail from then on, also those under way.
func (c *connection) close() {
	c.end()
	c.mu.Lock()
	open := c.current
	c.mu.Unlock()
	c.retire(open)
}
