package broker

import (
	"time"
)

// Queue is one queue with its dead-letter queue. Create it with NewQueue.
type Queue struct {
	spec      Spec
	newToken  func() Token
	dead      *Queue // nil in a dead-letter queue itself
	sequence  int64
	entries   map[int64]*entry
	locks     map[Token]*entry
	ready     ready // of a queue without sessions
	sessions  map[string]*session
	seen      seen
	reminders timeline
	changes   uint64
	// of a topic: what becomes of a message in place of being kept; nil in a queue
	handOn func(e *entry, ttl time.Duration, now time.Time)
}

// NewQueue makes an empty queue. newToken names locks; every call must give a new one.
func NewQueue(spec Spec, newToken func() Token) *Queue {
	q := newQueue(spec.withDefaults(), newToken)
	// What is in a dead-letter queue stays there until somebody takes it: no sessions, no expiry,
	// no limit of deliveries.
	q.dead = newQueue(Spec{
		Name: spec.Name, LockDuration: q.spec.LockDuration, MaxMessageSize: q.spec.MaxMessageSize,
	}.withDefaults(), newToken)
	return q
}

func newQueue(spec Spec, newToken func() Token) *Queue {
	return &Queue{
		spec: spec, newToken: newToken, entries: map[int64]*entry{}, locks: map[Token]*entry{}, sessions: map[string]*session{},
	}
}

// Spec is how the queue was described, with the defaults filled in.
func (q *Queue) Spec() Spec { return q.spec }

// DeadLetters is the queue's dead-letter queue; nil if q is one.
func (q *Queue) DeadLetters() *Queue { return q.dead }

// Changes counts how often something became receivable, or stopped belonging to its receiver. While
// it is unchanged, a receiver that found nothing need not look again.
func (q *Queue) Changes() uint64 { return q.changes }

// Check tells whether Send would take the message: ErrSessionIDMissing if it would not.
func (q *Queue) Check(m Message) error {
	if q.spec.RequiresSession && m.SessionID == "" {
		return ErrSessionIDMissing
	}
	return nil
}

// Send takes a message and returns its sequence number. A duplicate gets a number too, but is
// dropped.
func (q *Queue) Send(now time.Time, m Message) (int64, error) {
	q.Advance(now)
	if err := q.Check(m); err != nil {
		return 0, err
	}
	sequence := q.nextSequence()
	if q.spec.DuplicateDetectionWindow > 0 && m.ID != "" && q.seen.before(m.ID, now, q.spec.DuplicateDetectionWindow) {
		return sequence, nil
	}
	e := &entry{Message: m, sequence: sequence}
	q.entries[sequence] = e
	if q.spec.RequiresSession {
		q.session(m.SessionID).entries++
	}
	if m.ScheduledFor.After(now) {
		e.scheduled = true
		e.enqueuedAt = now
		q.remindOf(e, m.ScheduledFor)
		return sequence, nil
	}
	q.enqueue(e, now)
	return sequence, nil
}

func (q *Queue) nextSequence() int64 {
	q.sequence++
	return q.sequence
}

// enqueue makes an entry active. From here on its time to live runs.
func (q *Queue) enqueue(e *entry, now time.Time) {
	e.enqueuedAt = now
	ttl := e.TTL
	if limit := q.spec.DefaultTTL; limit > 0 && (ttl == 0 || ttl > limit) {
		ttl = limit
	}
	if q.handOn != nil {
		q.remove(e)
		q.handOn(e, ttl, now)
		return
	}
	if ttl > 0 {
		e.expiresAt = now.Add(ttl)
		q.remindOf(e, e.expiresAt)
	}
	q.makeReady(e)
}

func (q *Queue) makeReady(e *entry) {
	if q.spec.RequiresSession {
		q.session(e.SessionID).ready.add(e)
	} else {
		q.ready.add(e)
	}
	q.changes++
}

func (q *Queue) remove(e *entry) {
	if e.lock != nil {
		delete(q.locks, e.lock.token)
		e.lock = nil
	}
	delete(q.entries, e.sequence)
	if q.spec.RequiresSession {
		s := q.session(e.SessionID)
		s.entries--
		q.forgetIfEmpty(s)
	}
}

// Receive hands out the next message; ok is false if there is none. session is the lock on the
// session to receive from, nil in a queue without sessions. Errors: ErrSessionRequired,
// ErrSessionNotSupported, ErrSessionLockLost.
func (q *Queue) Receive(now time.Time, session *SessionLock, mode Mode) (d Delivery, ok bool, err error) {
	q.Advance(now)
	from := &q.ready
	switch {
	case q.spec.RequiresSession && session == nil:
		return d, false, ErrSessionRequired
	case !q.spec.RequiresSession && session != nil:
		return d, false, ErrSessionNotSupported
	case session != nil:
		if !q.Holds(session) {
			return d, false, ErrSessionLockLost
		}
		from = &session.session.ready
	}
	e := from.take(q)
	if e == nil {
		return d, false, nil
	}
	return q.handOut(e, session, mode, now), true, nil
}

func (q *Queue) handOut(e *entry, session *SessionLock, mode Mode, now time.Time) Delivery {
	if mode == Delete {
		d := e.delivery()
		q.remove(e)
		return d
	}
	e.lock = &lock{token: q.newToken(), until: now.Add(q.spec.LockDuration), session: session}
	q.locks[e.lock.token] = e
	if session == nil {
		q.remindOf(e, e.lock.until)
	}
	return e.delivery()
}
