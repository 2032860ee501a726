package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// ErrDeadLetter, wrapped in the error of a Handler, says that trying again
// would never help: the event goes to the dead-letter queue at once.
var ErrDeadLetter = errors.New("the scale event cannot be acted upon")

// Handler acts on a scale event. nil settles it. An error has it handled again,
// after 1 s, 2 s, 4 s and so on up to 30 s, unless a newer event of the
// processor has come meanwhile; six times in vain, and it goes back to the
// queue, which delivers it again until its maximum delivery count. An error
// that wraps ErrDeadLetter moves it to the dead-letter queue, with the error as
// the reason. Errors are logged.
//
// ctx ends where the event is no longer this consumer's, or where a stop takes
// longer than it may. One processor's events are handled one at a time; those
// of several processors at once.
type Handler func(ctx context.Context, e ScaleEvent) error

// ConsumerOptions say how events are taken from a queue. The zero value is what
// a deployment wants whose queue requires no sessions.
type ConsumerOptions struct {
	Sessions    bool          // the queue requires sessions
	Concurrency int           // handlers under way at once, each for another processor; 0 = 16
	Grace       time.Duration // that handlers have to end when Run is to stop; 0 = 10 s
	TryTimeout  time.Duration // of connecting, tokens included, and of settling or renewing one message; 0 = 5 s
	RetryDelay  time.Duration // the first pause before a handler, or the connection, is tried again; doubles up to 30 times as much; 0 = 1 s

	// Client is handed to the SDK: TLS, a proxy, a custom endpoint. Its
	// RetryOptions are not used.
	Client azservicebus.ClientOptions

	// Log is told of failures, and at debug of events that are dropped. No body
	// of a message is written there. nil = nobody.
	Log *slog.Logger
}

func (o ConsumerOptions) withDefaults() ConsumerOptions {
	if o.Concurrency <= 0 {
		o.Concurrency = 16
	}
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	if o.TryTimeout <= 0 {
		o.TryTimeout = 5 * time.Second
	}
	if o.RetryDelay <= 0 {
		o.RetryDelay = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Client.RetryOptions = retryOnce(o.RetryDelay)
	return o
}

// maxPause is the longest pause between tries.
func (o ConsumerOptions) maxPause() time.Duration { return 30 * o.RetryDelay }

// Consumer takes scale events from one queue, by peek-lock, and has each
// processor's acted upon in order.
//
// Events come at least once, and a replica count is a state, not a difference.
// So an event that is stale or repeated is completed without being handled, and
// where several of one processor wait, only the newest is handled: the others
// are completed as superseded. What was handled last is remembered for each
// processor, in memory and for one Run: after a restart the first event of a
// processor counts, whatever its sequence.
//
// What is no scale event goes to the dead-letter queue, with the reason. Without
// sessions two consumers of one queue may act on one processor at once.
type Consumer struct {
	queue   serviceBusQueue
	options ConsumerOptions
}

// NewConsumer returns a Consumer that authenticates with a connection string,
// whose policy needs the Listen right. What NewServiceBus says of connection
// string and queue holds here too; nothing is connected before Run.
func NewConsumer(connectionString, queue string, o ConsumerOptions) (*Consumer, error) {
	o = o.withDefaults()
	q, err := queueByKey(connectionString, queue, receiving(), o.Client)
	if err != nil {
		return nil, err
	}
	return &Consumer{queue: q, options: o}, nil
}

// NewConsumerWithIdentity returns a Consumer that authenticates with an
// identity, which needs the role Azure Service Bus Data Receiver on the queue.
// The namespace is fully qualified, as in shop.servicebus.windows.net.
func NewConsumerWithIdentity(namespace string, identity azcore.TokenCredential, queue string, o ConsumerOptions) (*Consumer, error) {
	o = o.withDefaults()
	q, err := queueByIdentity(namespace, identity, queue, receiving(), o.TryTimeout, o.Client)
	if err != nil {
		return nil, err
	}
	return &Consumer{queue: q, options: o}, nil
}

// Run receives until ctx ends. Then it takes nothing more, lets the handlers
// under way end, gives back what was not handled and returns nil; handlers that
// outlast the grace have their ctx ended, and are an error.
//
// A broker that is out of reach is waited for. Only what another try would not
// change, as a queue that does not exist or a key that is refused, is an error,
// and only until the connection has worked once.
func (c *Consumer) Run(ctx context.Context, handle Handler) error {
	r := newConsumption(ctx, c, handle)
	pause, said, ever := c.options.RetryDelay, slog.LevelDebug, false
	for {
		worked := false
		err := r.connection(ctx, func() {
			if said > slog.LevelDebug {
				r.log.Info("scale events are received again")
			}
			pause, said, worked, ever = c.options.RetryDelay, slog.LevelDebug, true, true
		})
		if ctx.Err() != nil {
			return r.stop()
		}
		final := isFinal(err)
		err = c.explain(err)
		level := slog.LevelWarn
		if final {
			if !ever {
				_ = r.stop()
				return fmt.Errorf("consuming scale events: %w", err)
			}
			level = slog.LevelError
			if !worked {
				pause = c.options.maxPause()
			}
		}
		if level <= said { // of one outage once, not at every try
			level = slog.LevelDebug
		}
		said = max(said, level)
		r.log.Log(ctx, level, "no scale events are received: trying again", slog.Any("error", err), slog.String("after", pause.String()))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, c.options.maxPause())
	}
}

// explain says what is wrong with the queue as a consumer sees it.
func (c *Consumer) explain(err error) error {
	if errors.Is(err, errLinkLost) {
		return fmt.Errorf("the connection to queue %q of Service Bus namespace %s was lost: where it stays so, see that the namespace is up, and that firewalls let port %s through", c.queue.name, c.queue.host, c.queue.port())
	}
	switch condition(err) {
	case amqp.ErrCondNotAllowed:
		if c.options.Sessions {
			return fmt.Errorf("queue %q of Service Bus namespace %s has no sessions: consume it without, or create it anew with requiresSession", c.queue.name, c.queue.host)
		}
		return fmt.Errorf("queue %q of Service Bus namespace %s requires sessions: consume it with sessions", c.queue.name, c.queue.host)
	case condServerBusy:
		return fmt.Errorf("queue %q of Service Bus namespace %s is throttled (server busy): move the namespace to a larger tier", c.queue.name, c.queue.host)
	}
	return c.queue.explain(err, 1, c.options.TryTimeout)
}

// await returns soon after the end of ctx even where the SDK, which waits for
// locks and tokens without looking at its context, does not.
func await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	returned := make(chan outcome, 1)
	go func() {
		value, err := call()
		returned <- outcome{value, err}
	}()
	select {
	case o := <-returned:
		return o.value, o.err
	case <-ctx.Done():
	}
	// What the SDK has already received is not to stay locked.
	select {
	case o := <-returned:
		return o.value, o.err
	case <-time.After(closeTimeout):
		var none T
		return none, context.Cause(ctx)
	}
}
