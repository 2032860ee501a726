package cosmos

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand" // rather than v2: a simulation sets its seed
	"net/http"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// requestHeaders is about how many headers a request has.
const requestHeaders = 10

// patience is how often, and for how long, one endpoint is tried.
type patience struct {
	retries int           // after the first try
	timeout time.Duration // of a try; 0 = as long as the caller has
	again   func(*http.Response, error) bool
}

// patient is how a request is tried where nobody else can be asked.
func patient() patience { return patience{retries: retries, again: shouldRetry} }

// send sends a request to an endpoint, and again as patience and the service allow. It takes the place of
// azcore's pipeline, whose policies took as much as the request itself (docs/decisions/0022), and keeps
// its rules (azure-sdk-for-go, policy_retry.go).
func (a *Account) send(ctx context.Context, t *tally, endpoint string, r request, p patience) (*http.Response, error) {
	for try := range p.retries + 1 {
		response, err := a.try(ctx, t, endpoint, r, p.timeout)
		if ctxErr := ctx.Err(); ctxErr != nil {
			if err == nil {
				response.Body.Close()
			}
			return nil, ctxErr
		}
		if try == p.retries || isFinal(err) || !p.again(response, err) {
			return response, err
		}
		delay := retryAfter(response)
		switch {
		case delay > longestDelay:
			return response, err
		case delay <= 0:
			delay = min(longestDelay, time.Duration((0.8+rand.Float64()/2)*float64(firstDelay<<(try+1)-firstDelay)))
		}
		if response != nil {
			runtime.Drain(response)
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, nil // not reached: the last try returns
}

// isFinal reports whether an error says that another try would not help.
func isFinal(err error) bool {
	if err == nil {
		return false
	}
	var final interface{ NonRetriable() }
	return errors.As(err, &final)
}

// try sends a request once. An answer that is not streamed has its whole body.
func (a *Account) try(ctx context.Context, t *tally, endpoint string, r request, timeout time.Duration) (*http.Response, error) {
	cancel := func() {}
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, timeout)
	}
	response, err := a.ask(ctx, endpoint, r)
	if err == nil && (!r.streams || response.StatusCode >= http.StatusBadRequest) {
		if _, err = runtime.Payload(response); err != nil {
			response = nil
			if r.method == http.MethodPost {
				err = final{err}
			}
		}
	}
	t.count(response, err)
	if timeout > 0 && err == nil && r.streams {
		response.Body = cancelled{response.Body, cancel}
		return response, nil
	}
	cancel()
	return response, err
}

// ask builds a request, signs it and sends it.
func (a *Account) ask(ctx context.Context, endpoint string, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	out, err := http.NewRequestWithContext(ctx, r.method, endpoint+r.path, body)
	if err != nil {
		return nil, final{err}
	}
	h := make(http.Header, requestHeaders)
	out.Header = h
	if r.body != nil {
		h["Content-Type"] = queryMedia
		if r.method == http.MethodPut {
			h["Content-Type"] = jsonMedia
		}
	}
	if r.headers != nil {
		r.headers(h)
	}
	date := a.dates.at(a.options.Now())
	a.stamp(h, date)
	if h["Authorization"], err = a.authorization(ctx, r, date); err != nil {
		return nil, final{err}
	}
	response, err := a.options.Transport.Do(out)
	if err == nil && response.StatusCode == http.StatusUnauthorized && a.bearer != nil {
		a.bearer.forget(h["Authorization"])
	}
	return response, err
}

// final is an error after which nothing is tried again.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// NonRetriable marks it as azcore does its own.
func (final) NonRetriable() {}

// cancelled is a body that ends the time of its try when it is closed.
type cancelled struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c cancelled) Close() error {
	err := c.ReadCloser.Close()
	c.cancel()
	return err
}

// retryAfter returns how long the service asks to wait, 0 where it does not say. Cosmos DB says it in
// milliseconds, a proxy in seconds or as a date.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if n, err := strconv.Atoi(response.Header.Get(name)); err == nil && n > 0 {
			return time.Duration(n) * time.Millisecond
		}
	}
	text := response.Header.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}
