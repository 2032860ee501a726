package cosmos

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// pace limits the requests to an account in two ways: to a budget of request units per second,
// where there is one (a token bucket that may be overdrawn and holds one second's worth), and to a
// number of calls in flight that falls and rises with the throttling (additive increase,
// multiplicative decrease). docs/decisions/0007-pace-and-regions.md has the reasons.
type pace struct {
	budget   float64 // request units per second; 0 = unlimited
	maxLimit int     // upper bound of limit, at least 1

	mu          sync.Mutex
	balance     float64       // request units that may be spent now; negative after spending more than the budget
	updated     time.Time     // when balance was last brought up to date; zero before the first call
	limit       int           // calls allowed in flight at once, from 1 to maxLimit
	active      int           // calls in flight
	unthrottled int           // calls that ended since the last throttled one, or since limit rose
	released    chan struct{} // closed when a call ends; nil while nobody waits for that
}

func newPace(budget float64, maxLimit int) *pace {
	return &pace{budget: budget, maxLimit: maxLimit, limit: maxLimit, balance: budget}
}

// gate is the policy that lets a call begin when the pace allows it. It comes before the retries,
// so that one call with its retries counts once. The time that the budget made a call wait is added
// to its tally; the wait ends with the call's context.
func (p *pace) gate(r *policy.Request) (*http.Response, error) {
	t, _ := r.Raw().Context().Value(tallyKey{}).(*tally)
	if t == nil {
		t = &tally{} // for a request that the SDK makes on its own
	}
	delay, err := p.enter(r.Raw().Context())
	t.delay(delay)
	if err != nil {
		return nil, err
	}
	throttled, charge := t.throttles(), t.spent().Charge
	response, err := r.Next()
	p.leave(t.throttles() > throttled, t.spent().Charge-charge)
	return response, err
}

// enter waits until a call may begin, and returns how long of that was because of the budget. The
// error is the context's.
func (p *pace) enter(ctx context.Context) (delay time.Duration, err error) {
	for {
		wait, released := p.try(time.Now())
		switch {
		case released != nil:
			select {
			case <-released:
			case <-ctx.Done():
				return delay, ctx.Err()
			}
		case wait > 0:
			start, timer := time.Now(), time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
			if delay += time.Since(start); ctx.Err() != nil {
				return delay, ctx.Err()
			}
		default:
			return delay, nil
		}
	}
}

// try begins a call where that is allowed, and then returns zero and nil. Otherwise it returns
// either how long the budget asks to wait, or a channel that is closed when a call ends.
func (p *pace) try(now time.Time) (wait time.Duration, released <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active >= p.limit {
		if p.released == nil {
			p.released = make(chan struct{})
		}
		return 0, p.released
	}
	if p.budget > 0 {
		if !p.updated.IsZero() {
			p.balance = min(p.budget, p.balance+now.Sub(p.updated).Seconds()*p.budget)
		}
		p.updated = now
		if p.balance <= 0 {
			return time.Duration(-p.balance/p.budget*float64(time.Second)) + time.Millisecond, nil
		}
	}
	p.active++
	return 0, nil
}

// leave ends a call. A throttled call halves the limit; after as many calls without one as the
// limit allows, the limit rises by one, up to maxLimit.
func (p *pace) leave(throttled bool, charge float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	p.balance -= charge
	switch p.unthrottled++; {
	case throttled:
		p.limit, p.unthrottled = max(1, p.limit/2), 0
	case p.limit < p.maxLimit && p.unthrottled >= p.limit:
		p.limit, p.unthrottled = p.limit+1, 0
	}
	if p.released != nil {
		close(p.released)
		p.released = nil
	}
}
