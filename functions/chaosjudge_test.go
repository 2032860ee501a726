package main_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
)

// judge sees every event that is sent and every event that a consumer receives, and reports broken
// promises.
type judge struct {
	breaks func(format string, args ...any)

	mu       sync.Mutex
	bodies   map[string][]byte            // of everything sent, by message id
	perLink  map[uint64]map[string]string // the last id, by connection and subject
	held     map[string]int               // the replicas below which a subject must never go again
	consumed map[string]events.ScaleEvent // the newest, by subject
}

func newJudge(breaks func(string, ...any)) *judge {
	return &judge{
		breaks: breaks, bodies: map[string][]byte{}, perLink: map[uint64]map[string]string{},
		held: map[string]int{}, consumed: map[string]events.ScaleEvent{},
	}
}

// sent checks a message that a process sends, even if the broker refuses it.
func (j *judge) sent(r *servicebusfake.Request) {
	if r.Op != servicebusfake.OpSend {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range r.Messages {
		if m.Subject != events.Type {
			continue
		}
		if before, ok := j.bodies[m.ID]; ok && !bytes.Equal(before, m.Body) {
			j.breaks("event %s was sent with two bodies:\n%s\n%s", m.ID, before, m.Body)
		}
		j.bodies[m.ID] = bytes.Clone(m.Body)
		e, err := events.Decode(m.Body)
		if err != nil || e.ID() != m.ID {
			j.breaks("message %s is no event: %v: %s", m.ID, err, m.Body)
			continue
		}
		if j.perLink[r.Connection] == nil {
			j.perLink[r.Connection] = map[string]string{}
		}
		// The ids of one subject sort in the order of its events.
		if last := j.perLink[r.Connection][e.Subject()]; m.ID < last {
			j.breaks("a process sent event %s behind %s", m.ID, last)
		}
		j.perLink[r.Connection][e.Subject()] = m.ID
		j.decided(e)
	}
}

// decided checks one event by itself. The caller holds mu.
func (j *judge) decided(e events.ScaleEvent) {
	// A recent reading may stand in for a partition that is unknown now, but not for the step to zero.
	refused := slices.ContainsFunc(e.Reasons, func(r events.Reason) bool { return strings.Contains(r.Why, "no scale-in") })
	less := e.Direction == "in" || e.PreviousReplicas != nil && e.DesiredReplicas < *e.PreviousReplicas
	if e.Group == "" && !e.Complete && less && (refused || e.DesiredReplicas == 0) {
		body, _ := e.Body()
		j.breaks("scaled in while incomplete: %s", body)
	}
	if least, ok := j.held[e.Subject()]; ok && (e.DesiredReplicas < least || !e.Active) {
		j.breaks("%s has had the same backlog all the time and wanted %d replicas, and now %d, active %t: %+v", e.Subject(), least, e.DesiredReplicas, e.Active, e.Reasons)
	}
}

// hold says that a subject must ask for at least so many replicas from now on.
func (j *judge) hold(subject string, replicas int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held[subject] = replicas
}

func (j *judge) last(subject string) (e events.ScaleEvent, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok = j.consumed[subject]
	return e, ok
}

// newest returns the id of the newest event of a subject that was sent.
func (j *judge) newest(subject string) (id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for sent := range j.bodies {
		if strings.HasPrefix(sent, subject+"-") {
			id = max(id, sent)
		}
	}
	return id
}

func (j *judge) events() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.bodies)
}

// consume reads the queue with the official SDK until ctx ends, by the rule of
// docs/scale-events.md: an event counts if its epoch, then its sequence, is greater than the last.
func (j *judge) consume(ctx context.Context, connection string) {
	for ctx.Err() == nil {
		client, err := azservicebus.NewClientFromConnectionString(connection, &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}})
		if err != nil {
			j.breaks("the consumer cannot connect: %v", err)
			return
		}
		if receiver, err := client.NewReceiverForQueue(testworld.Queue, nil); err == nil {
			for err == nil {
				err = j.receive(ctx, receiver)
			}
		}
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = client.Close(closing) // the broker may be down
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (j *judge) receive(ctx context.Context, receiver *azservicebus.Receiver) error {
	// The SDK waits for ever for an answer of a broker that is down.
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	messages, err := receiver.ReceiveMessages(ctx, 50, nil)
	for _, m := range messages {
		e, err := events.Decode(m.Body)
		if err != nil {
			j.breaks("a consumer got what is no event: %v", err)
			continue
		}
		j.mu.Lock()
		if sent := j.bodies[m.MessageID]; !bytes.Equal(sent, m.Body) {
			j.breaks("a consumer got event %s with another body than was sent", m.MessageID)
		}
		last, ok := j.consumed[e.Subject()]
		if !ok || e.Epoch > last.Epoch || e.Epoch == last.Epoch && e.Sequence > last.Sequence {
			j.consumed[e.Subject()] = e
		}
		j.mu.Unlock()
		if err := receiver.CompleteMessage(ctx, m, nil); err != nil {
			return err
		}
	}
	return err
}
