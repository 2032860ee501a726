package poller

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// Signals keeps messages in queues, one for each replica that is wanted (docs/signal-queue.md).
type Signals interface {
	// Namespace names where the queues are.
	Namespace() string

	// Keep makes a queue hold so many messages. Its error says what to do. It returns soon after
	// ctx ends.
	Keep(ctx context.Context, queue string, replicas int) error

	// Empty takes all messages of ours out of a queue that may no longer exist.
	Empty(ctx context.Context, queue string) error
}

// forgetAfter is how long a queue that nothing names any more is emptied at each tick: a process
// with an older configuration may still run, and fill it.
const forgetAfter = 10 * time.Minute

// knownSignals are what a process knows of its signal queues.
type knownSignals struct {
	idle    atomic.Bool // there are none, neither configured nor left
	emptied sync.Map    // names of left queues that this process has emptied
}

// signalTurn keeps the signal queues in one tick; a nil one keeps none.
type signalTurn struct {
	*tick
	slots     slots
	namespace string   // where the queues are; "" = there can be none
	queues    []string // that are configured
	// begun is closed once remembered is known. It is no sync.Once, since a simulated clock stands still while a
	// mutex is waited for.
	begun      chan struct{}
	remembered bool // the store has the configured queues
}

// beginSignals puts every configured signal queue into the store before a message is sent to it, so
// that it is emptied when nothing names it any more, even if this process ends in between.
func (t *tick) beginSignals(ctx context.Context) {
	if t.scope.DryRun || t.known.idle.Load() {
		return
	}
	s := &signalTurn{tick: t, slots: newSlots(), begun: make(chan struct{})}
	if t.Signals != nil {
		s.namespace = t.Signals.Namespace()
	}
	for _, p := range t.Processors {
		s.queues = append(s.queues, p.SignalQueue)
	}
	for _, g := range t.Groups {
		s.queues = append(s.queues, g.SignalQueue)
	}
	s.queues = slices.DeleteFunc(s.queues, func(q string) bool { return q == "" })
	t.signals = s
	t.finishing.Go(func() {
		defer close(s.begun)
		s.remembered = s.remember(ctx)
	})
}

// configured reports whether a queue that is remembered is named.
func (s *signalTurn) configured(q state.SignalQueue) bool {
	return q.Namespace == s.namespace && slices.ContainsFunc(s.queues, func(name string) bool { return strings.EqualFold(name, q.Queue) })
}

// remember brings the stored list in line with the configuration, and empties the queues that were
// left. It reports whether the configured ones are remembered.
func (s *signalTurn) remember(ctx context.Context) bool {
	list, err := s.update(ctx)
	if errors.Is(err, state.ErrConflict) { // another process wrote in between, as a rule the same
		list, err = s.update(ctx)
	}
	if errors.Is(err, state.ErrConflict) { // so did a third one: the next tick goes on from there
		return false
	}
	if s.say("", "the signal queues cannot be remembered: none is changed, and it is tried again at the next tick", err); err != nil {
		return false
	}
	s.known.idle.Store(len(list) == 0)
	for _, q := range list {
		if s.scope.Shard == nil && !s.configured(q) {
			s.finishing.Go(func() { s.empty(ctx, q.Queue) })
		}
	}
	return true
}

// update stores the next list if it differs from the stored one. The error is state.ErrConflict if another
// process writes in between.
func (s *signalTurn) update(ctx context.Context) ([]state.SignalQueue, error) {
	ctx, cancel := context.WithTimeout(ctx, s.budget.row)
	defer cancel()
	document, stored := state.Document{Name: state.SignalQueuesName}, state.SignalQueues{}
	documents, err := s.Store.Documents(ctx, document.Name)
	if len(documents) > 0 {
		document = documents[0]
		err = document.Decode(&stored)
	}
	if err != nil {
		return nil, err
	}
	next := s.next(stored.Queues)
	if slices.Equal(next, stored.Queues) {
		return next, nil
	}
	if document.Text, err = json.Marshal(state.SignalQueues{Queues: next}); err == nil {
		_, err = s.Store.Put(ctx, document)
	}
	return next, err
}

// next returns what is to be stored. What is in another namespace cannot be emptied, and is given up.
func (s *signalTurn) next(last []state.SignalQueue) (next []state.SignalQueue) {
	for _, q := range last {
		_, emptied := s.known.emptied.Load(q.Queue)
		switch {
		case s.configured(q):
			q.Left = time.Time{}
		case q.Namespace != s.namespace:
			s.Log.Warn("a signal queue was left behind in another namespace: what scales by it keeps its replicas", "namespace", q.Namespace, "queue", q.Queue,
				"next", "empty it, or delete it")
			continue
		case strings.EqualFold(q.Namespace+"/"+q.Queue, s.Destination):
			continue // its messages are events now
		case q.Left.IsZero() || q.Left.After(s.scope.now):
			q.Left = s.scope.now
		case s.scope.now.Sub(q.Left) >= forgetAfter && emptied:
			continue
		}
		next = append(next, q)
	}
	for _, name := range s.queues {
		if !slices.ContainsFunc(next, func(q state.SignalQueue) bool { return strings.EqualFold(q.Queue, name) }) {
			next = append(next, state.SignalQueue{Namespace: s.namespace, Queue: name})
		}
	}
	return next
}

// keep makes the signal queue of a subject hold as many messages as replicas were decided last.
// During a pause, or a failure that holds the last decision, that is the count from before. If
// nothing was ever decided, the queue is left as it is.
func (s *signalTurn) keep(ctx context.Context, d *subject, decided *state.State) {
	replicas := decided.Memory.Replicas
	if s == nil || d.signal == "" || d.err != nil || replicas == nil || s.stopping.Err() != nil {
		return
	}
	if <-s.begun; !s.remembered {
		return
	}
	err := s.do(ctx, func(ctx context.Context) error { return s.Signals.Keep(ctx, d.signal, *replicas) })
	s.say(d.signal, "a signal queue does not hold the count that was decided: it is tried again at the next tick", err, "processor", d.name, "replicas", *replicas)
}

func (s *signalTurn) empty(ctx context.Context, queue string) {
	if s.stopping.Err() != nil {
		return
	}
	err := s.do(ctx, func(ctx context.Context) error { return s.Signals.Empty(ctx, queue) })
	if s.say(queue, "a signal queue that nothing names any more cannot be emptied: what scales by it keeps its replicas; it is tried again at the next tick", err); err != nil {
		s.known.emptied.Delete(queue)
	} else {
		s.known.emptied.Store(queue, nil)
	}
}

// do does something with a signal queue, within its share of the tick.
func (s *signalTurn) do(ctx context.Context, do func(context.Context) error) (err error) {
	s.slots.do(func() {
		ctx, cancel := context.WithTimeout(ctx, signalTime)
		defer cancel()
		defer s.took.add("the signal queues", time.Now())
		err = do(ctx)
	})
	return err
}

// say logs what is wrong with a queue, and that nothing is any more, each once.
func (s *signalTurn) say(queue, message string, err error, attributes ...any) {
	switch about := "signals of " + queue; {
	case err != nil && s.said.News(about, err.Error()):
		s.Log.Error(message, append(attributes, "queue", queue, "error", err.Error())...)
	case err == nil && s.said.News(about, "") && queue != "":
		s.Log.Info("a signal queue holds the right count again", "queue", queue)
	}
}
