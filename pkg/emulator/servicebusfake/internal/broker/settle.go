package broker

import (
	"fmt"
	"time"
)

// outcome of a delivery that did not settle its message.
type outcome bool

const (
	failed   outcome = true  // counts as a delivery
	returned outcome = false // does not
)

func (q *Queue) locked(now time.Time, token Token) (*entry, error) {
	q.Advance(now)
	e := q.locks[token]
	if e == nil {
		return nil, ErrLockLost
	}
	return e, nil
}

// HasLock tells whether the token still locks a message: ErrLockLost if it does not.
func (q *Queue) HasLock(now time.Time, token Token) error {
	_, err := q.locked(now, token)
	return err
}

// Complete removes a locked message. Error: ErrLockLost.
func (q *Queue) Complete(now time.Time, token Token) error {
	e, err := q.locked(now, token)
	if err != nil {
		return err
	}
	q.remove(e)
	return nil
}

// Abandon gives a locked message back as a failed delivery, with properties changed; a deferred one
// stays deferred. Error: ErrLockLost.
func (q *Queue) Abandon(now time.Time, token Token, properties []Property) error {
	e, err := q.locked(now, token)
	if err != nil {
		return err
	}
	e.set(properties)
	q.unlock(e, failed, now)
	return nil
}

// Release gives a locked message back as if it had never been delivered. Error: ErrLockLost.
func (q *Queue) Release(now time.Time, token Token) error {
	e, err := q.locked(now, token)
	if err != nil {
		return err
	}
	q.unlock(e, returned, now)
	return nil
}

// Defer sets a locked message aside; only ReceiveDeferred returns it. Error: ErrLockLost.
func (q *Queue) Defer(now time.Time, token Token, properties []Property) error {
	e, err := q.locked(now, token)
	if err != nil {
		return err
	}
	e.set(properties)
	e.deferred = true
	q.unlock(e, returned, now)
	return nil
}

// DeadLetter moves a locked message to the dead-letter queue. Errors: ErrLockLost,
// ErrDeadLetterTwice.
func (q *Queue) DeadLetter(now time.Time, token Token, reason, description string, properties []Property) error {
	e, err := q.locked(now, token)
	if err != nil {
		return err
	}
	if q.dead == nil {
		return ErrDeadLetterTwice
	}
	q.deadLetter(e, reason, description, properties)
	return nil
}

// Renew makes the lock on a message last its full duration from now on. Under a session it is the
// session that is renewed. Error: ErrLockLost.
func (q *Queue) Renew(now time.Time, token Token) (until time.Time, err error) {
	e, err := q.locked(now, token)
	if err != nil {
		return time.Time{}, err
	}
	if e.lock.session != nil {
		return q.renewSession(e.lock.session, now), nil
	}
	e.lock.until = now.Add(q.spec.LockDuration)
	q.remindOf(e, e.lock.until)
	return e.lock.until, nil
}

// unlock gives a message back. A message with too many failures is dead-lettered, one that expired
// under its lock ends now.
func (q *Queue) unlock(e *entry, how outcome, now time.Time) {
	delete(q.locks, e.lock.token)
	e.lock = nil
	if how == failed {
		e.failures++
		if q.dead != nil && e.failures >= q.spec.MaxDeliveryCount {
			q.deadLetter(e, "MaxDeliveryCountExceeded",
				fmt.Sprintf("Message could not be consumed after %d delivery attempts.", e.failures), nil)
			return
		}
	}
	switch {
	case e.deferred:
	case e.expired(now):
		q.expire(e)
	default:
		q.makeReady(e)
	}
}

// Names of the application properties that say why a message was dead-lettered.
const (
	PropertyDeadLetterReason      = "DeadLetterReason"
	PropertyDeadLetterDescription = "DeadLetterErrorDescription"
)

// deadLetter moves a message; it keeps its sequence number, since both queues are one entity.
func (q *Queue) deadLetter(e *entry, reason, description string, properties []Property) {
	q.remove(e)
	moved := &entry{
		Message: e.Message, sequence: e.sequence, original: e.original, enqueuedAt: e.enqueuedAt, failures: e.failures, properties: e.properties,
	}
	moved.set(properties)
	if reason != "" {
		moved.set([]Property{{PropertyDeadLetterReason, reason}})
	}
	if description != "" {
		moved.set([]Property{{PropertyDeadLetterDescription, description}})
	}
	q.dead.entries[moved.sequence] = moved
	q.dead.makeReady(moved)
}
