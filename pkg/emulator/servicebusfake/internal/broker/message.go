package broker

import "time"

// Token identifies one lock on a message. It is in the byte order of RFC 4122.
type Token [16]byte

// State says where a message stands.
type State string

const (
	Active       State = "active"
	Locked       State = "locked"
	Deferred     State = "deferred"
	Scheduled    State = "scheduled"
	DeadLettered State = "dead-lettered"
)

// Mode is how a message is received.
type Mode int

const (
	// PeekLock hands a message out under a lock; it stays in the queue until the receiver settles
	// it.
	PeekLock Mode = iota
	// Delete hands a message out for good.
	Delete
)

// Message is what a sender hands in.
type Message struct {
	// ID is compared by duplicate detection; a message without one is never a duplicate.
	ID string
	// SessionID is set where the message belongs to a session.
	SessionID string
	// TTL is how long the message lives once it is enqueued; 0 = the queue's default.
	TTL time.Duration
	// ScheduledFor is when the message is to be enqueued; zero or past = at once.
	ScheduledFor time.Time
	// Content is the message as it came, opaque to the broker and never changed by it.
	Content []byte
}

// Property is an application property that the broker or a receiver has set on a message, over what
// its content says.
type Property struct {
	Name  string
	Value any
}

// Delivery is a message as the broker hands it out.
type Delivery struct {
	Message
	SequenceNumber int64
	EnqueuedAt     time.Time
	ExpiresAt      time.Time // zero = never
	DeliveryCount  int       // how many deliveries failed before this one
	State          State
	// EnqueuedSequenceNumber is the number that the message had in its topic; 0 in a queue.
	EnqueuedSequenceNumber int64
	Properties             []Property
	Token                  Token     // zero if the message is not locked
	LockedUntil            time.Time // zero if the message is not locked
}

// entry is a message in the queue.
type entry struct {
	Message
	sequence   int64
	original   int64 // sequence number in the topic; 0 in a queue
	enqueuedAt time.Time
	expiresAt  time.Time
	failures   int
	properties []Property
	scheduled  bool
	deferred   bool
	lock       *lock
	inReady    bool
}

// lock is what a receiver holds on a message. Under a session, the session's lock decides how long
// it lasts.
type lock struct {
	token   Token
	until   time.Time
	session *SessionLock
}

func (l *lock) expiry() time.Time {
	if l.session != nil {
		return l.session.until
	}
	return l.until
}

func (e *entry) receivable() bool { return !e.scheduled && !e.deferred && e.lock == nil }

func (e *entry) expired(now time.Time) bool { return !e.expiresAt.IsZero() && !e.expiresAt.After(now) }

func (e *entry) state() State {
	switch {
	case e.scheduled:
		return Scheduled
	case e.lock != nil:
		return Locked
	case e.deferred:
		return Deferred
	default:
		return Active
	}
}

func (e *entry) delivery() Delivery {
	d := Delivery{
		Message: e.Message, SequenceNumber: e.sequence, EnqueuedSequenceNumber: e.original, EnqueuedAt: e.enqueuedAt, ExpiresAt: e.expiresAt,
		DeliveryCount: e.failures, State: e.state(), Properties: append([]Property(nil), e.properties...),
	}
	if e.lock != nil {
		d.Token, d.LockedUntil = e.lock.token, e.lock.expiry()
	}
	return d
}

// set merges properties into those set before.
func (e *entry) set(properties []Property) {
next:
	for _, property := range properties {
		for i := range e.properties {
			if e.properties[i].Name == property.Name {
				e.properties[i].Value = property.Value
				continue next
			}
		}
		e.properties = append(e.properties, property)
	}
}
