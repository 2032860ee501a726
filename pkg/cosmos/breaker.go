package cosmos

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	breakerOpensAfter = 5               // calls in a row without an answer
	probeEvery        = 5 * time.Second // how often an account that does not answer is asked
)

// breaker is a circuit breaker: an account that does not answer, in no region, is asked once in a while
// instead of by every read of every tick. The first answer closes it.
type breaker struct {
	mu       sync.Mutex
	failures int           // calls in a row without an answer
	since    time.Time     // when the first of them failed
	probed   time.Time     // when a call was let through last
	settled  chan struct{} // closed when that call has ended; nil while none is in flight
}

func newBreaker() *breaker { return &breaker{} }

// openError says that an account was not asked.
type openError struct {
	since    time.Time
	failures int
}

func (e openError) Error() string {
	return fmt.Sprintf("it has not answered %d calls in a row since %s, and is asked once every %s until it does (the circuit breaker is open)",
		e.failures, e.since.UTC().Format(time.RFC3339), probeEvery)
}

// enter lets a call through, or fails with an openError. Where the breaker is open, the call finds out
// whether the account answers again, and others that come meanwhile wait for what it finds.
func (b *breaker) enter(ctx context.Context, now func() time.Time) (finds bool, err error) {
	for {
		b.mu.Lock()
		switch at := now(); {
		case b.failures < breakerOpensAfter:
			b.mu.Unlock()
			return false, nil
		case b.settled == nil && at.Sub(b.probed).Abs() >= probeEvery:
			b.probed, b.settled = at, make(chan struct{})
			b.mu.Unlock()
			return true, nil
		}
		open, settled := openError{b.since, b.failures}, b.settled
		b.mu.Unlock()
		if settled == nil {
			return false, open
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return false, open
		}
	}
}

// leave says how a call ended that enter let through: whether the service answered. A call that was
// given up, or that never left this machine, says nothing: then known is false.
func (b *breaker) leave(answered, known bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !known:
	case answered:
		b.failures = 0
	default:
		if b.failures == 0 {
			b.since = now
		}
		b.failures++
	}
	if b.settled != nil {
		close(b.settled)
		b.settled = nil
	}
}

// open reports whether the account is not answering: a retry would only add to it.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= breakerOpensAfter
}
