package demo

import (
	"context"
	"sync"
	"time"
)

// lane lets one change of a replica pass at a time, whichever partition it is of: what a replica's
// processor can do.
type lane struct {
	interval time.Duration

	mu   sync.Mutex
	free time.Time // when the next change may begin
}

// pass returns when one change has gone through.
func (l *lane) pass(ctx context.Context, now time.Time) error {
	l.mu.Lock()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(l.interval)
	timer := time.NewTimer(l.free.Sub(now))
	l.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
