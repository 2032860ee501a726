package servicebus

import (
	"context"
	"sync"
	"time"
)

// connection is a connection for one use, as L has it. It is opened at the first call, kept open, and
// replaced once a call failed. It is safe for concurrent use.
type connection[L interface{ Close(context.Context) error }] struct {
	open func() (L, error) // does no I/O: the SDK connects lazily
	life context.Context   // ends with close
	end  context.CancelFunc

	mu      sync.Mutex
	current *L // nil where none is open
}

func newConnection[L interface{ Close(context.Context) error }](open func() (L, error)) *connection[L] {
	c := &connection[L]{open: open}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// use calls the SDK for at most a time. After a failure that may have broken the link, the next call
// connects anew; others that use the same link at once fail, too.
func (c *connection[L]) use(ctx context.Context, limit time.Duration, call func(context.Context, L) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(errClosed) })()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	link, err := c.acquire()
	if err != nil {
		return err
	}
	err = perform(ctx, limit, func(ctx context.Context) error { return call(ctx, *link) })
	if err != nil && !refusesMessage(err) {
		c.retire(link)
	}
	return err
}

func (c *connection[L]) acquire() (*L, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.life.Err() != nil:
		return nil, errClosed
	case c.current == nil:
		link, err := c.open()
		if err != nil {
			return nil, err
		}
		c.current = &link
	}
	return c.current, nil
}

// retire forgets a link, unless another call has, and closes it in the background.
func (c *connection[L]) retire(old *L) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == old {
		c.current = nil
		go closeLink(*old)
	}
}

// close ends the connection within a second, whatever the broker does. Calls fail from then on, also those
// under way.
func (c *connection[L]) close() {
	c.end()
	c.mu.Lock()
	open := c.current
	c.current = nil
	c.mu.Unlock()
	if open != nil {
		closeLink(*open)
	}
}

// closeLink closes a link. An ended context keeps the SDK from waiting for the broker's goodbye: what was
// sent is settled, so that nothing is lost by it.
func closeLink(link interface{ Close(context.Context) error }) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = perform(ended, closeTimeout, link.Close)
}
