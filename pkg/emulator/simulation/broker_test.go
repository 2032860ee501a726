package simulation_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
)

// detects is the window of duplicate detection, Service Bus's default
// (https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection).
const detects = 10 * time.Minute

// broker is a queue: at least once, in no order that could be relied upon.
type broker struct {
	messages []message
	seen     map[string]time.Time // when a message id was taken, within the window
}

type message struct {
	event events.ScaleEvent
	id    string
	after int // tick before which nobody gets it
}

// consumer acts on events: the one view of what was decided that anything outside has.
type consumer struct {
	event events.ScaleEvent
	seen  string // id of the event
	lost  string // id of the last message that was lost on its way
}

// sender publishes for one process.
type sender struct {
	w *world
	p *process
}

func (s sender) Publish(ctx context.Context, body []byte) error {
	w := s.w
	e, err := events.Decode(body)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fail("what is published is a scale event", "%v", err)
		return err
	}
	op := "publish " + e.ID()
	attempt, err := s.p.begin(ctx, op)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := s.p.arrive(op); err != nil {
		return err
	}
	switch {
	case w.lasts("broker unreachable", "broker", 5):
		w.tell("%s %s: out of reach", s.p.name, op)
		return fmt.Errorf("%w: no route", events.ErrUnreachable)
	case w.happens("broker hangs", op, attempt):
		w.tell("%s %s: no answer", s.p.name, op)
		return fmt.Errorf("%w: %w", events.ErrUnreachable, w.hang(ctx, s.p, op, attempt))
	case w.happens("broker error", op, attempt):
		w.tell("%s %s: refused", s.p.name, op)
		return errors.New("the broker is busy")
	}
	w.published(s.p, e, body)
	if at, again := w.broker.seen[e.ID()]; !again || time.Since(at) >= detects {
		w.broker.seen[e.ID()] = time.Now()
		w.enqueue(e)
		w.tell("%s %s: taken, %d replicas", s.p.name, op, e.DesiredReplicas)
	} else {
		w.tell("%s %s: a duplicate", s.p.name, op)
	}
	if w.happens("broker answer lost", op, attempt) {
		w.tell("%s %s: the answer is lost", s.p.name, op)
		return errors.New("the broker gave no answer")
	}
	return s.p.depart()
}

func (s sender) Close(context.Context) error { return nil }

func (w *world) enqueue(e events.ScaleEvent) {
	m := message{event: e, id: e.ID(), after: w.tick}
	if w.happens("message lost", m.id, 0) {
		// Somebody else took it, or a consumer completed it and died.
		w.consumerOf(e.Subject()).lost = e.ID()
		w.tell("message %s is lost", m.id)
		return
	}
	if w.happens("message late", m.id, 0) {
		m.after += 1 + w.dice.upTo(6, "late", m.id)
	}
	w.broker.messages = append(w.broker.messages, m)
	if w.happens("message twice", m.id, 0) { // its lock was lost
		m.after += w.dice.upTo(6, "again", m.id)
		w.broker.messages = append(w.broker.messages, m)
	}
}

func (w *world) consumerOf(subject string) *consumer {
	if w.consumers[subject] == nil {
		w.consumers[subject] = &consumer{}
	}
	return w.consumers[subject]
}

// deliver hands over what there is to hand over, in no order of its own.
func (w *world) deliver() {
	var now, later []message
	for _, m := range w.broker.messages {
		if m.after > w.tick && w.faulty {
			later = append(later, m)
		} else {
			now = append(now, m)
		}
	}
	w.broker.messages = later
	slices.SortStableFunc(now, func(a, b message) int {
		return cmp.Compare(w.dice.roll("order", a.id, w.tick), w.dice.roll("order", b.id, w.tick))
	})
	for _, m := range now {
		c := w.consumerOf(m.event.Subject())
		if m.id <= c.seen {
			w.tell("consumer drops %s", m.id)
			continue
		}
		c.seen, c.event = m.id, m.event
		w.tell("consumer acts on %s: %d replicas", m.id, m.event.DesiredReplicas)
	}
	for id, at := range w.broker.seen {
		if time.Since(at) >= detects {
			delete(w.broker.seen, id)
		}
	}
}
