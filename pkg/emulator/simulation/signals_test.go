package simulation_test

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/state"
)

const signalNamespace = "Endpoint=sb://simulated.servicebus.windows.net/;SharedAccessKeyName=all;SharedAccessKey=" + accountKey

// signalQueue is a queue of signals: the sequence numbers of its messages, the oldest first.
type signalQueue struct {
	messages []int64
	last     int64 // sequence number
	used     bool  // by a process: the store has its name
	least    int   // that it may hold in this tick: the least that it held or that anybody wanted
}

// signals returns the signals of one process: those of production, over links to the queues of the world.
func (p *process) signals() signalKeeper {
	publisher, err := servicebus.NewPublisher(signalNamespace, "scale-events", servicebus.PublisherOptions{})
	if err != nil {
		panic(err)
	}
	s := servicebus.NewSignals(publisher, servicebus.SignalsOptions{
		Link: func(queue string) servicebus.Link { return &signalLink{p.w, p, queue} },
	})
	return signalKeeper{s, p.w}
}

// signalKeeper sees what a poller asks of its signal queues.
type signalKeeper struct {
	*servicebus.Signals
	w *world
}

func (k signalKeeper) Keep(ctx context.Context, queue string, replicas int) error {
	k.w.mu.Lock()
	subject := k.w.signalled()[queue]
	if !slices.Contains(k.w.wanted[subject], replicas) {
		k.w.fail("a signal queue is kept at what was decided", "%s of %q: %d, and %v were", queue, subject, replicas, k.w.wanted[subject])
	}
	k.w.wants(queue, replicas)
	k.w.mu.Unlock()
	return k.Signals.Keep(ctx, queue, replicas)
}

func (k signalKeeper) Empty(ctx context.Context, queue string) error {
	k.w.mu.Lock()
	if subject, named := k.w.signalled()[queue]; named {
		k.w.fail("a signal queue that is named is not emptied", "%s of %s", queue, subject)
	}
	k.w.wants(queue, 0)
	k.w.mu.Unlock()
	return k.Signals.Empty(ctx, queue)
}

// signalled returns the subjects that have a signal queue now, by its name.
func (w *world) signalled() map[string]string {
	subjects := map[string]string{}
	for _, c := range w.configured() {
		if c.signal != "" {
			subjects[c.signal] = c.name
		}
	}
	if w.groupSignal != "" && len(w.members()) > 0 {
		subjects[w.groupSignal] = groupName
	}
	return subjects
}

func (w *world) signalQueueOf(name string) *signalQueue {
	if w.queues[name] == nil {
		w.queues[name] = &signalQueue{}
	}
	return w.queues[name]
}

func (w *world) wants(queue string, n int) {
	q := w.signalQueueOf(queue)
	q.least = min(q.least, n)
}

// prepareSignals is what happens to signal queues between two ticks, and what a tick may make of them.
func (w *world) prepareSignals() {
	w.wanted = map[string][]int{}
	for name, r := range w.rows {
		w.decided(name, &r.last)
	}
	for _, name := range sortedKeys(w.signalled()) {
		q := w.signalQueueOf(name)
		if w.happens("signals taken", name, 0) {
			q.messages = q.messages[min(len(q.messages), 1+w.dice.upTo(3, "signals", name, w.tick)):]
			w.tell("somebody takes signals of %s: %d are left", name, len(q.messages))
		}
		if w.happens("signals put", name, 0) {
			q.put(1 + w.dice.upTo(4, "signals", name, w.tick))
			w.tell("somebody puts signals into %s: %d are there", name, len(q.messages))
		}
	}
	for _, q := range w.queues {
		q.least = len(q.messages)
	}
}

// decided notes what is decided for a subject: any of what was in a tick may be kept in its queue.
func (w *world) decided(subject string, s *state.State) {
	if n := s.Memory.Replicas; n != nil {
		w.wanted[subject] = append(w.wanted[subject], *n)
	}
}

func (q *signalQueue) put(n int) {
	for range n {
		q.last++
		q.messages = append(q.messages, q.last)
	}
}

// signalLink is the connection of one process to one queue, which hands out the oldest message first.
type signalLink struct {
	w     *world
	p     *process
	queue string
}

// call makes one request: do takes effect, unless a fault comes before.
func (l *signalLink) call(ctx context.Context, op string, do func(*signalQueue)) error {
	w := l.w
	op = "signals " + op + " " + l.queue
	attempt, err := l.p.begin(ctx, op)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := l.p.arrive(op); err != nil {
		return err
	}
	w.signalQueueOf(l.queue).used = true
	switch {
	case w.lasts("broker unreachable", "broker", 5):
		w.tell("%s %s: out of reach", l.p.name, op)
		return errors.New("no route")
	case w.happens("signals hang", op, attempt):
		w.tell("%s %s: no answer", l.p.name, op)
		return w.hang(ctx, l.p, op, attempt)
	case w.happens("signals error", op, attempt):
		w.tell("%s %s: refused", l.p.name, op)
		return errors.New("the broker is busy")
	}
	q := w.signalQueueOf(l.queue)
	do(q)
	w.tell("%s %s: done, it holds %d", l.p.name, op, len(q.messages))
	if w.happens("signals answer lost", op, attempt) {
		w.tell("%s %s: the answer is lost", l.p.name, op)
		return errors.New("the broker gave no answer")
	}
	return l.p.depart()
}

func (l *signalLink) PeekMessages(ctx context.Context, n int, o *azservicebus.PeekMessagesOptions) (page []*azservicebus.ReceivedMessage, err error) {
	err = l.call(ctx, "peek", func(q *signalQueue) {
		for _, number := range q.messages {
			if number >= *o.FromSequenceNumber && len(page) < n {
				page = append(page, signal(number))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

func signal(number int64) *azservicebus.ReceivedMessage {
	return &azservicebus.ReceivedMessage{Subject: new(servicebus.SignalType), SequenceNumber: &number}
}

func (l *signalLink) Send(ctx context.Context, messages ...*azservicebus.Message) error {
	return l.call(ctx, "send", func(q *signalQueue) { q.put(len(messages)) })
}

// ReceiveMessages waits for a message where there is none.
func (l *signalLink) ReceiveMessages(ctx context.Context, _ int, _ *azservicebus.ReceiveMessagesOptions) (page []*azservicebus.ReceivedMessage, err error) {
	err = l.call(ctx, "receive", func(q *signalQueue) {
		if len(q.messages) == 0 {
			return
		}
		page = append(page, signal(q.messages[0]))
		q.messages = q.messages[1:]
		least := q.least
		if n := len(l.w.processes); n > 1 {
			least -= n // each may take one too much, and puts it back
		}
		if len(q.messages) < least {
			l.w.fail("a signal queue never holds less than it did and is to", "%s: %d, not %d", l.queue, len(q.messages), least)
		}
	})
	if err != nil {
		return nil, err // what was on its way is deleted all the same
	}
	if len(page) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return page, nil
}

func (l *signalLink) Close(context.Context) error { return nil }

// checkSignals: once faults are over, each queue holds what its subject has decided, and one that nothing
// names any more, if a process has used it, nothing.
func (w *world) checkSignals() {
	named := w.signalled()
	for _, name := range sortedKeys(w.queues) {
		q, want := w.queues[name], 0
		if subject := named[name]; subject != "" {
			r := w.rows[subject]
			if r == nil || r.last.Memory.Replicas == nil {
				continue
			}
			want = *r.last.Memory.Replicas
		} else if !q.used {
			continue // what others put there stays
		}
		if len(q.messages) != want {
			w.fail("a signal queue holds a message for each replica", "%s of %q: %d, want %d", name, named[name], len(q.messages), want)
		}
	}
}
