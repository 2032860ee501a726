package cosmos

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
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

// measuredKey is the context key of when what is read was read last.
type measuredKey struct{}

// LastMeasured says when what is read with the context was measured last; the zero time is never. Of the
// reads that wait for the RU budget, the one goes first that was measured the longest ago.
func LastMeasured(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, measuredKey{}, at)
}

// class is a kind of request, by what it may do to the budget.
type class int

const (
	lookup class = iota // leases, ranges, RIDs: few, and nothing can be measured without them
	feed                // one for each lease
)

// pace limits how fast an account is asked: to so many request units a second, where there is a
// budget, and to fewer calls at once while the account throttles
// (docs/decisions/0007-pace-and-regions.md).
//
// A feed read reserves what it is expected to cost before it is sent, so that many at once cannot
// spend what one of them may. Lookups go first: they wait for no feed read, and what they cost delays
// those.
type pace struct {
	budget   float64      // request units a second, for all processes that share it; 0 = unlimited
	among    atomic.Int64 // processes that share it; 0 = 1
	maxLimit int          // calls in flight at once, at least 1

	turn turn // held by the feed read that waits for the budget: the others wait behind it

	mu       sync.Mutex
	balance  float64               // request units that may be spent; below 0 what was spent too early
	counted  time.Time             // when balance was right; zero before the first call
	expected map[Container]float64 // request units of a feed read, a moving mean for each container
	usual    float64               // the same for all of them; 0 before the first answer
	limit    int                   // of calls in flight, from 1 to maxLimit
	active   int                   // calls in flight
	calm     int                   // calls in a row that were not throttled, since the limit changed
	released chan struct{}         // closed when a call has ended; nil while nobody waits for that
}

// rate is this process's share of the budget.
func (p *pace) rate() float64 { return p.budget / float64(max(1, p.among.Load())) }

// maxWait is how long a read waits for the budget before it looks again. It is longer than any tick.
const maxWait = time.Hour

// meanWeight is the weight of the newest charge in the moving mean of a container's feed reads.
const meanWeight = 0.25

func newPace(budget float64, maxLimit int) *pace {
	return &pace{
		budget: budget, maxLimit: maxLimit, limit: maxLimit, balance: budget,
		expected: make(map[Container]float64),
	}
}

// enter waits until a call may begin, and returns what it reserved of the budget and for how long that
// made it wait. The error is ErrBudget, or that of the context.
func (p *pace) enter(ctx context.Context, kind class, c Container) (reserved float64, delay time.Duration, err error) {
	if p.budget > 0 && kind == feed {
		if reserved, delay, err = p.reserve(ctx, c); err != nil {
			return 0, delay, err
		}
	}
	for {
		released := p.begin()
		if released == nil {
			return reserved, delay, nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			p.charge(-reserved)
			return 0, delay, ctx.Err()
		}
	}
}

// begin counts a call as in flight where the limit allows it; else it returns what is closed when one
// has ended.
func (p *pace) begin() (released <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active < p.limit {
		p.active++
		return nil
	}
	if p.released == nil {
		p.released = make(chan struct{})
	}
	return p.released
}

// reserve waits until the budget has what a feed read is expected to cost, and takes it off.
func (p *pace) reserve(ctx context.Context, c Container) (reserved float64, delay time.Duration, err error) {
	start := time.Now()
	patience := ctx
	if until, ok := ctx.Value(budgetKey{}).(time.Time); ok {
		var cancel context.CancelFunc
		patience, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	over := func() error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrBudget
	}
	if !p.turn.take(patience) {
		return 0, time.Since(start), over()
	}
	defer p.turn.pass()
	for waited := false; ; waited = true {
		wait, reserved := p.tryReserve(time.Now(), c)
		if wait == 0 {
			if waited {
				delay = time.Since(start)
			}
			return reserved, delay, nil
		}
		if deadline, ok := patience.Deadline(); ok && time.Until(deadline) < wait {
			return 0, time.Since(start), over()
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-patience.Done():
			timer.Stop()
			return 0, time.Since(start), over()
		}
	}
}

// turn is held by one at a time. Of those that wait for it, the one is next that was measured the longest
// ago: else, of many that wait at once, chance would leave out the same ones in tick after tick.
type turn struct {
	mu      sync.Mutex
	held    bool
	waiting []*waiter
}

type waiter struct {
	measured time.Time
	called   chan struct{}
}

// take waits for the turn; it is false where the context ends before.
func (t *turn) take(ctx context.Context) bool {
	t.mu.Lock()
	if !t.held {
		t.held = true
		t.mu.Unlock()
		return true
	}
	w := &waiter{called: make(chan struct{})}
	w.measured, _ = ctx.Value(measuredKey{}).(time.Time)
	t.waiting = append(t.waiting, w)
	t.mu.Unlock()
	select {
	case <-w.called:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	at := slices.Index(t.waiting, w)
	if at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
	}
	t.mu.Unlock()
	if at < 0 {
		t.pass() // it was called meanwhile
	}
	return false
}

// pass hands the turn on.
func (t *turn) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.held = false
		return
	}
	next := 0
	for i, w := range t.waiting {
		if w.measured.Before(t.waiting[next].measured) {
			next = i
		}
	}
	close(t.waiting[next].called)
	t.waiting = slices.Delete(t.waiting, next, next+1)
}

// tryReserve takes the expected charge off the balance where that has it, and else says how long it
// takes until then. A charge above the budget of a second is waited for as if it were that, and paid
// back afterwards.
func (p *pace) tryReserve(now time.Time, c Container) (wait time.Duration, reserved float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refill(now)
	expected, known := p.expected[c]
	if !known {
		expected = p.usual
	}
	if expected == 0 { // nothing was read yet: one at a time, until one has said what it costs
		expected = p.rate()
	}
	needed := min(expected, p.rate())
	if p.balance < needed {
		seconds := min((needed-p.balance)/p.rate(), maxWait.Seconds())
		return time.Duration(seconds*float64(time.Second)) + time.Millisecond, 0
	}
	p.balance -= expected
	return 0, expected
}

// refill adds what the time since the last call brought: a second's worth can be saved up.
func (p *pace) refill(now time.Time) {
	if p.counted.IsZero() {
		p.counted = now
	}
	p.balance = min(p.rate(), p.balance+now.Sub(p.counted).Seconds()*p.rate())
	p.counted = now
}

// charge takes a charge off the balance.
func (p *pace) charge(charge float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balance -= charge
}

// leave ends a call: what it reserved is given back and what it cost is taken off. A call that was
// throttled halves the limit; as many calls in a row that were not raise it by one.
func (p *pace) leave(kind class, c Container, reserved float64, throttled bool, charge float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	p.balance += reserved - charge
	if kind == feed && charge > 0 && p.budget > 0 {
		p.learn(c, charge)
	}
	switch p.calm++; {
	case throttled:
		p.limit, p.calm = max(1, p.limit/2), 0
	case p.limit < p.maxLimit && p.calm >= p.limit:
		p.limit, p.calm = p.limit+1, 0
	}
	if p.released != nil {
		close(p.released)
		p.released = nil
	}
}

// learn adds a charge to the moving means. The first of a container counts as it is.
func (p *pace) learn(c Container, charge float64) {
	mean := func(old float64) float64 {
		if old == 0 {
			return charge
		}
		return old + meanWeight*(charge-old)
	}
	p.expected[c] = mean(p.expected[c])
	p.usual = mean(p.usual)
}
