package events_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/events"
)

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
func impatient() events.ServiceBusOptions {
	return events.ServiceBusOptions{TryTimeout: 100 * time.Millisecond, Tries: 2, RetryDelay: time.Millisecond}
}

// patient retries at once, and gives a loaded machine its time.
func patient() events.ServiceBusOptions {
	return events.ServiceBusOptions{RetryDelay: time.Millisecond}
}

// newPublisher returns a publisher to the queue scale, and closes it with the test.
func newPublisher(t *testing.T, connectionString string, o events.ServiceBusOptions) *events.ServiceBus {
	t.Helper()
	p, err := events.NewServiceBus(connectionString, "scale", o)
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

func TestAMessageIsTheEvent(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]servicebusfake.QueueSpec{"a plain queue": {}, "a queue with sessions": {RequiresSession: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startBroker(t, "", spec)
			body := encode(t, ordersEvent())
			publish(t, newPublisher(t, s.ConnectionString(), patient()), body)
			messages := s.Messages("scale")
			if len(messages) != 1 {
				t.Fatalf("got %d messages, want 1", len(messages))
			}
			m := messages[0]
			if !bytes.Equal(m.Body, body) {
				t.Errorf("body is %s, want %s", m.Body, body)
			}
			got := []string{m.ID, m.SessionID, m.Subject, m.ContentType}
			if want := []string{"orders-000000000042", "orders", "feedscale.scale.v1", "application/cloudevents+json"}; !reflect.DeepEqual(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			want := map[string]any{"processor": "orders", "sequence": int64(42), "desiredReplicas": int64(5), "direction": "out"}
			if !reflect.DeepEqual(m.Properties, want) {
				t.Errorf("properties are %#v, want %#v", m.Properties, want)
			}
		})
	}
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

func TestManyPublishThroughOneSenderInOrder(t *testing.T) {
	t.Parallel()
	const processors, each = 20, 25
	s := startBroker(t, "", servicebusfake.QueueSpec{})
	connections, links := count(s, servicebusfake.OpOpen), count(s, servicebusfake.OpAttach)
	p := newPublisher(t, s.ConnectionString(), patient())
	var wg sync.WaitGroup
	for i := range processors {
		wg.Go(func() {
			for sequence := range int64(each) {
				if err := p.Publish(t.Context(), numbered(t, fmt.Sprintf("p%d", i), sequence+1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	last := map[string]int64{}
	for _, m := range s.Messages("scale") {
		sequence, _ := m.Properties["sequence"].(int64)
		if sequence != last[m.SessionID]+1 {
			t.Fatalf("%s follows %d", m.ID, last[m.SessionID])
		}
		last[m.SessionID] = sequence
	}
	if len(last) != processors || last["p0"] != each {
		t.Errorf("got the events of %d processors, %d of the first", len(last), last["p0"])
	}
	if connections.Load() != 1 || links.Load() != 1 {
		t.Errorf("got %d connections and %d senders, want one of each", connections.Load(), links.Load())
	}
}

func TestTheSamePublisherSurvivesItsBroker(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{})
	p := newPublisher(t, s.ConnectionString(), patient())
	publish(t, p, numbered(t, "orders", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	err := p.Publish(t.Context(), numbered(t, "orders", 2))
	if err == nil || !strings.Contains(err.Error(), "no working connection to Service Bus namespace "+s.Addr().String()) {
		t.Errorf("without a broker: %v", err)
	}
	again := startBroker(t, s.Addr().String(), servicebusfake.QueueSpec{})
	publish(t, p, numbered(t, "orders", 2))
	if got, want := ids(again.Messages("scale")), []string{"orders-000000000002"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAPublishOutlivesAPassingFailure(t *testing.T) {
	t.Parallel()
	const window = time.Minute
	cases := []struct {
		name            string
		op              servicebusfake.Op
		times           int
		answer          servicebusfake.Answer
		wantConnections int64
	}{
		{"the connection is cut before the message is taken", servicebusfake.OpSend, 1, servicebusfake.Answer{Drop: true}, 2},
		{"the connection is cut after the message was taken", servicebusfake.OpSend, 1, servicebusfake.Answer{Drop: true, LoseReply: true}, 2},
		{"the connection is cut while the sender is attached", servicebusfake.OpAttach, 1, servicebusfake.Answer{Drop: true}, 2},
		{"the broker is busy for a while", servicebusfake.OpSend, 5, servicebusfake.Answer{Condition: "com.microsoft:server-busy"}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startBroker(t, "", servicebusfake.QueueSpec{DuplicateDetectionWindow: window})
			connections := count(s, servicebusfake.OpOpen)
			for range c.times {
				script(s, c.op, c.answer)
			}
			publish(t, newPublisher(t, s.ConnectionString(), patient()), numbered(t, "orders", 1))
			if got, want := ids(s.Messages("scale")), []string{"orders-000000000001"}; !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if got := connections.Load(); got != c.wantConnections {
				t.Errorf("got %d connections, want %d", got, c.wantConnections)
			}
		})
	}
}

func TestARepeatedEventIsDroppedByTheQueue(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{DuplicateDetectionWindow: time.Minute})
	p := newPublisher(t, s.ConnectionString(), patient())
	for _, sequence := range []int64{1, 1, 2, 1} {
		publish(t, p, numbered(t, "orders", sequence))
	}
	if got, want := ids(s.Messages("scale")), []string{"orders-000000000001", "orders-000000000002"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAQueueThatIsCreatedLaterIsFound(t *testing.T) {
	t.Parallel()
	s, err := servicebusfake.Start(servicebusfake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := newPublisher(t, s.ConnectionString(), patient())
	err = p.Publish(t.Context(), numbered(t, "orders", 1))
	if err == nil || !strings.Contains(err.Error(), `queue "scale" does not exist`) {
		t.Fatalf("got %v", err)
	}
	if err := s.CreateQueue(servicebusfake.QueueSpec{Name: "scale"}); err != nil {
		t.Fatal(err)
	}
	publish(t, p, numbered(t, "orders", 1))
}

func TestALinkThatWorkedIsOpenedAnewWhenRefused(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"amqp:unauthorized-access", "amqp:not-found"} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			p := newPublisher(t, s.ConnectionString(), patient())
			publish(t, p, numbered(t, "orders", 1))
			script(s, servicebusfake.OpSend, servicebusfake.Answer{Condition: condition})
			publish(t, p, numbered(t, "orders", 2))
		})
	}
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

func TestABrokerThatHangsEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	mute := func(t *testing.T) string {
		return fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true", silentListener(t), devKey)
	}
	noReply := func(t *testing.T) string {
		s := startBroker(t, "", servicebusfake.QueueSpec{})
		script(s, servicebusfake.OpSend, servicebusfake.Answer{LoseReply: true, Keep: true})
		return s.ConnectionString()
	}
	noToken := func(t *testing.T) string {
		s := startBroker(t, "", servicebusfake.QueueSpec{})
		script(s, servicebusfake.OpPutToken, servicebusfake.Answer{LoseReply: true, Keep: true})
		return s.ConnectionString()
	}
	cases := []struct {
		name    string
		broker  func(*testing.T) string
		options events.ServiceBusOptions
		ctx     time.Duration // 0 = none
		want    string
	}{
		{"it never greets", mute, impatient(), 0, "(2 tries of at most 100ms)"},
		{"it never confirms", noReply, impatient(), 0, "(2 tries of at most 100ms)"},
		{"it never takes the token", noToken, impatient(), 0, "(2 tries of at most 100ms)"},
		{"the caller's deadline comes first", mute, events.ServiceBusOptions{}, 100 * time.Millisecond, "(1 tries of at most 5s)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPublisher(t, c.broker(t), c.options)
			ctx := t.Context()
			if c.ctx > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.ctx)
				defer cancel()
			}
			err := p.Publish(ctx, numbered(t, "orders", 1))
			if err == nil || !strings.Contains(err.Error(), "no answer from Service Bus namespace") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if !errors.Is(err, events.ErrUnreachable) {
				t.Errorf("%v is not ErrUnreachable", err)
			}
		})
	}
}

func TestAHangingTryIsRepeatedOnANewConnection(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{DuplicateDetectionWindow: time.Minute})
	connections := count(s, servicebusfake.OpOpen)
	script(s, servicebusfake.OpSend, servicebusfake.Answer{LoseReply: true})
	p := newPublisher(t, s.ConnectionString(), events.ServiceBusOptions{TryTimeout: 2 * time.Second, RetryDelay: time.Millisecond})
	publish(t, p, numbered(t, "orders", 1))
	publish(t, p, numbered(t, "orders", 2))
	if got, want := ids(s.Messages("scale")), []string{"orders-000000000001", "orders-000000000002"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := connections.Load(); got != 2 {
		t.Errorf("got %d connections, want 2", got)
	}
}

func TestAnErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	refusing := func(op servicebusfake.Op, condition string) func(*testing.T) string {
		return func(t *testing.T) string {
			s := startBroker(t, "", servicebusfake.QueueSpec{MaxMessageSize: 64 << 10})
			if condition != "" {
				script(s, op, servicebusfake.Answer{Condition: condition, Description: "as the test wants it", Keep: true})
			}
			return s.ConnectionString()
		}
	}
	huge := ordersEvent()
	huge.Target = map[string]string{"note": strings.Repeat("x", 100<<10)}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	cases := []struct {
		name   string
		broker func(*testing.T) string
		body   []byte          // nil = an event
		ctx    context.Context // nil = that of the test
		want   string
		lost   bool // ErrUnreachable
	}{
		{"no such queue", refusing(servicebusfake.OpAttach, "amqp:not-found"), nil, nil, "create it, or correct its name", false},
		{"the key is wrong", func(t *testing.T) string {
			host := startBroker(t, "", servicebusfake.QueueSpec{}).Addr().String()
			return fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true", host, devKey)
		}, nil, nil, "whose policy has the Send right", false},
		{"the key has no right to send", refusing(servicebusfake.OpAttach, "amqp:unauthorized-access"), nil, nil, "whose policy has the Send right", false},
		{"the queue is full", refusing(servicebusfake.OpSend, "amqp:resource-limit-exceeded"), nil, nil, "see that its consumer runs", false},
		{"the queue is disabled", refusing(servicebusfake.OpSend, "com.microsoft:entity-disabled"), nil, nil, "enable it", false},
		{"the broker stays busy", refusing(servicebusfake.OpSend, "com.microsoft:server-busy"), nil, nil, "a larger tier", false},
		{"the event is too large", refusing("", ""), encode(t, huge), nil, "shorten the processor's target labels", false},
		{"nobody listens", func(t *testing.T) string {
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			_ = s.Close()
			return s.ConnectionString()
		}, nil, nil, "check its name, and that DNS and firewalls let port", true},
		{"a condition nobody knows, which the SDK takes for a lost connection", refusing(servicebusfake.OpSend, "com.example:moon"), nil, nil, "as the test wants it", true},
		{"the body is no event", refusing("", ""), []byte(`{"a":1}`), nil, "not a scale event: missing specversion, type", false},
		{"the caller has given up", refusing("", ""), nil, ended, "context canceled", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			connectionString := c.broker(t)
			p := newPublisher(t, connectionString, patient())
			if c.body == nil {
				c.body = encode(t, ordersEvent())
			}
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			err := p.Publish(c.ctx, c.body)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if got := errors.Is(err, events.ErrUnreachable); got != c.lost {
				t.Errorf("ErrUnreachable is %v, want %v, in %v", got, c.lost, err)
			}
			withoutSecret(t, err, connectionString)
		})
	}
}

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

func TestAfterAMessageThatIsTooLargeOthersPass(t *testing.T) {
	t.Parallel()
	s := startBroker(t, "", servicebusfake.QueueSpec{MaxMessageSize: 64 << 10})
	p := newPublisher(t, s.ConnectionString(), patient())
	huge := ordersEvent()
	huge.Target = map[string]string{"note": strings.Repeat("x", 100<<10)}
	if err := p.Publish(t.Context(), encode(t, huge)); err == nil {
		t.Error("a message beyond the limit was taken")
	}
	publish(t, p, numbered(t, "orders", 1))
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

func TestAnIdentity(t *testing.T) {
	t.Parallel()
	_, client := startTokenBroker(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	cases := []struct {
		name     string
		identity identity
		timeout  time.Duration
		want     string // in the error; "" = none
	}{
		{"that may send", identity{token: "good-token"}, 0, ""},
		{"that may not", identity{token: "bad-token"}, 0, "give it the role Azure Service Bus Data Sender"},
		{"that gets no token", identity{err: errors.New("no managed identity here")}, 0, "getting a token for Service Bus namespace example.com: no managed identity here"},
		{"whose source never answers", identity{hang: hang}, 50 * time.Millisecond, "no answer from Service Bus namespace example.com"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := events.NewServiceBusWithIdentity("example.com", c.identity, "scale", events.ServiceBusOptions{
				TryTimeout: c.timeout, RetryDelay: time.Millisecond,
				Client: client,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close(context.Background()) })
			err = p.Publish(t.Context(), numbered(t, "orders", 1))
			wantError(t, err, c.want, "-token")
		})
	}
}

func TestCloseWaitsForNoBroker(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		broker func(*testing.T) (connectionString string, busy <-chan struct{})
	}{
		{"that never greets", func(t *testing.T) (string, <-chan struct{}) {
			return fmt.Sprintf("Endpoint=sb://%s;%s;UseDevelopmentEmulator=true", silentListener(t), devKey), nil
		}},
		{"that never confirms", func(t *testing.T) (string, <-chan struct{}) {
			s := startBroker(t, "", servicebusfake.QueueSpec{})
			busy := make(chan struct{})
			s.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
				if r.Op != servicebusfake.OpSend {
					return nil
				}
				close(busy)
				return &servicebusfake.Answer{LoseReply: true}
			})
			return s.ConnectionString(), busy
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			connectionString, busy := c.broker(t)
			p := newPublisher(t, connectionString, events.ServiceBusOptions{TryTimeout: time.Hour})
			published := make(chan error, 1)
			go func() { published <- p.Publish(t.Context(), numbered(t, "orders", 1)) }()
			if busy != nil {
				<-busy
			}
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
			// Both would take an hour if Close, or Publish after it, waited.
			if err := <-published; err == nil || !strings.Contains(err.Error(), "the publisher is closed") {
				t.Errorf("the publish under way says %v", err)
			}
			if err := p.Publish(t.Context(), numbered(t, "orders", 2)); err == nil || !strings.Contains(err.Error(), "the publisher is closed") {
				t.Errorf("a later publish says %v", err)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Errorf("closing again: %v", err)
			}
		})
	}
}

func TestConnectionStrings(t *testing.T) {
	t.Parallel()
	const endpoint = "Endpoint=sb://shop.servicebus.windows.net/;"
	cases := []struct {
		name                    string
		connectionString, queue string
		want                    string // in the error; "" = none
	}{
		{"of a namespace", endpoint + devKey, "scale", ""},
		{"in another order, with a line end", devKey + ";Endpoint=sb://shop.servicebus.windows.net/\n", "scale", ""},
		{"of the queue", endpoint + devKey + ";EntityPath=scale", "scale", ""},
		{"of the queue, which is not named again", endpoint + devKey + ";EntityPath=scale", "", ""},
		{"of another queue", endpoint + devKey + ";EntityPath=other", "scale", `is for "other" (EntityPath)`},
		{"no queue anywhere", endpoint + devKey, "", "no Service Bus queue is named"},
		{"without endpoint", devKey, "scale", "Endpoint"},
		{"without key", endpoint + "SharedAccessKeyName=root", "scale", "SharedAccessKey"},
		{"empty", "", "scale", "reading the Service Bus connection string"},
		{"no connection string at all", "c2VjcmV0LXNlY3JldC1zZWNyZXQ", "scale", "reading the Service Bus connection string"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := events.NewServiceBus(c.connectionString, c.queue, events.ServiceBusOptions{})
			wantError(t, err, c.want, "c2VjcmV0")
			_, err = events.NewConsumer(c.connectionString, c.queue, events.ConsumerOptions{})
			wantError(t, err, c.want, "c2VjcmV0")
		})
	}
}

func TestAnIdentityNeedsNamespaceAndQueue(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, namespace, queue string
		identity               azcore.TokenCredential
		want                   string
	}{
		{"a URL", "https://shop.servicebus.windows.net/", "scale", identity{}, "use its host name"},
		{"no namespace", "", "scale", identity{}, "is no Service Bus namespace"},
		{"no queue", "shop.servicebus.windows.net", "", identity{}, "no Service Bus queue"},
		{"no identity", "shop.servicebus.windows.net", "scale", nil, "no identity"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := events.NewServiceBusWithIdentity(c.namespace, c.identity, c.queue, events.ServiceBusOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
