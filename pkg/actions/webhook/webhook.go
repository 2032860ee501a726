// Package webhook hands scale events to an HTTP receiver. The body is the event
// itself; the signature is that of the Standard Webhooks specification 1.0, for
// which receivers find libraries.
//
// It knows nothing of what the receiver does. Start with Action.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/events"
)

// Options are what may be left out. The zero value is what a deployment wants,
// but for the key.
type Options struct {
	Key        []byte            // signs, see ParseSecret; nil = events are not signed
	Transport  http.RoundTripper // nil = http.DefaultTransport
	Tries      int               // for one event, at least 1; 0 = 4
	TryTimeout time.Duration     // of one try; 0 = 15 s
	RetryDelay time.Duration     // before the second try, growing from then on; 0 = 1 s
}

// maxRetryDelay bounds the pause before another try. A receiver that asks for a
// longer one ends the tries: the queue delivers the event again.
const maxRetryDelay = 30 * time.Second

// Action posts each event to one URL. An answer of 200 to 299 takes the event.
// No answer, 408, 429 and 500 to 599 are tried again, after the Retry-After of
// the receiver where it names one. Any other refuses the event for good.
// Redirects are among them: whoever they lead to was not chosen to have it.
type Action struct {
	url      string
	receiver string // scheme and host: the path and the query of a webhook's URL are often what lets one in
	pipeline runtime.Pipeline
}

// New returns an Action that posts to an http or https URL. No request is made:
// an error is one of the URL, and does not repeat it.
func New(address string, o Options) (*Action, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the URL of the webhook is not an address; allowed is https://HOST/PATH, or http:// inside a trusted network")
	}
	return &Action{url: u.String(), receiver: u.Scheme + "://" + u.Host, pipeline: newPipeline(o)}, nil
}

func newPipeline(o Options) runtime.Pipeline {
	if o.Tries == 0 {
		o.Tries = 4
	}
	if o.TryTimeout == 0 {
		o.TryTimeout = 15 * time.Second
	}
	if o.RetryDelay == 0 {
		o.RetryDelay = time.Second
	}
	retries := int32(o.Tries - 1)
	if retries == 0 {
		retries = -1 // which is how azcore spells none
	}
	return runtime.NewPipeline("", "", runtime.PipelineOptions{PerRetry: []policy.Policy{signature{o.Key}}}, &policy.ClientOptions{
		Telemetry: policy.TelemetryOptions{Disabled: true},
		Retry: policy.RetryOptions{
			MaxRetries: retries, TryTimeout: o.TryTimeout, RetryDelay: o.RetryDelay, MaxRetryDelay: maxRetryDelay,
			ShouldRetry: func(answer *http.Response, err error) bool { return err != nil || isTemporary(answer.StatusCode) },
		},
		Transport: &http.Client{
			Transport:     o.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
}

// isTemporary tells whether the receiver may answer otherwise in a while.
func isTemporary(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// Target is the receiver, without its path.
func (a *Action) Target(events.ScaleEvent) (string, error) { return "webhook " + a.receiver, nil }

// Act posts the event, and returns once the receiver has taken or refused it or
// the tries are used up.
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
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // a connection that was read to its end is used again
	status := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return true, nil
	case isTemporary(answer.StatusCode):
		return false, fmt.Errorf("webhook %s does not take events now (%s): see the receiver's log", a.receiver, status)
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return false, fmt.Errorf("webhook %s redirects (%s), which is not followed: give the address that it leads to: %w", a.receiver, status, events.ErrDeadLetter)
	}
	return false, fmt.Errorf("webhook %s refuses the event (%s): correct its URL or the secret, or see the receiver's log: %w", a.receiver, status, events.ErrDeadLetter)
}

func (a *Action) post(ctx context.Context, id string, body []byte) (*http.Response, error) {
	request, err := runtime.NewRequest(ctx, http.MethodPost, a.url)
	if err != nil {
		return nil, err
	}
	runtime.SkipBodyDownload(request) // its length is the receiver's choice
	request.Raw().Header.Set("User-Agent", "feedscale")
	request.Raw().Header.Set("Content-Type", events.ContentType)
	request.SetOperationValue(content{id: id, body: body})
	return a.pipeline.Do(request)
}

// withoutURL leaves out the URL, which an error of package http repeats.
func withoutURL(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}
