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
			key, secretErr := ParseSecret(o.Secret)
			if o.Flag("url") == "" {
				return nil, errors.Join(errors.New("--url: is missing; --action webhook needs the address to post to, as in --url https://HOST/PATH"), secretErr)
			}
			action, err := New(o.Flag("url"), key, timeout)
			return action, errors.Join(err, secretErr)
		},
	}
}

// timeout is the limit of one request (docs/webhook.md).
const timeout = 15 * time.Second

// Action posts each event to one URL, once: the consumer tries again what failed, unless a newer event has
// come. A status of 200 to 299 accepts the event. No answer, 408, 429 and 500 or above may pass, and so may
// 401, 403 and 404, when a key has been changed or a receiver deployed. Any other status is a permanent
// refusal. So is a redirect: its host was not configured.
type Action struct {
	url      string
	receiver string // scheme and host; path and query of a webhook's URL often contain a secret
	key      []byte
	client   *http.Client
}

// New returns an Action that posts to an http or https URL, and signs with a key (see ParseSecret), nil for
// none. timeout is the limit of one request. New makes no request; an error is about the URL and does not
// contain it.
func New(address string, key []byte, timeout time.Duration) (*Action, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("--url: the URL of the webhook is not an address; allowed is https://HOST/PATH, or http:// inside a trusted network")
	}
	client := bounded.NewClient()
	client.Timeout = timeout
	return &Action{url: u.String(), receiver: u.Scheme + "://" + u.Host, key: key, client: client}, nil
}

// Target returns the name of the receiver, without its path.
func (a *Action) Target(events.ScaleEvent) (string, error) { return "webhook " + a.receiver, nil }

// Act posts the event, and returns when the receiver has accepted or refused it.
func (a *Action) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	body, err := e.Body()
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("User-Agent", "feedscale")
	request.Header.Set("Content-Type", events.ContentType)
	a.sign(request.Header, e.ID(), body)
	answer, err := a.client.Do(request)
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
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500:
		return false, fmt.Errorf("webhook %s does not take events now (%s): see the receiver's log", a.receiver, status)
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusNotFound:
		return false, fmt.Errorf("webhook %s refuses the event (%s): correct its URL or the secret, or see the receiver's log", a.receiver, status)
	case code >= 300 && code < 400:
		return false, fmt.Errorf("webhook %s redirects (%s), which is not followed: give the address that it leads to: %w", a.receiver, status, events.ErrDeadLetter)
	}
	return false, fmt.Errorf("webhook %s refuses the event (%s): see the receiver's log: %w", a.receiver, status, events.ErrDeadLetter)
}

// sign sets the headers of the Standard Webhooks specification; without a key there is no signature.
func (a *Action) sign(header http.Header, id string, body []byte) {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", timestamp)
	if a.key != nil {
		mac := hmac.New(sha256.New, a.key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
}

// ParseSecret returns the key in a secret in the form of the specification: base64 of 24 to 64
// bytes. The prefix whsec_ may be left out, as the specification's libraries allow. No secret has no key.
// The error never contains the secret.
func ParseSecret(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), "whsec_"))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("FEEDSCALE_WEBHOOK_SECRET: the secret of the webhook is not one; allowed is base64 of 24 to 64 bytes, as 'openssl rand -base64 32' makes it, with or without whsec_ before it")
	}
	return key, nil
}
