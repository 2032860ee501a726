// Package webhook is the action that posts scale events to an HTTP receiver (docs/webhook.md).
// The body is the event itself; the signature is that of the Standard Webhooks specification 1.0,
// for which there are libraries.
//
// It knows nothing of what the receiver does. Start with Action.
//
// The package is internal to the program: its API may change in any release.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/events"
)

// Kind describes this action to a program that offers it. Without a secret in the options, events
// are not signed.
func Kind() actions.Kind {
	return actions.Kind{
		Name: "webhook", Summary: "POST",
		Flags: []actions.Flag{{Name: "url", Usage: "where webhook posts to; the setting FEEDSCALE_WEBHOOK_SECRET signs"}},
		New: func(o actions.Options) (actions.Action, error) {
			var own Options
			var secretErr error
			if o.Secret != "" {
				if own.Key, secretErr = ParseSecret(o.Secret); secretErr != nil {
					secretErr = fmt.Errorf("FEEDSCALE_WEBHOOK_SECRET: %w", secretErr)
				}
			}
			if o.Flag("url") == "" {
				return nil, errors.Join(errors.New("--url: is missing; --action webhook needs the address to post to, as in --url https://HOST/PATH"), secretErr)
			}
			action, err := New(o.Flag("url"), own)
			if err != nil {
				err = fmt.Errorf("--url: %w", err)
			}
			return action, errors.Join(err, secretErr)
		},
	}
}

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
	key      []byte
	client   policy.ClientOptions
}

// New returns an Action that posts to an http or https URL. It makes no request; an error is about
// the URL and does not contain it.
func New(address string, o Options) (*Action, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the URL of the webhook is not an address; allowed is https://HOST/PATH, or http:// inside a trusted network")
	}
	if o.Transport == nil {
		o.Transport = bounded.NewTransport()
	}
	retries := int32(cmp.Or(o.Tries, 4) - 1)
	return &Action{url: u.String(), receiver: u.Scheme + "://" + u.Host, key: o.Key, client: policy.ClientOptions{
		Telemetry: policy.TelemetryOptions{Disabled: true},
		Retry: policy.RetryOptions{
			MaxRetries: cmp.Or(retries, -1), MaxRetryDelay: maxRetryDelay, // -1 is azcore's value for none
			TryTimeout: cmp.Or(o.TryTimeout, 15*time.Second), RetryDelay: cmp.Or(o.RetryDelay, time.Second),
			ShouldRetry: func(answer *http.Response, err error) bool { return err != nil || isTemporary(answer.StatusCode) },
		},
		Transport: bounded.Client(o.Transport),
	}}, nil
}

// isTemporary reports whether the receiver may accept the event later.
func isTemporary(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// Target returns the name of the receiver, without its path.
func (a *Action) Target(events.ScaleEvent) (string, error) { return "webhook " + a.receiver, nil }

// Act posts the event, and returns when the receiver has accepted or refused it, or the tries are used up.
func (a *Action) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	body, err := e.Body()
	if err != nil {
		return false, err
	}
	answer, err := a.post(ctx, content{a.key, e.ID(), body})
	if err != nil {
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err // which does not contain the URL
		}
		return false, fmt.Errorf("webhook %s cannot be reached: %w", a.receiver, err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // a connection is reused once its body was read
	status := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return true, nil
	case isTemporary(code):
		return false, fmt.Errorf("webhook %s does not take events now (%s): see the receiver's log", a.receiver, status)
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusNotFound:
		return false, fmt.Errorf("webhook %s refuses the event (%s): correct its URL or the secret, or see the receiver's log", a.receiver, status)
	case code >= 300 && code < 400:
		return false, fmt.Errorf("webhook %s redirects (%s), which is not followed: give the address that it leads to: %w", a.receiver, status, events.ErrDeadLetter)
	}
	return false, fmt.Errorf("webhook %s refuses the event (%s): see the receiver's log: %w", a.receiver, status, events.ErrDeadLetter)
}

func (a *Action) post(ctx context.Context, c content) (*http.Response, error) {
	request, err := runtime.NewRequest(ctx, http.MethodPost, a.url)
	if err != nil {
		return nil, err
	}
	runtime.SkipBodyDownload(request) // the receiver could send a body of any length
	request.Raw().Header.Set("User-Agent", "feedscale")
	request.Raw().Header.Set("Content-Type", events.ContentType)
	return runtime.NewPipeline("", "", runtime.PipelineOptions{PerRetry: []policy.Policy{c}}, &a.client).Do(request)
}

// content sets the body and the headers of the Standard Webhooks specification at every try. The
// timestamp is that of the try, since receivers refuse an old one.
type content struct {
	key  []byte // to sign with; nil: without the header webhook-signature
	id   string
	body []byte
}

// Do implements policy.Policy.
func (c content) Do(r *policy.Request) (*http.Response, error) {
	// A new body for each try: if a receiver answers early, net/http may still be reading the last one.
	r.Raw().ContentLength = int64(len(c.body))
	r.Raw().GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	r.Raw().Body, _ = r.Raw().GetBody()
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Raw().Header.Set("webhook-id", c.id)
	r.Raw().Header.Set("webhook-timestamp", timestamp)
	if c.key != nil {
		mac := hmac.New(sha256.New, c.key)
		fmt.Fprintf(mac, "%s.%s.%s", c.id, timestamp, c.body)
		r.Raw().Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return r.Next()
}

// ParseSecret returns the key in a secret in the form of the specification: base64 of 24 to 64
// bytes. The prefix whsec_ may be left out, as the specification's libraries allow. The error never
// contains the secret.
func ParseSecret(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), "whsec_"))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("the secret of the webhook is not one; allowed is base64 of 24 to 64 bytes, as 'openssl rand -base64 32' makes it, with or without whsec_ before it")
	}
	return key, nil
}
