package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// The scale events are published to a topic. Each subscription gets a copy of every event: one for
// the world itself, and one for a visitor who runs commands against the world.
const (
	topic               = "scale-events"
	ownSubscription     = "workers"
	visitorSubscription = "you"
)

// visitorTTL is how long the visitor's copies stay.
const visitorTTL = time.Minute

// reconnectAfter is the first pause before the broker is tried again. It doubles up to thirty times
// this. It is short because somebody watches a demo.
const reconnectAfter = 100 * time.Millisecond

// Event is a scale event that the world acted on.
type Event struct {
	Time      time.Time // of the decision
	Processor string
	Sequence  int64
	From, To  int    // replicas before and after
	Status    string // of the processor, at the decision
}

// recentEvents is how many events of each processor a Snapshot has.
const recentEvents = 5

// consumer scales the fleets by the scale events. The consumer of package events chooses and
// settles the events.
type consumer struct {
	queue   *servicebus.Consumer
	fleets  map[string]*fleet // by processor
	onEvent func(Event)

	mu     sync.Mutex
	recent map[string][]Event // by processor, oldest first
}

// run consumes until ctx ends, which also ends the replicas.
func (c *consumer) run(ctx context.Context) error {
	return c.queue.Run(ctx, func(_ context.Context, e events.ScaleEvent) error { return c.act(ctx, e) })
}

// act scales the fleet of the event. ctx is the context of its replicas.
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

// events returns a copy of the last events of a processor, oldest first.
func (c *consumer) events(processor string) []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Event(nil), c.recent[processor]...)
}
