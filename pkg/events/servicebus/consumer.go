package servicebus

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/events"
)

// Handler acts on a scale event. nil settles the event. After an error the event is handled again, after
// 1 s, 2 s, 4 s and so on up to 30 s, unless a newer event of its subject has come. After six failures it
// goes back to the queue, which delivers it again until its maximum delivery count. An error that wraps
// events.ErrDeadLetter moves it to the dead-letter queue, with the error as the reason. Errors are
// logged.
//
// ctx ends when the lock on the event is lost, or when the grace of a stop is over. The events of one
// subject are handled one at a time, those of several subjects in parallel.
type Handler func(ctx context.Context, e events.ScaleEvent) error

// ConsumerOptions say how events are taken from a queue. The zero value suits a queue without sessions.
type ConsumerOptions struct {
	// Subscription is the subscription that is consumed; the name of the queue is then that of its topic.
	// Everything said about queues applies to subscriptions.
	Subscription string

	Sessions    bool          // the queue requires sessions
	Concurrency int           // handlers under way at once, each for another subject; 0 = 16
	Grace       time.Duration // for handlers to end when Run stops; 0 = 10 s
	TryTimeout  time.Duration // of connecting, tokens included, and of settling or renewing one message; 0 = 5 s
	RetryDelay  time.Duration // before a handler, or the connection, is tried again: it doubles, up to 30 times the first; 0 = 1 s

	// Client is handed to the SDK: TLS, a proxy, a custom endpoint. Its RetryOptions are not used.
	Client azservicebus.ClientOptions

	// Log receives failures, and at debug level the events that are completed without being handled. It
	// gets no body of a message. nil = nothing is logged.
	Log *slog.Logger
}

// maxPause is the longest pause between tries.
func (o ConsumerOptions) maxPause() time.Duration { return 30 * o.RetryDelay }

// Consumer takes scale events from one queue, by peek-lock, and has those of each subject handled in
// order.
//
// Events come at least once, and a replica count is a level, not a difference. So these events are
// completed without being handled: a stale or repeated one, one that a newer event of its subject
// supersedes, and one that is older than the time to live of its message, by this machine's clock. The
// consumer remembers the last event of each subject, in memory and for one Run: after a restart, the first
// event of a subject counts, whatever its place.
//
// Anything but a scale event goes to the dead-letter queue, with the reason. Without sessions, two
// consumers of one queue may handle events of one subject at the same time.
type Consumer struct {
	queue   queue
	options ConsumerOptions
}

// NewConsumer returns a Consumer that authenticates with a connection string, whose policy needs the
// Listen right. Connection string and queue are as for NewPublisher. It connects in Run.
func NewConsumer(connectionString, queue string, o ConsumerOptions) (*Consumer, error) {
	return newConsumer(namespace{byKey: true, connectionString: connectionString}, queue, o)
}

// NewConsumerWithIdentity returns a Consumer that authenticates with an identity, which needs the role
// Azure Service Bus Data Receiver on the queue. The namespace is fully qualified, as in
// shop.servicebus.windows.net.
func NewConsumerWithIdentity(host string, identity azcore.TokenCredential, queue string, o ConsumerOptions) (*Consumer, error) {
	return newConsumer(namespace{host: host, identity: identity}, queue, o)
}

func newConsumer(n namespace, name string, o ConsumerOptions) (*Consumer, error) {
	o.Concurrency = cmp.Or(max(0, o.Concurrency), 16)
	o.Grace = cmp.Or(max(0, o.Grace), 10*time.Second)
	o.RetryDelay = cmp.Or(max(0, o.RetryDelay), time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	q, err := n.reach(name, o.Client, cmp.Or(max(0, o.TryTimeout), 5*time.Second), o.RetryDelay)
	if err != nil {
		return nil, err
	}
	q.subscription, q.sessions = o.Subscription, o.Sessions
	return &Consumer{queue: q, options: o}, nil
}

// Run receives until ctx ends. Then it takes nothing more, lets the handlers under way end, gives back
// what was not handled, and returns nil. If handlers outlast the grace, it ends their ctx and returns an
// error.
//
// Run waits for a broker that is out of reach. It returns an error only for what another try would not
// change, such as a queue that does not exist or a key that is refused, and only until the connection has
// worked once. The error is a *Refusal if the service refused.
func (c *Consumer) Run(ctx context.Context, handle Handler) error {
	r := newConsumerRun(ctx, c, handle)
	pause, logged, everWorked := c.options.RetryDelay, slog.LevelDebug, false
	for {
		err := r.connection(func() {
			if logged > slog.LevelDebug {
				r.log.Info("scale events are received again")
			}
			pause, logged, everWorked = c.options.RetryDelay, slog.LevelDebug, true
		})
		if ctx.Err() != nil {
			return r.stop()
		}
		final, level := isFinal(err), slog.LevelDebug // one outage is logged once, not at every try
		err = c.queue.explain(err, 1)
		switch {
		case final && !everWorked:
			_ = r.stop()
			return fmt.Errorf("consuming scale events: %w", err)
		case final && logged < slog.LevelError:
			level, logged = slog.LevelError, slog.LevelError
		case logged < slog.LevelWarn:
			level, logged = slog.LevelWarn, slog.LevelWarn
		}
		r.log.Log(ctx, level, "no scale events are received: trying again", slog.Any("error", err), slog.String("after", pause.String()))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, c.options.maxPause())
	}
}
