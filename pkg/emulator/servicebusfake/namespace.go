package servicebusfake

import (
	"fmt"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// namespace owns all queues. Its mutex serialises everything that happens to messages; no network is touched under it.
type namespace struct {
	now     func() time.Time
	earlier chan struct{} // something is due earlier than the clock was set for

	mu       sync.Mutex
	entities map[string]*entity
	alarm    time.Time // when the clock is set to go off; zero = never
}

// entity is a queue or a dead-letter queue as links see it.
type entity struct {
	path     string // in lower case
	name     string
	queue    *broker.Queue
	other    *entity // the dead-letter queue's queue, the queue's dead-letter queue: what happens to one may fill the other
	watchers map[*conn]int
	changes  uint64 // as of the last time the watchers were woken
}

func newNamespace(now func() time.Time) *namespace {
	return &namespace{now: now, earlier: make(chan struct{}, 1), entities: map[string]*entity{}}
}

func (n *namespace) create(spec QueueSpec) error {
	if err := checkSpec(spec); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a := address{entity: spec.Name}
	if n.entities[a.path()] != nil {
		return fmt.Errorf("queue %q exists already (names are compared without regard to case)", spec.Name)
	}
	queue := broker.NewQueue(spec, newToken)
	main := &entity{path: a.path(), name: spec.Name, queue: queue, watchers: map[*conn]int{}}
	a.deadLetter = true
	dead := &entity{
		path: a.path(), name: spec.Name + "/" + deadLetterSuffix, queue: queue.DeadLetters(), watchers: map[*conn]int{}, other: main,
	}
	main.other = dead
	n.entities[main.path], n.entities[dead.path] = main, dead
	return nil
}

func (n *namespace) find(a address) *entity {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.entities[a.path()]
}

// update runs a change of one queue, then wakes the connections that it concerns.
func (n *namespace) update(e *entity, change func(q *broker.Queue, now time.Time)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(e.queue, n.now())
	n.follow(e)
}

// follow does what a change of a queue calls for: receivers look again, and the clock is set.
func (n *namespace) follow(e *entity) {
	for _, e := range [...]*entity{e, e.other} {
		e.wake()
		if due, ok := e.queue.NextDue(); ok && (n.alarm.IsZero() || due.Before(n.alarm)) {
			n.alarm = due
			select {
			case n.earlier <- struct{}{}:
			default:
			}
		}
	}
}

func (e *entity) wake() {
	if changes := e.queue.Changes(); changes != e.changes {
		e.changes = changes
		for c := range e.watchers {
			c.wakeUp()
		}
	}
}

// watch has a connection woken when a receiver of the entity should look again. Every watch needs its unwatch.
func (n *namespace) watch(e *entity, c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.watchers[c]++
}

func (n *namespace) unwatch(e *entity, c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.watchers[c]--; e.watchers[c] <= 0 {
		delete(e.watchers, c)
	}
}

// advance does what is due in all queues and sets the alarm to what is due next.
func (n *namespace) advance() (wait time.Duration, waiting bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	n.alarm = time.Time{}
	for _, e := range n.entities {
		e.queue.Advance(now)
	}
	for _, e := range n.entities {
		e.wake()
		if due, ok := e.queue.NextDue(); ok && (n.alarm.IsZero() || due.Before(n.alarm)) {
			n.alarm = due
		}
	}
	if n.alarm.IsZero() {
		return 0, false
	}
	return n.alarm.Sub(now), true
}

// run lets time pass until done is closed. It sleeps while nothing is due.
func (n *namespace) run(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-n.earlier:
		case <-timer.C:
		}
		if wait, waiting := n.advance(); waiting {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}
