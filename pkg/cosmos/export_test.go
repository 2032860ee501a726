package cosmos

import (
	"context"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/pkg/refusal"
)

// Refuse returns the error of a cause. scope is the resource id of the account if Azure Resource Manager refuses.
func Refuse(about Subject, kind refusal.Kind, host, scope, words string) *refusal.Error {
	return describer{host: host, scope: scope}.refusal(about, kind, words)
}

// Pace gives a test access to a budget, and to the slots of one container.
type Pace struct {
	*budget
	slots *slots
	held  *[]*ticket
	shop  *breaker
}

func NewPace(budget float64, maxLimit int) Pace {
	return Pace{newBudget(nil, budget), &slots{size: maxLimit}, new([]*ticket), new(breaker)}
}

// NewTransport is what an Account without a Transport sends its requests with.
func NewTransport(concurrency int) *http.Transport { return newHTTP(concurrency) }

// Enter takes a slot for a lookup.
func (p Pace) Enter(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	t := &ticket{breaker: new(breaker), cancel: func() {}}
	err := p.slots.take(ctx, t)
	if err == nil {
		*p.held = append(*p.held, t)
	}
	return time.Since(start), err
}

// Leave ends the oldest lookup.
func (p Pace) Leave(charge float64) {
	if held := *p.held; len(held) > 0 {
		*p.held = held[1:]
		p.slots.give(held[0], &http.Response{StatusCode: http.StatusOK}, false)
	}
	p.spend(&call{breaker: p.shop}, 0, charge)
}

// Until lets reads wait for the budget until a time.
func (p Pace) Until(ctx context.Context, until time.Time) context.Context {
	return (&Account{budget: p.budget}).BudgetTurn(ctx, until, time.Time{})
}

// Read is a feed read that costs so much, ended once done is closed.
func (p Pace) Read(ctx context.Context, charge float64, done <-chan struct{}) error {
	c := &call{feed: true, breaker: p.shop}
	reserved, err := p.reserve(ctx, c)
	if err != nil {
		return err
	}
	<-done
	p.spend(c, reserved, charge)
	return nil
}

// Regions gives a test access to the methods of a router, without an account.
type Regions struct{ *router }

func NewRegions(endpoint, own string) Regions { return Regions{newRouter(nil, nil, endpoint, own)} }

func (r Regions) Route(now time.Time) []string              { reads, _ := r.route(now); return reads }
func (r Regions) Writable() string                          { _, writes := r.route(time.Time{}); return writes }
func (r Regions) MarkFailed(endpoint string, now time.Time) { r.markFailed(endpoint, now) }
func (r Regions) Learn(description string)                  { r.learn([]byte(description)) }
