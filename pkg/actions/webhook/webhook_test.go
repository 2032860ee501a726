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

func newAction(t *testing.T, url string, key []byte) *webhook.Action {
	t.Helper()
	a, err := webhook.New(url, key, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnEventIsPostedAndSigned(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusServiceUnavailable), status(http.StatusInternalServerError), status(http.StatusNoContent))
	a := newAction(t, r.URL+"/hooks/scale?code=key", key(t))
	body, err := orders().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // as a consumer tries
		if changed, err := a.Act(t.Context(), orders()); changed != (i == 2) || (err == nil) != (i == 2) {
			t.Errorf("delivery %d: changed %v, %v", i+1, changed, err)
		}
		if n := len(r.received()); n != i+1 {
			t.Fatalf("%d deliveries, want %d", n, i+1)
		}
		d := r.received()[i]
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
	if _, err := newAction(t, r.URL, nil).Act(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if got := r.received()[0].body; got != published {
		t.Errorf("got\n%s\nwant\n%s", got, published)
	}
}

func TestWithoutASecretAnEventIsNotSigned(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusOK))
	if _, err := newAction(t, r.URL, nil).Act(t.Context(), orders()); err != nil {
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
		deadLetter bool
		says       string
	}{
		{"500 may pass", status(500), false, "500 Internal Server Error"},
		{"503 may pass", status(503), false, "503 Service Unavailable"},
		{"429 may pass", status(429), false, "429 Too Many Requests"},
		{"408 may pass", status(408), false, "408 Request Timeout"},
		{"400 is refused for good", status(400), true, "400 Bad Request"},
		{"401 is left to the queue: a key may be in change", status(401), false, "401 Unauthorized): correct its URL or the secret"},
		{"403 is left to the queue, too", status(403), false, "403 Forbidden): correct its URL or the secret"},
		{"404 is left to the queue: the receiver may be in deployment", status(404), false, "404 Not Found): correct its URL or the secret"},
		{"405 is refused for good", status(405), true, "405 Method Not Allowed"},
		{"410 is refused for good", status(410), true, "410 Gone"},
		{"a redirect is not followed", status(307, "Location", "/elsewhere"), true, "redirects (307 Temporary Redirect)"},
		{"a redirect after which others would ask with GET is not followed", status(303, "Location", "/elsewhere"), true, "redirects (303 See Other)"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, c.answer)
			changed, err := newAction(t, r.URL+"/hooks/T0/hidden?code=hidden", key(t)).Act(t.Context(), orders())
			if err == nil || changed {
				t.Fatalf("changed %v, %v", changed, err)
			}
			if got := errors.Is(err, events.ErrDeadLetter); got != c.deadLetter {
				t.Errorf("dead-lettered %v, want %v: %v", got, c.deadLetter, err)
			}
			if got := len(r.received()); got != 1 {
				t.Errorf("%d tries", got)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), r.URL) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("error %v, want %s of %s in it and no path", err, c.says, r.URL)
			}
		})
	}
}

func TestAReceiverThatIsNotThereIsNamedWithoutItsPath(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = newAction(t, "http://user:hidden@"+address+"/hidden?code=hidden", nil).Act(t.Context(), orders())
	if err == nil || errors.Is(err, events.ErrDeadLetter) || !strings.Contains(err.Error(), "webhook http://"+address+" cannot be reached") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
}

func TestATryThatHangsEndsAndTheNextOneArrives(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter) { <-release }, status(http.StatusOK))
	t.Cleanup(func() { close(release) })
	a, err := webhook.New(r.URL, nil, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Act(t.Context(), orders()); err == nil || errors.Is(err, events.ErrDeadLetter) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v", err)
	}
	if _, err := a.Act(t.Context(), orders()); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAStopEndsATry(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter) {
		stop()
		<-release
	})
	t.Cleanup(func() { close(release) })
	if _, err := newAction(t, r.URL, nil).Act(ctx, orders()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAnEventThatCannotBeEncodedIsNotPosted(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusOK))
	if _, err := newAction(t, r.URL, nil).Act(t.Context(), events.ScaleEvent{}); err == nil || len(r.received()) != 0 {
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
			_, err := webhook.New(c.url, nil, time.Minute)
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
	target, err := newAction(t, "https://user:hidden@receiver.example/hidden?code=hidden", nil).Target(orders())
	if err != nil || target != "webhook https://receiver.example" {
		t.Errorf("%q, %v", target, err)
	}
}
