package cosmos

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// pace is how fast an account is asked: at most so many request units a second,
// where there is a budget, and with fewer calls at once while the account
// throttles.
type pace struct {
	budget float64 // request units a second; 0 = unlimited
	most   int     // calls under way at once, at least 1

	mu       sync.Mutex
	balance  float64   // request units that may be spent; below 0 what was spent too early
	counted  time.Time // when balance was right; zero before the first call
	limit    int       // of calls under way, from 1 to most
	active   int
	calm     int           // calls since the limit changed
	released chan struct{} // closed when a call has ended; nil while nobody waits for that
}

func newPace(budget float64, most int) *pace {
	return &pace{budget: budget, most: most, limit: most, balance: budget}
}

// gate lets a call begin when the pace allows it: ahead of the retries, whose
// timeout is for answers. How long the budget made it wait is added to its
// tally; the wait ends with the call's context.
func (p *pace) gate(r *policy.Request) (*http.Response, error) {
	t, _ := r.Raw().Context().Value(meter{}).(*tally)
	if t == nil {
		t = &tally{} // of a request that the SDK makes on its own
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

// enter waits for a turn, and returns for how long because of the budget.
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

// try takes a turn where there is one. Otherwise it says how long the budget
// wants to wait, or what is closed when a call has ended.
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
		if !p.counted.IsZero() {
			p.balance = min(p.budget, p.balance+now.Sub(p.counted).Seconds()*p.budget)
		}
		p.counted = now
		if p.balance <= 0 {
			return time.Duration(-p.balance/p.budget*float64(time.Second)) + time.Millisecond, nil
		}
	}
	p.active++
	return 0, nil
}

// leave gives the turn back. A call that was throttled halves how many may be
// under way; as many calm ones as there may be let one more.
func (p *pace) leave(throttled bool, charge float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	p.balance -= charge
	switch p.calm++; {
	case throttled:
		p.limit, p.calm = max(1, p.limit/2), 0
	case p.limit < p.most && p.calm >= p.limit:
		p.limit, p.calm = p.limit+1, 0
	}
	if p.released != nil {
		close(p.released)
		p.released = nil
	}
}
