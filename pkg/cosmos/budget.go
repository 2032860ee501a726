package cosmos

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// ErrBudget says that the account's RU budget left no time for a read: it was not sent, and an earlier
// reading counts on.
var ErrBudget = errors.New("the RU budget left no time for this read")

// turn says when a read may wait for the RU budget.
type turn struct{ until, measured time.Time }

// turnKey is the context key of a turn.
type turnKey struct{}

// BudgetTurn lets the reads made with the context wait for the RU budget until a time at most; after that
// they return ErrBudget. The zero time lets them wait until the context ends. measured is when their subject was
// measured last, zero = never: of the reads that wait, the one goes first that was measured the longest ago.
// Else chance would leave out the same ones in tick after tick.
func (a *Account) BudgetTurn(ctx context.Context, until, measured time.Time) context.Context {
	if a.budget.whole <= 0 {
		return ctx
	}
	return context.WithValue(ctx, turnKey{}, turn{until, measured})
}

const (
	meanWeight = 0.25      // of the newest charge in the moving mean of all feed reads
	maxWait    = time.Hour // for the budget, before a read looks again; longer than any tick
)

// budget limits the request units that are spent in a second (docs/decisions/0007-pace-and-regions.md). A
// feed read reserves its expected charge before it is sent, so that many at once cannot spend what one of
// them may. Lookups go first: they wait for no feed read, and their charge delays those.
type budget struct {
	next  policy.Transporter
	whole float64      // request units a second, for all processes that share it; 0 = unlimited
	among atomic.Int64 // processes that share it; 0 = 1

	mu      sync.Mutex
	saved   float64     // request units that may be spent; below 0 what was spent too early
	at      time.Time   // when saved was right
	usual   float64     // request units of a feed read, a moving mean; 0 before the first answer
	waiting []*waiter   // reads that the budget has not enough for yet
	timer   *time.Timer // until it has enough for the first of them
}

// waiter is a read that waits for the budget.
type waiter struct {
	turn                   // until is zero if it waits for ever
	reserved float64       // request units; 0 = it is left out
	called   chan struct{} // closed once that is known
}

func newBudget(next policy.Transporter, whole float64) *budget {
	return &budget{next: next, whole: whole, saved: whole, at: time.Now()}
}

func (b *budget) Do(r *http.Request) (*http.Response, error) {
	if b.whole <= 0 {
		return b.next.Do(r)
	}
	c, reserved := callOf(r.Context()), 0.0
	if c.feed {
		var err error
		if reserved, err = b.reserve(r.Context(), c); err != nil {
			return nil, err
		}
	}
	before := c.Charge
	response, err := b.next.Do(r)
	b.spend(c, reserved, c.Charge-before)
	return response, err
}

// reserve waits until the budget has the expected charge of a feed read, and takes it off.
func (b *budget) reserve(ctx context.Context, c *call) (reserved float64, err error) {
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
		c.Delay += time.Since(start)
	}
	if w.reserved > 0 {
		return w.reserved, nil
	}
	b.remove(w)
	b.call()
	return 0, cmp.Or(ctx.Err(), ErrBudget)
}

// call lets reads go that the budget has enough for, and leaves out those that have no time until then. A
// charge above the budget of a second is waited for as if it were that, and paid back afterwards. Until one
// read has said what it costs, they go one at a time. The mutex is held.
func (b *budget) call() {
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

func (b *budget) remove(w *waiter) {
	b.waiting = slices.DeleteFunc(b.waiting, func(other *waiter) bool { return other == w })
}

// spend gives back what a call reserved, and takes off what it cost.
func (b *budget) spend(c *call, reserved, charge float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved += reserved - charge
	if c.feed && charge > 0 {
		b.usual = (1-meanWeight)*cmp.Or(b.usual, charge) + meanWeight*charge
	}
	b.call()
}
