// Package webhook is the action that posts scale events to an HTTP receiver (docs/webhook.md).
// The body is the event itself; the signature is that of the Standard Webhooks specification 1.0,
// for which there are libraries.
//
// It knows nothing of what the receiver does. Start with Action.
//
// The package is internal to the program: its API may change in any release.
package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/events"
)

// Options are optional. The zero value suits a deployment, except that it does not sign.
type Options struct {
	Key        []byte            // to sign with, see ParseSecret; nil = events are not signed
	Transport  http.RoundTripper // nil = that of package bounded
	Tries      int               // tries for one event, at least 1; 0 = 4
	TryTimeout time.Duration     // limit of one try; 0 = 15 s
	RetryDelay time.Duration     // before the second try, growing exponentially from then on; 0 = 1 s
}

// maxRetryDelay is the longest pause before another try. A Retry-After that is longer ends the
// tries; then the queue delivers the event again.
const maxRetryDelay = 30 * time.Second

// Action posts each event to one URL. A status of 200 to 299 accepts the event. After no answer, 408, 429
// and 500 or above it tries again, after the receiver's Retry-After if there is one. 401, 403 and 404 may
// pass when a key has been changed or a receiver deployed: the caller may try later. Any other status is a
// permanent refusal, also a redirect: nobody chose its host as a receiver.
type Action struct {
	url      string
	receiver string // scheme and host; path and query of a webhook's URL often contain a secret
	pipeline runtime.Pipeline
}

// New returns an Action that posts to an http or https URL. It makes no request; an error is about
// the URL and does not contain it.
func New(address string, o Options) (*Action, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the URL of the webhook is not an address; allowed is https://HOST/PATH, or http:// inside a trusted network")
	}
	return &Action{url: u.String(), receiver: u.Scheme + "://" + u.Host, pipeline: newPipeline(o)}, nil
}

func newPipeline(o Options) runtime.Pipeline {
	if o.Transport == nil {
		o.Transport = bounded.NewTransport()
	}
	retries := int32(cmp.Or(o.Tries, 4) - 1)
	if retries == 0 {
		retries = -1 // azcore's value for none
	}
	return runtime.NewPipeline("", "", runtime.PipelineOptions{PerRetry: []policy.Policy{signature{o.Key}}}, &policy.ClientOptions{
		Telemetry: policy.TelemetryOptions{Disabled: true},
		Retry: policy.RetryOptions{
			MaxRetries: retries, MaxRetryDelay: maxRetryDelay,
			TryTimeout: cmp.Or(o.TryTimeout, 15*time.Second), RetryDelay: cmp.Or(o.RetryDelay, time.Second),
			ShouldRetry: func(answer *http.Response, err error) bool { return err != nil || isTemporary(answer.StatusCode) },
		},
		Transport: bounded.Client(o.Transport),
	})
}

// isTemporary reports whether the receiver may accept the event later.
func isTemporary(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// mayBeFixed reports whether the receiver refuses for a reason outside the event.
func mayBeFixed(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound
}

// Target returns the name of the receiver, without its path.
func (a *Action) Target(events.ScaleEvent) (string, error) { return "webhook " + a.receiver, nil }

// Act posts the event, and returns when the receiver has accepted or refused it, or the tries are used up.
func (a *Action) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	body, err := e.Body()
	if err != nil {
		return false, err
	}
	answer, err := a.post(ctx, e.ID(), body)
	if err != nil {
		return false, fmt.Errorf("webhook %s cannot be reached: %w", a.receiver, withoutURL(err))
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // a connection is reused once its body was read
	status := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return true, nil
	case isTemporary(answer.StatusCode):
		return false, fmt.Errorf("webhook %s does not take events now (%s): see the receiver's log", a.receiver, status)
	case mayBeFixed(answer.StatusCode):
		return false, fmt.Errorf("webhook %s refuses the event (%s): correct its URL or the secret, or see the receiver's log", a.receiver, status)
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return false, fmt.Errorf("webhook %s redirects (%s), which is not followed: give the address that it leads to: %w", a.receiver, status, events.ErrDeadLetter)
	}
	return false, fmt.Errorf("webhook %s refuses the event (%s): see the receiver's log: %w", a.receiver, status, events.ErrDeadLetter)
}

func (a *Action) post(ctx context.Context, id string, body []byte) (*http.Response, error) {
	request, err := runtime.NewRequest(ctx, http.MethodPost, a.url)
	if err != nil {
		return nil, err
	}
	runtime.SkipBodyDownload(request) // the receiver could send a body of any length
	request.Raw().Header.Set("User-Agent", "feedscale")
	request.Raw().Header.Set("Content-Type", events.ContentType)
	request.SetOperationValue(content{id: id, body: body})
	return a.pipeline.Do(request)
}

// withoutURL returns an error of net/http without the URL that it contains.
func withoutURL(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}
