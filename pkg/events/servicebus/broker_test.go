package servicebus_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// ordersEvent is an event of the processor orders.
func ordersEvent() events.ScaleEvent {
	return events.ScaleEvent{
		Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Data: events.Data{Processor: "orders", Sequence: 42, DesiredReplicas: 5, Active: true, Direction: "out", MetricValue: 412, Status: "lagging"},
	}
}

func encode(t *testing.T, e events.ScaleEvent) []byte {
	t.Helper()
	body, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// startBroker starts a namespace with the queue scale, and closes it with the test.
func startBroker(t *testing.T, addr string, spec servicebusfake.QueueSpec) *servicebusfake.Server {
	t.Helper()
	spec.Name = "scale"
	s, err := servicebusfake.Start(servicebusfake.Options{Addr: addr, Queues: []servicebusfake.QueueSpec{spec}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// impatient is for publishers that are to fail: in a test nothing is far away.
func impatient() servicebus.PublisherOptions {
	return servicebus.PublisherOptions{TryTimeout: 100 * time.Millisecond, Tries: 2, RetryDelay: time.Millisecond}
}

// patient retries at once, and gives a loaded machine its time.
func patient() servicebus.PublisherOptions {
	return servicebus.PublisherOptions{RetryDelay: time.Millisecond}
}

// newPublisher returns a publisher to the queue scale, and closes it with the test.
func newPublisher(t *testing.T, connectionString string, o servicebus.PublisherOptions) *servicebus.Publisher {
	t.Helper()
	p, err := servicebus.NewPublisher(connectionString, "scale", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// numbered is the event of a processor with a sequence.
func numbered(t *testing.T, processor string, sequence int64) []byte {
	t.Helper()
	e := ordersEvent()
	e.Processor, e.Sequence = processor, sequence
	return encode(t, e)
}

func publish(t *testing.T, p events.Publisher, body []byte) {
	t.Helper()
	if err := p.Publish(t.Context(), body); err != nil {
		t.Fatal(err)
	}
}

func ids(messages []servicebusfake.Message) []string {
	got := []string{}
	for _, m := range messages {
		got = append(got, m.ID)
	}
	return got
}

// count counts the operations of a kind.
func count(s *servicebusfake.Server, op servicebusfake.Op) *atomic.Int64 {
	var n atomic.Int64
	s.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op == op && !strings.HasSuffix(r.Entity, "$management") && !strings.HasPrefix(r.Entity, "$") {
			n.Add(1)
		}
		return nil
	})
	return &n
}

// script answers the next operation of a kind.
func script(s *servicebusfake.Server, op servicebusfake.Op, answer servicebusfake.Answer) {
	s.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op != op {
			return nil
		}
		return &answer
	})
}

// silentListener accepts connections and never says a word.
func silentListener(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listener.Addr().String()
}

const devKey = "SharedAccessKeyName=root;SharedAccessKey=c2VjcmV0LXNlY3JldC1zZWNyZXQ="

// wantError sees that an error says what is wanted, or that there is none where
// nothing is wanted, and that a secret does not stand in it.
func wantError(t *testing.T, err error, want, secret string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want an error with %q", err, want)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("%q stands in %v", secret, err)
	}
}

// withoutSecret sees that neither key nor signature stands in an error.
func withoutSecret(t *testing.T, err error, connectionString string) {
	t.Helper()
	_, key, _ := strings.Cut(connectionString, "SharedAccessKey=")
	key, _, _ = strings.Cut(key, ";")
	for _, secret := range []string{key, "sig="} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q stands in %v", secret, err)
		}
	}
}

// identity hands out one token, or fails, or never comes back.
type identity struct {
	token string
	err   error
	hang  <-chan struct{} // where not nil, until it is closed, whatever the context says
}

func (i identity) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if i.hang != nil {
		<-i.hang
	}
	return azcore.AccessToken{Token: i.token, ExpiresOn: time.Now().Add(time.Hour)}, i.err
}

// startTokenBroker starts a broker of the namespace example.com, with the options
// that reach it, where "good-token" has every right and other tokens have none.
func startTokenBroker(t *testing.T) (*servicebusfake.Server, azservicebus.ClientOptions) {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for its certificate, which is of example.com
	defer certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	s, err := servicebusfake.Start(servicebusfake.Options{
		TLS:    &tls.Config{Certificates: certified.TLS.Certificates},
		Queues: []servicebusfake.QueueSpec{{Name: "scale"}},
		Token: func(jwt string) error {
			if jwt != "good-token" {
				return errors.New("no")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, azservicebus.ClientOptions{CustomEndpoint: s.Addr().String(), TLSConfig: &tls.Config{RootCAs: roots}}
}

// kind is that of a refusal, "" where the error is none.
func kind(err error) servicebus.Kind {
	var r *servicebus.Refusal
	if errors.As(err, &r) {
		return r.Kind
	}
	return ""
}

// refuseNetwork has the broker refuse tokens as the service does where a network rule forbids the
// address (https://github.com/microsoft/AzureTRE/pull/734).
func refuseNetwork(s *servicebusfake.Server) {
	script(s, servicebusfake.OpPutToken, servicebusfake.Answer{
		Condition: "amqp:unauthorized-access", Description: "Ip has been prevented to connect to the endpoint.", Status: 401, Keep: true,
	})
}
