package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/actions/webhook"
	"github.com/feedscale/feedscale/pkg/events"
)

// secret is the one of the specification's example.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// key is the key in the secret.
func key(t *testing.T) []byte {
	t.Helper()
	key, err := webhook.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign is what a receiver computes, by the specification.
func sign(t *testing.T, id, timestamp, body string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestTheReceiverOfTheseTestsSignsAsTheSpecificationDoes(t *testing.T) {
	t.Parallel()
	got := sign(t, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`)
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func orders() events.ScaleEvent {
	return events.ScaleEvent{
		Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Data: events.Data{Processor: "orders", Sequence: 42, DesiredReplicas: 5, Direction: "out", Status: "lagging", Target: map[string]string{"deployment": "orders"}},
	}
}

// delivery is a request as the receiver got it.
type delivery struct {
	method, path, body string
	header             http.Header
}

// receiver answers with one status after the other, and with the last one from then on.
type receiver struct {
	*httptest.Server
	mu         sync.Mutex
	deliveries []delivery
}

func newReceiver(t *testing.T, answers ...func(http.ResponseWriter)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.deliveries = append(r.deliveries, delivery{request.Method, request.URL.RequestURI(), string(body), request.Header})
		answer := answers[min(len(r.deliveries), len(answers))-1]
		r.mu.Unlock()
		answer(w)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) received() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deliveries
}

// status answers with a status and with headers, given as name, value.
func status(code int, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "an answer that nobody reads")
	}
}

func newAction(t *testing.T, url string, o webhook.Options) *webhook.Action {
	t.Helper()
	if o.RetryDelay == 0 {
		o.RetryDelay = time.Millisecond
	}
	a, err := webhook.New(url, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnEventReachesAReceiverThatFailsTwice(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusServiceUnavailable), status(http.StatusInternalServerError), status(http.StatusNoContent))
	changed, err := newAction(t, r.URL+"/hooks/scale?code=key", webhook.Options{Key: key(t)}).Act(t.Context(), orders())
	if err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	body, err := orders().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got := r.received()
	if len(got) != 3 {
		t.Fatalf("%d deliveries, want 3", len(got))
	}
	for i, d := range got {
		if d.method != http.MethodPost || d.path != "/hooks/scale?code=key" || d.body != string(body) {
			t.Errorf("delivery %d: %s %s %s", i+1, d.method, d.path, d.body)
		}
		if contentType := d.header.Get("Content-Type"); contentType != "application/cloudevents+json" {
			t.Errorf("delivery %d: content type %s", i+1, contentType)
		}
		id, timestamp := d.header.Get("webhook-id"), d.header.Get("webhook-timestamp")
		if id != "orders-000000000042" {
			t.Errorf("delivery %d: webhook-id %s", i+1, id)
		}
		if seconds, err := strconv.ParseInt(timestamp, 10, 64); err != nil || time.Since(time.Unix(seconds, 0)).Abs() > time.Minute {
			t.Errorf("delivery %d: webhook-timestamp %s, %v", i+1, timestamp, err)
		}
		if got, want := d.header.Get("webhook-signature"), sign(t, id, timestamp, d.body); got != want {
			t.Errorf("delivery %d: webhook-signature %s, want %s", i+1, got, want)
		}
	}
}

func TestAReceivedEventIsPostedAsItWasPublished(t *testing.T) {
	t.Parallel()
	made, err := orders().Encode()
	if err != nil {
		t.Fatal(err)
	}
	published := strings.Replace(string(made), `"data":{`, "\"later\": [1.0],\n\"data\":{", 1)
	e, err := events.Decode([]byte(published))
	if err != nil {
		t.Fatal(err)
	}
	r := newReceiver(t, status(http.StatusOK))
	if _, err := newAction(t, r.URL, webhook.Options{}).Act(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if got := r.received()[0].body; got != published {
		t.Errorf("got\n%s\nwant\n%s", got, published)
	}
}

func TestWithoutASecretAnEventIsNotSigned(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusOK))
	if _, err := newAction(t, r.URL, webhook.Options{}).Act(t.Context(), orders()); err != nil {
		t.Fatal(err)
	}
	header := r.received()[0].header
	if header.Get("webhook-id") == "" || header.Get("webhook-timestamp") == "" || header.Values("webhook-signature") != nil {
		t.Errorf("%v", header)
	}
}

func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule       string
		answer     func(http.ResponseWriter)
		tries      int
		deadLetter bool
		says       string
	}{
		{"500 is tried again, then left to the queue", status(500), 3, false, "500 Internal Server Error"},
		{"503 is tried again", status(503), 3, false, "503 Service Unavailable"},
		{"429 is tried again", status(429), 3, false, "429 Too Many Requests"},
		{"408 is tried again", status(408), 3, false, "408 Request Timeout"},
		{"a Retry-After beyond the bound leaves the rest to the queue", status(503, "Retry-After", "3600"), 1, false, "503"},
		{"400 is refused for good", status(400), 1, true, "400 Bad Request"},
		{"401 is left to the queue: a key may be in change", status(401), 1, false, "401 Unauthorized): correct its URL or the secret"},
		{"403 is left to the queue, too", status(403), 1, false, "403 Forbidden): correct its URL or the secret"},
		{"404 is left to the queue: the receiver may be in deployment", status(404), 1, false, "404 Not Found): correct its URL or the secret"},
		{"405 is refused for good", status(405), 1, true, "405 Method Not Allowed"},
		{"410 is refused for good", status(410), 1, true, "410 Gone"},
		{"a redirect is not followed", status(307, "Location", "/elsewhere"), 1, true, "redirects (307 Temporary Redirect)"},
		{"a redirect after which others would ask with GET is not followed", status(303, "Location", "/elsewhere"), 1, true, "redirects (303 See Other)"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, c.answer)
			changed, err := newAction(t, r.URL+"/hooks/T0/hidden?code=hidden", webhook.Options{Key: key(t), Tries: 3}).Act(t.Context(), orders())
			if err == nil || changed {
				t.Fatalf("changed %v, %v", changed, err)
			}
			if got := errors.Is(err, events.ErrDeadLetter); got != c.deadLetter {
				t.Errorf("dead-lettered %v, want %v: %v", got, c.deadLetter, err)
			}
			if got := len(r.received()); got != c.tries {
				t.Errorf("%d tries, want %d", got, c.tries)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), r.URL) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("error %v, want %s of %s in it and no path", err, c.says, r.URL)
			}
		})
	}
}

func TestTheRetryAfterOfTheReceiverIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusTooManyRequests, "Retry-After", "1"), status(http.StatusOK))
	start := time.Now()
	if _, err := newAction(t, r.URL, webhook.Options{}).Act(t.Context(), orders()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < time.Second {
		t.Errorf("tried again after %s", took)
	}
}

func TestAReceiverThatIsNotThereIsTriedAgainAndNamedWithoutItsPath(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = newAction(t, "http://user:hidden@"+address+"/hidden?code=hidden", webhook.Options{Tries: 2}).Act(t.Context(), orders())
	if err == nil || errors.Is(err, events.ErrDeadLetter) || !strings.Contains(err.Error(), "webhook http://"+address+" cannot be reached") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
}

func TestATryThatHangsEndsAndTheNextOneArrives(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter) { <-release }, status(http.StatusOK))
	t.Cleanup(func() { close(release) })
	if _, err := newAction(t, r.URL, webhook.Options{TryTimeout: 200 * time.Millisecond}).Act(t.Context(), orders()); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAStopEndsThePauseBetweenTries(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	r := newReceiver(t, func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusServiceUnavailable)
		stop()
	})
	_, err := newAction(t, r.URL, webhook.Options{RetryDelay: time.Hour}).Act(ctx, orders())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAnEventThatCannotBeEncodedIsNotPosted(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusOK))
	if _, err := newAction(t, r.URL, webhook.Options{}).Act(t.Context(), events.ScaleEvent{}); err == nil || len(r.received()) != 0 {
		t.Errorf("%v, %d deliveries", err, len(r.received()))
	}
}

func TestTheURLIsCheckedBeforeAnythingIsPostedAndNotRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, url, says string }{
		{"a URL has a scheme", "receiver.example/hidden", "allowed is https://HOST/PATH"},
		{"the scheme is http or https", "ftp://receiver.example/hidden", "allowed is https://HOST/PATH"},
		{"a URL has a host", "https:///hidden", "allowed is https://HOST/PATH"},
		{"a URL can be parsed", "https://receiver.example/hidden%zz", "allowed is https://HOST/PATH"},
		{"http is allowed", "http://receiver.example/", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			_, err := webhook.New(c.url, webhook.Options{})
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestASecretIsCheckedAndNotRepeated(t *testing.T) {
	t.Parallel()
	encoded := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, c := range []struct {
		rule, secret string
		length       int // of the key; 0 = it is refused
	}{
		{"it is base64", "whsec_hidden-hidden-hidden-hidden-hidden", 0},
		{"it is long enough", encoded(23), 0},
		{"it is not too long", encoded(65), 0},
		{"24 bytes are one", encoded(24), 24},
		{"64 bytes are one", "whsec_" + encoded(64), 64},
		{"it may end with the line that it was read from", encoded(32) + "\n", 32},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			key, err := webhook.ParseSecret(c.secret)
			if len(key) != c.length || (err == nil) != (c.length > 0) {
				t.Errorf("a key of %d bytes, %v", len(key), err)
			}
			if err != nil && (!strings.Contains(err.Error(), "allowed is base64 of 24 to 64 bytes") || strings.Contains(err.Error(), c.secret)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheTargetIsTheReceiverWithoutItsPath(t *testing.T) {
	t.Parallel()
	target, err := newAction(t, "https://user:hidden@receiver.example/hidden?code=hidden", webhook.Options{}).Target(orders())
	if err != nil || target != "webhook https://receiver.example" {
		t.Errorf("%q, %v", target, err)
	}
}
