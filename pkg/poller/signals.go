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

// Signals keeps messages in queues, one for each replica that is wanted (docs/act.md, Signal queue).
type Signals interface {
	// Namespace names where the queues are.
	Namespace() string

	// Keep makes a queue hold so many messages. Its error says what to do. It returns soon after ctx ends.
	Keep(ctx context.Context, queue string, replicas int) error

	// Empty takes all messages of ours out of a queue that may no longer exist.
	Empty(ctx context.Context, queue string) error
}

const (
	// signalTime bounds what a tick spends on one signal queue.
	signalTime = 5 * time.Second
	// forgetAfter is how long a queue that nothing names any more is emptied at each tick: a process with an
	// older configuration may still run, and fill it.
	forgetAfter = 10 * time.Minute
)

// signals are what a process knows of its signal queues.
type signals struct {
	idle    atomic.Bool // there are none, neither configured nor left
	trouble sync.Map    // what is wrong with a queue and was said, by its name
	emptied sync.Map    // names of left queues that this process has found, or made, empty
}

// signalNamespace is where the signal queues are; "" where there can be none.
func (p *Poller) signalNamespace() string {
	if p.Signals == nil {
		return ""
	}
	return p.Signals.Namespace()
}

// beginSignals makes sure that every configured signal queue is in the store before a message is sent to it,
// so that it is emptied once nothing names it any more, whatever ends this process in between. Others
// wait for that in signalsKnow.
func (t *tick) beginSignals(ctx context.Context) {
	t.signalsKnow = func() bool { return false }
	if t.mode.DryRun || t.signals.idle.Load() {
		return
	}
	var queues []string
	for _, p := range t.Processors {
		queues = append(queues, p.SignalQueue)
	}
	for _, g := range t.Groups {
		queues = append(queues, g.SignalQueue)
	}
	queues = slices.DeleteFunc(queues, func(q string) bool { return q == "" })
	known, remembered := false, make(chan struct{})
	t.signalsKnow = func() bool {
		<-remembered
		return known
	}
	t.finishing.Go(func() {
		known = t.rememberSignals(ctx, queues)
		close(remembered)
	})
}

// rememberSignals writes what changed of the signal queues, and empties those that were left. It reports
// whether the configured ones are remembered.
func (t *tick) rememberSignals(ctx context.Context, queues []string) bool {
	stored, known, err := t.storeSignals(ctx, queues)
	if err != nil {
		t.sayOnce("", "the signal queues cannot be remembered: none is changed, and it is tried again at the next tick", err)
		return false
	}
	t.wellAgain("")
	t.signals.idle.Store(len(stored) == 0)
	for _, q := range stored {
		if known(q) || t.mode.Shard != nil {
			continue // the timer's own tick empties what was left
		}
		t.finishing.Go(func() { t.emptySignals(ctx, q.Queue) })
	}
	return true
}

// storeSignals brings the stored list in line with the configuration: what is new is added, what was left gets
// the time of that and goes in the end. It tries again where another process wrote in between.
func (t *tick) storeSignals(ctx context.Context, queues []string) (stored []state.SignalQueue, known func(state.SignalQueue) bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout/loadShare)
	defer cancel()
	namespace := t.signalNamespace()
	known = func(s state.SignalQueue) bool {
		return s.Namespace == namespace && slices.ContainsFunc(queues, func(q string) bool { return strings.EqualFold(q, s.Queue) })
	}
	for try := 1; ; try++ {
		document, last := state.Document{Name: state.SignalQueuesName}, state.SignalQueues{}
		documents, err := t.Store.Documents(ctx, document.Name)
		if len(documents) > 0 {
			document = documents[0]
			err = document.Decode(&last)
		}
		if err != nil {
			return nil, nil, err
		}
		var elsewhere []state.SignalQueue
		stored, elsewhere = t.nextSignals(last.Queues, queues, known)
		if slices.Equal(stored, last.Queues) {
			return stored, known, nil
		}
		if document.Text, err = json.Marshal(state.SignalQueues{Queues: stored}); err == nil {
			_, err = t.Store.Put(ctx, document)
		}
		if errors.Is(err, state.ErrConflict) && try < 3 {
			continue
		}
		if err == nil {
			for _, q := range elsewhere {
				t.Log.Warn("a signal queue was left behind in another namespace: what scales by it keeps its replicas", "namespace", q.Namespace, "queue", q.Queue, "next", "empty it, or delete it")
			}
		}
		return stored, known, err
	}
}

// nextSignals returns what is to be stored, and what is given up since it is in another namespace.
func (t *tick) nextSignals(stored []state.SignalQueue, queues []string, known func(state.SignalQueue) bool) (next, elsewhere []state.SignalQueue) {
	for _, q := range stored {
		switch {
		case known(q):
			q.Left = time.Time{}
		case q.Namespace != t.signalNamespace():
			elsewhere = append(elsewhere, q)
			continue
		case strings.EqualFold(q.Namespace+"/"+q.Queue, t.Destination):
			continue // its messages are events now
		case q.Left.IsZero() || q.Left.After(t.start):
			q.Left = t.start
		case t.start.Sub(q.Left) >= forgetAfter && t.emptied(q.Queue):
			continue
		}
		next = append(next, q)
	}
	for _, name := range queues {
		if !slices.ContainsFunc(next, func(q state.SignalQueue) bool { return strings.EqualFold(q.Queue, name) }) {
			next = append(next, state.SignalQueue{Namespace: t.signalNamespace(), Queue: name})
		}
	}
	return next, elsewhere
}

// keepSignals makes the signal queue of a subject hold as many messages as it was decided last. While it is
// paused, or a failure holds the last decision, that is the count from before. Where nothing was ever decided,
// the queue is left as it is.
func (t *tick) keepSignals(ctx context.Context, d *subject, s state.State) {
	if d.signal == "" || d.err != nil || s.Memory.Replicas == nil || t.stopping.Err() != nil || !t.signalsKnow() {
		return
	}
	err := t.signal(ctx, func(ctx context.Context) error { return t.Signals.Keep(ctx, d.signal, *s.Memory.Replicas) })
	if err != nil {
		t.sayOnce(d.signal, "a signal queue does not hold the count that was decided: it is tried again at the next tick", err, "processor", d.name, "replicas", *s.Memory.Replicas)
		return
	}
	t.wellAgain(d.signal)
}

// emptySignals empties a queue that nothing names any more.
func (t *tick) emptySignals(ctx context.Context, queue string) {
	if t.stopping.Err() != nil {
		return
	}
	if err := t.signal(ctx, func(ctx context.Context) error { return t.Signals.Empty(ctx, queue) }); err != nil {
		t.sayOnce(queue, "a signal queue that nothing names any more cannot be emptied: what scales by it keeps its replicas; it is tried again at the next tick", err)
		t.signals.emptied.Delete(queue)
		return
	}
	t.signals.emptied.Store(queue, nil)
	t.wellAgain(queue)
}

// signal does something with a signal queue, within its share of the tick.
func (t *tick) signal(ctx context.Context, do func(context.Context) error) error {
	t.signalling <- struct{}{}
	defer func() { <-t.signalling }()
	ctx, cancel := context.WithTimeout(ctx, signalTime)
	defer cancel()
	began := time.Now()
	err := do(ctx)
	t.took.Add("the signal queues", time.Since(began))
	return err
}

// sayOnce logs what is wrong with a queue, unless that was said already.
func (t *tick) sayOnce(queue, message string, err error, attributes ...any) {
	if said, _ := t.signals.trouble.Swap(queue, err.Error()); said != err.Error() {
		t.Log.Error(message, append(attributes, "queue", queue, "error", err.Error())...)
	}
}

func (t *tick) emptied(queue string) bool {
	_, emptied := t.signals.emptied.Load(queue)
	return emptied
}

func (t *tick) wellAgain(queue string) {
	if _, troubled := t.signals.trouble.LoadAndDelete(queue); troubled && queue != "" {
		t.Log.Info("a signal queue holds the right count again", "queue", queue)
	}
}
