package cosmos

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// request is one request, wherever it is sent.
type request struct {
	class   class
	about   subject
	method  string
	path    string
	signed  resource
	headers func(http.Header) // adds to the headers; nil adds none
	body    []byte            // of a query, or of what is written
	primary bool              // it goes to the region that takes writes alone
	streams bool              // the body of the answer is read as it comes, rather than kept
}

// do sends a request to the first region that answers, within the budget and unless the account's
// circuit breaker is open, and hands the answer over. The body is closed afterwards.
func (a *Account) do(ctx context.Context, t *tally, r request, use func(*http.Response) error) error {
	finds, err := a.breaker.enter(ctx, a.options.Now)
	if err != nil {
		return a.failed(r.about, t, err)
	}
	if finds {
		// The others wait for what this call finds.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, failoverTimeout)
		defer cancel()
	}
	reserved, delay, err := a.pace.enter(ctx, r.class, r.about.container)
	t.delay(delay)
	if err != nil {
		a.breaker.leave(false, false, a.options.Now())
		if errors.Is(err, ErrBudget) {
			return err
		}
		return a.failed(r.about, t, err)
	}
	before, throttles, answers, began := t.spent().Charge, t.throttles(), t.answers(), time.Now()
	response, err := a.sendAnywhere(ctx, t, r)
	answered := t.answers() > answers
	known := answered || err == nil || retriable(err) && hadTime(ctx, time.Since(began))
	a.breaker.leave(answered, known, a.options.Now())
	defer func() {
		a.pace.leave(r.class, r.about.container, reserved, t.throttles() > throttles, t.spent().Charge-before)
	}()
	if err != nil {
		return a.failed(r.about, t, err)
	}
	defer runtime.Drain(response)
	return use(response)
}

// timeToAnswer is how long an account has to be silent for that to count, where a deadline ends the call.
const timeToAnswer = 2 * time.Second

// hadTime reports whether an account that did not answer could have: the call was not given up for
// another reason than that.
func hadTime(ctx context.Context, took time.Duration) bool {
	switch err := ctx.Err(); {
	case err == nil:
		return true
	case errors.Is(err, context.DeadlineExceeded):
		return took >= timeToAnswer
	default:
		return false
	}
}

// sendAnywhere sends a request along the route of regions. While there is another region it is tried
// briefly; in the last one, patiently.
func (a *Account) sendAnywhere(ctx context.Context, t *tally, r request) (*http.Response, error) {
	now := a.options.Now()
	if a.regions.stale(now) {
		a.readRegions(ctx, t)
	}
	route := a.regions.route(now)
	if r.primary {
		route = []string{a.regions.writable()}
	}
	for _, endpoint := range route[:len(route)-1] {
		response, err := a.send(ctx, t, endpoint, r, patience{retries: failoverRetries, timeout: failoverTimeout, again: shouldRetryHere})
		if ctx.Err() != nil || !regionFails(response, err) {
			return response, err
		}
		if response != nil {
			runtime.Drain(response)
		}
		a.regions.markFailed(endpoint, a.options.Now())
	}
	last := patient()
	last.again = func(response *http.Response, err error) bool { return !a.breaker.open() && shouldRetry(response, err) }
	return a.send(ctx, t, route[len(route)-1], r, last)
}

// shouldRetryHere retries in a region what another region would not do better. A region that does not
// answer is not asked twice.
func shouldRetryHere(response *http.Response, err error) bool {
	return err == nil && shouldRetry(response, nil)
}
