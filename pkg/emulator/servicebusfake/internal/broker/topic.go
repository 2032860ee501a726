package broker

import "time"

// TopicSpec describes a topic. What is said of the fields of [Spec] holds here too.
type TopicSpec struct {
	Name                     string
	DuplicateDetectionWindow time.Duration
	DefaultTTL               time.Duration
	MaxMessageSize           int
}

// Topic hands each message on to its subscriptions. Each of these is a queue of its own, that holds
// a copy.
type Topic struct {
	inbox         *Queue
	newToken      func() Token
	subscriptions []subscription
}

type subscription struct {
	queue   *Queue
	accepts func(Message) bool
}

// NewTopic makes a topic without subscriptions: what is sent to it then is accepted and lost, as in
// the service
// (https://learn.microsoft.com/azure/service-bus-messaging/service-bus-queues-topics-subscriptions).
func NewTopic(spec TopicSpec, newToken func() Token) *Topic {
	t := &Topic{newToken: newToken}
	t.inbox = newQueue(Spec{
		Name: spec.Name, DuplicateDetectionWindow: spec.DuplicateDetectionWindow, DefaultTTL: spec.DefaultTTL, MaxMessageSize: spec.MaxMessageSize,
	}.withDefaults(), newToken)
	t.inbox.handOn = t.handOn
	return t
}

// Inbox takes what is sent to the topic. It keeps the scheduled messages until their time comes;
// nothing can be received from it.
func (t *Topic) Inbox() *Queue { return t.inbox }

// Subscribe adds a subscription, which gets what is enqueued from now on, if accepts says so. It
// detects no duplicates: its topic does. A time to live beyond the topic's is the topic's
// (https://learn.microsoft.com/azure/service-bus-messaging/message-expiration).
func (t *Topic) Subscribe(spec Spec, accepts func(Message) bool) *Queue {
	q := NewQueue(spec, t.newToken)
	t.subscriptions = append(t.subscriptions, subscription{q, accepts})
	return q
}

func (t *Topic) handOn(e *entry, ttl time.Duration, now time.Time) {
	m := e.Message
	m.TTL, m.ScheduledFor = ttl, time.Time{}
	for _, s := range t.subscriptions {
		if s.accepts(m) {
			s.queue.copyOf(m, e.sequence, now)
		}
	}
}

// copyOf takes a message from the topic. A subscription has no way to refuse one without a session:
// that ends in its dead-letter queue
// (https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues).
func (q *Queue) copyOf(m Message, original int64, now time.Time) {
	q.Advance(now)
	e := &entry{Message: m, sequence: q.nextSequence(), original: original, enqueuedAt: now}
	q.entries[e.sequence] = e
	if q.spec.RequiresSession {
		q.session(m.SessionID).entries++
	}
	if q.Check(m) != nil {
		q.deadLetter(e, "Session ID is null", "Session enabled entity doesn't allow a message whose session identifier is null.", nil)
		return
	}
	q.enqueue(e, now)
}
