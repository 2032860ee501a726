package servicebusfake

import (
	"fmt"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// namespace owns all queues and topics. Its mutex serialises everything that happens to messages;
// no network is touched under it.
type namespace struct {
	now     func() time.Time
	earlier chan struct{} // something is due earlier than the clock was set for

	mu       sync.Mutex
	entities map[string]*entity
	alarm    time.Time // when the clock is set to go off; zero = never
}

// entity is a queue, a topic, a subscription, or the dead-letter queue of one, as links see it.
type entity struct {
	path  string // in lower case
	name  string
	kind  kind
	queue *broker.Queue // of a topic, its inbox
	topic *topic        // of a topic
	rules *rules        // of a subscription
	// those that what happens to this one may fill: a topic's subscriptions, a queue's dead-letter
	// queue and the reverse
	related  []*entity
	watchers map[*conn]int
	changes  uint64 // as of the last time the watchers were woken
}

// kind is what an entity is, for what can be done with it.
type kind int

const (
	queueEntity kind = iota
	topicEntity
	subscriptionEntity
	deadLetterEntity
)

func newNamespace(now func() time.Time) *namespace {
	return &namespace{now: now, earlier: make(chan struct{}, 1), entities: map[string]*entity{}}
}

func (n *namespace) create(spec QueueSpec) error {
	if err := checkSpec("queue", spec); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.vacant(spec.Name); err != nil {
		return err
	}
	n.addWithDeadLetters(address{entity: spec.Name}, queueEntity, broker.NewQueue(spec, newToken))
	return nil
}

// vacant tells why no queue or topic of a name can be made.
func (n *namespace) vacant(name string) error {
	if found := n.entities[address{entity: name}.path()]; found != nil {
		return fmt.Errorf("%q exists already (names are compared without regard to case, and topics and queues share theirs)", name)
	}
	return nil
}

func (n *namespace) add(a address, kind kind, queue *broker.Queue) *entity {
	e := &entity{path: a.path(), name: a.entity, kind: kind, queue: queue, watchers: map[*conn]int{}}
	if a.deadLetter {
		e.name += "/" + deadLetterSuffix
	}
	n.entities[e.path] = e
	return e
}

func (n *namespace) addWithDeadLetters(a address, kind kind, queue *broker.Queue) (main, dead *entity) {
	main = n.add(a, kind, queue)
	a.deadLetter = true
	dead = n.add(a, deadLetterEntity, queue.DeadLetters())
	main.related, dead.related = []*entity{dead}, []*entity{main}
	return main, dead
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
	n.rouse(e)
	for _, other := range e.related {
		n.rouse(other)
	}
}

func (n *namespace) rouse(e *entity) {
	e.wake()
	if due, ok := e.queue.NextDue(); ok && (n.alarm.IsZero() || due.Before(n.alarm)) {
		n.alarm = due
		select {
		case n.earlier <- struct{}{}:
		default:
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

// watch has a connection woken when a receiver of the entity should look again. Every watch needs
// its unwatch.
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
