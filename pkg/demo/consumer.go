package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// The scale events are published to a topic. Each of its subscriptions has a copy of all: the world's own,
// and one for whoever runs commands against the world.
const (
	topic               = "scale-events"
	ownSubscription     = "workers"
	visitorSubscription = "you"
)

// visitorTTL is how long the visitor's copies wait.
const visitorTTL = time.Minute

// reconnectAfter is the first pause before the broker is tried again. It doubles up to thirty times as
// much, and in a demo somebody waits.
const reconnectAfter = 100 * time.Millisecond

// Event is a scale event that was acted on.
type Event struct {
	Time      time.Time // of the decision
	Processor string
	Sequence  int64
	From, To  int    // replicas asked for before and from now on
	Status    string // of the processor, as the event has it
}

// recentEvents is how many events of each processor are kept for Snapshot.
const recentEvents = 5

// consumer scales fleets as the events on the queue say. Which events it gets to act on, and how they are settled, is up to the
// consumer of a deployment.
type consumer struct {
	queue   *servicebus.Consumer
	fleets  map[string]*fleet // by processor
	onEvent func(Event)

	mu     sync.Mutex
	recent map[string][]Event // by processor, the oldest first
}

// run consumes until ctx ends, and with it the replicas that were started.
func (c *consumer) run(ctx context.Context) error {
	return c.queue.Run(ctx, func(_ context.Context, e events.ScaleEvent) error { return c.act(ctx, e) })
}

// act scales the fleet that the event is about. ctx is that of the replicas.
func (c *consumer) act(ctx context.Context, e events.ScaleEvent) error {
	fleet := c.fleets[e.Processor]
	if fleet == nil {
		return fmt.Errorf("there is no processor %q here: %w", e.Subject(), events.ErrDeadLetter)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	event := Event{Time: e.Time, Processor: e.Processor, Sequence: e.Sequence, To: e.DesiredReplicas, Status: e.Status}
	event.From = fleet.scale(ctx, e.DesiredReplicas)
	recent := append(c.recent[e.Processor], event)
	c.recent[e.Processor] = recent[max(0, len(recent)-recentEvents):]
	if c.onEvent != nil {
		c.onEvent(event)
	}
	return nil
}

// events returns a copy of the last events of a processor, the oldest first.
func (c *consumer) events(processor string) []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Event(nil), c.recent[processor]...)
}
