package demo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/events"
)

// queue carries the scale events.
const queue = "scale-events"

// Event is a scale event that was consumed.
type Event struct {
	Time      time.Time // of the decision
	Processor string
	Sequence  int64
	From, To  int    // replicas asked for before and from now on
	Status    string // of the processor, as the event has it
}

// recentEvents is how many events of each processor are kept for Snapshot.
const recentEvents = 5

// consumer scales fleets as the events on the queue say.
type consumer struct {
	client  *azservicebus.Client
	fleets  map[string]*fleet // by processor
	onEvent func(Event)
	log     *slog.Logger

	mu     sync.Mutex
	recent map[string][]Event // by processor, the oldest first
}

const (
	receiveBatch  = 16          // messages that are locked at a time
	receivePause  = time.Second // before another try where the queue cannot be read
	settleTimeout = 5 * time.Second
)

// run consumes until ctx ends.
func (c *consumer) run(ctx context.Context) error {
	receiver, err := c.client.NewReceiverForQueue(queue, nil)
	if err != nil {
		return fmt.Errorf("receiving scale events: %w", err)
	}
	for ctx.Err() == nil {
		messages, err := receiver.ReceiveMessages(ctx, receiveBatch, nil)
		for _, m := range messages {
			c.consume(ctx, receiver, m)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("scale events cannot be received", "queue", queue, "error", err.Error())
			sleep(ctx, receivePause)
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// consume acts upon one message and settles it. What is no scale event, or of nobody here, is dead-lettered: it would not be
// understood the next time either.
func (c *consumer) consume(ctx context.Context, receiver *azservicebus.Receiver, m *azservicebus.ReceivedMessage) {
	settling, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := c.act(ctx, m.Body)
	if err == nil {
		err = receiver.CompleteMessage(settling, m, nil)
	} else {
		c.log.Warn("a message on the queue is set aside", "queue", queue, "message", m.MessageID, "error", err.Error())
		reason := err.Error()
		err = receiver.DeadLetterMessage(settling, m, &azservicebus.DeadLetterOptions{Reason: &reason})
	}
	if err != nil && ctx.Err() == nil {
		c.log.Warn("a scale event cannot be settled and will come again", "message", m.MessageID, "error", err.Error())
	}
}

// act scales the fleet that the event is about, unless a later event came before: events may come twice, and where the queue
// has no sessions, in another order.
func (c *consumer) act(ctx context.Context, body []byte) error {
	e, err := events.Decode(body)
	if err != nil {
		return err
	}
	fleet := c.fleets[e.Processor]
	if fleet == nil {
		return fmt.Errorf("there is no processor %q here", e.Processor)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	recent := c.recent[e.Processor]
	if n := len(recent); n > 0 && e.Sequence <= recent[n-1].Sequence {
		return nil
	}
	event := Event{Time: e.Time, Processor: e.Processor, Sequence: e.Sequence, To: e.DesiredReplicas, Status: e.Status}
	event.From = fleet.scale(ctx, e.DesiredReplicas)
	recent = append(recent, event)
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
