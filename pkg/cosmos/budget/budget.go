// Package budget limits the request units that are spent on an account in a second
// (docs/decisions/0007-pace-and-regions.md). It knows nothing of requests. Start with [New].
//
// The package is internal to the program: its API may change in any release.
package budget

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNoTime says that the budget left no time for a read: it must not be sent, and an earlier reading counts
// on.
var ErrNoTime = errors.New("the RU budget left no time for this read")

// turn says when a read may wait for the budget.
type turn struct{ until, measured time.Time }

// turnKey is the context key of a turn.
type turnKey struct{}

const (
	meanWeight = 0.25      // of the newest charge in the moving mean of all reads
	maxWait    = time.Hour // before a read looks again; longer than any tick
)

// Budget lets reads go as long as there are request units for them. A read reserves its expected charge
// before it is sent, so that many at once cannot spend what one of them may. What is not reserved goes
// first: it waits for no read, and its charge delays those. It is safe for concurrent use.
type Budget struct {
	whole float64      // request units a second, for all processes that share it; 0 = unlimited
	among atomic.Int64 // processes that share it; 0 = 1

	mu      sync.Mutex
	saved   float64     // request units that may be spent; below 0 what was spent too early
	at      time.Time   // when saved was right
	usual   float64     // request units of a read, a moving mean; 0 before the first answer
	waiting []*waiter   // reads that the budget has not enough for yet
	timer   *time.Timer // until it has enough for the first of them
}

// waiter is a read that waits for the budget.
type waiter struct {
	turn                   // until is zero if it waits for ever
	reserved float64       // request units; 0 = it is left out
	called   chan struct{} // closed once that is known
}

// New returns a Budget of so many request units a second; 0 = unlimited.
func New(perSecond float64) *Budget {
	return &Budget{whole: perSecond, saved: perSecond, at: time.Now()}
}

// Share says how many processes spend the budget: each has its part.
func (b *Budget) Share(among int) { b.among.Store(int64(among)) }

// Turn lets the reads made with the context wait for the budget until a time at most; after that they are
// left out. The zero time lets them wait until the context ends. measured is when their subject was measured
// last, zero = never: of the reads that wait, the one goes first that was measured the longest ago. Else
// chance would leave out the same ones in tick after tick.
func (b *Budget) Turn(ctx context.Context, until, measured time.Time) context.Context {
	if b.whole <= 0 {
		return ctx
	}
	return context.WithValue(ctx, turnKey{}, turn{until, measured})
}

// Reserve waits until the budget has the expected charge of a read, and takes it off. The error is that of
// the context, or ErrNoTime.
func (b *Budget) Reserve(ctx context.Context) (reserved float64, waited time.Duration, err error) {
	if b.whole <= 0 {
		return 0, 0, nil
	}
	start, w := time.Now(), &waiter{called: make(chan struct{})}
	if w.turn, _ = ctx.Value(turnKey{}).(turn); w.until.IsZero() {
		w.until, _ = ctx.Deadline()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, w)
	if b.call(); w.reserved == 0 {
		b.mu.Unlock()
		select {
		case <-w.called:
		case <-ctx.Done():
		}
		b.mu.Lock()
		waited = time.Since(start)
	}
	if w.reserved == 0 {
		b.remove(w)
		b.call()
		err = cmp.Or(ctx.Err(), ErrNoTime)
	}
	return w.reserved, waited, err
}

// Spend takes off what a read cost, and gives back what it had reserved; of what is no read, that is 0.
func (b *Budget) Spend(reserved, charge float64) {
	if b.whole <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved += reserved - charge
	if reserved > 0 && charge > 0 {
		b.usual = (1-meanWeight)*cmp.Or(b.usual, charge) + meanWeight*charge
	}
	b.call()
}

// call lets reads go that the budget has enough for, and leaves out those that have no time until then. A
// charge above the budget of a second is waited for as if it were that, and paid back afterwards. Until one
// read has said what it costs, they go one at a time. The mutex is held.
func (b *Budget) call() {
	rate, now := b.whole/float64(max(1, b.among.Load())), time.Now()
	b.saved = min(rate, b.saved+now.Sub(b.at).Seconds()*rate) // a second's worth can be saved up
	if b.at = now; b.timer != nil {
		b.timer.Stop()
	}
	for len(b.waiting) > 0 {
		w := slices.MinFunc(b.waiting, func(a, b *waiter) int { return a.measured.Compare(b.measured) })
		expected := cmp.Or(b.usual, rate)
		if needed := min(expected, rate); b.saved >= needed {
			w.reserved = expected
			b.saved -= expected
		} else {
			seconds := min((needed-b.saved)/rate, maxWait.Seconds())
			wait := time.Duration(seconds*float64(time.Second)) + time.Millisecond
			if w.until.IsZero() || !now.Add(wait).After(w.until) {
				b.timer = time.AfterFunc(wait, func() {
					b.mu.Lock()
					defer b.mu.Unlock()
					b.call()
				})
				return
			}
		}
		b.remove(w)
		close(w.called)
	}
}

func (b *Budget) remove(w *waiter) {
	b.waiting = slices.DeleteFunc(b.waiting, func(other *waiter) bool { return other == w })
}
