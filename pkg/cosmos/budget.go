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

// budgetKey is the context key of the time until which a read may wait for the budget.
type budgetKey struct{}

// BudgetUntil lets the reads made with the context wait for the RU budget until a time at most; after
// that they return ErrBudget. Without it they wait until the context ends.
func BudgetUntil(ctx context.Context, until time.Time) context.Context {
	return context.WithValue(ctx, budgetKey{}, until)
}

// measuredKey is the context key of when the subject of a read was read last.
type measuredKey struct{}

// LastMeasured says when the subject of the reads with the context was measured last; the zero time is
// never. Of the reads that wait for the RU budget, the one goes first that was measured the longest ago.
func LastMeasured(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, measuredKey{}, at)
}

const (
	meanWeight = 0.25      // of the newest charge in the moving mean of a container's feed reads
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
	saved   float64   // request units that may be spent; below 0 what was spent too early
	at      time.Time // when saved was right
	usual   float64   // request units of a feed read, a moving mean; 0 before the first answer
	busy    bool      // a read waits for the budget
	waiting []waiter  // for their turn to do so
}

// waiter is a read that waits for its turn.
type waiter struct {
	measured time.Time
	called   chan struct{}
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
	start, patience := time.Now(), ctx
	if until, ok := ctx.Value(budgetKey{}).(time.Time); ok {
		var cancel context.CancelFunc
		patience, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	if b.enter(patience) {
		defer b.leave()
		for delay := time.Duration(0); patience.Err() == nil; delay = time.Since(start) {
			wait, reserved := b.tryReserve(c.breaker)
			if wait == 0 {
				c.Delay += delay
				return reserved, nil
			}
			if deadline, ok := patience.Deadline(); ok && time.Until(deadline) < wait {
				break
			}
			select {
			case <-time.After(wait):
			case <-patience.Done():
			}
		}
	}
	c.Delay += time.Since(start)
	return 0, cmp.Or(ctx.Err(), ErrBudget)
}

// tryReserve takes the expected charge off if the budget has it, and else says how long it takes until
// then. A charge above the budget of a second is waited for as if it were that, and paid back afterwards.
// Until one read has said what it costs, they go one at a time.
func (b *budget) tryReserve(of *breaker) (wait time.Duration, reserved float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rate, now := b.whole/float64(max(1, b.among.Load())), time.Now()
	b.saved = min(rate, b.saved+now.Sub(b.at).Seconds()*rate) // a second's worth can be saved up
	b.at = now
	expected := cmp.Or(of.charge, b.usual, rate)
	if needed := min(expected, rate); b.saved < needed {
		seconds := min((needed-b.saved)/rate, maxWait.Seconds())
		return time.Duration(seconds*float64(time.Second)) + time.Millisecond, 0
	}
	b.saved -= expected
	return 0, expected
}

// spend gives back what a call reserved, and takes off what it cost.
func (b *budget) spend(c *call, reserved, charge float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved += reserved - charge
	if c.feed && charge > 0 {
		c.breaker.charge, b.usual = mean(c.breaker.charge, charge), mean(b.usual, charge)
	}
}

// mean moves a moving mean, which is 0 before the first value.
func mean(old, value float64) float64 {
	return (1-meanWeight)*cmp.Or(old, value) + meanWeight*value
}

// enter lets one read at a time wait for the budget; it is false if the context ends before. Of the others,
// the one is next that was measured the longest ago: else chance would leave out the same ones in tick after
// tick.
func (b *budget) enter(ctx context.Context) bool {
	w := waiter{called: make(chan struct{})}
	w.measured, _ = ctx.Value(measuredKey{}).(time.Time)
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.call()
	b.mu.Unlock()
	select {
	case <-w.called:
		return true
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.waiting)
	b.waiting = slices.DeleteFunc(b.waiting, func(other waiter) bool { return other == w })
	return len(b.waiting) == before // it was called meanwhile
}

// leave hands the turn on.
func (b *budget) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = false
	b.call()
}

// call calls the next one unless another one has its turn. The mutex is held.
func (b *budget) call() {
	if !b.busy && len(b.waiting) > 0 {
		next := slices.MinFunc(b.waiting, func(a, b waiter) int { return a.measured.Compare(b.measured) })
		b.waiting = slices.DeleteFunc(b.waiting, func(w waiter) bool { return w == next })
		b.busy = true
		close(next.called)
	}
}
