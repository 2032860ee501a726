package broker

import "time"

// CancelScheduled removes scheduled messages, all or none. Error: ErrMessageNotFound.
func (q *Queue) CancelScheduled(now time.Time, sequences []int64) error {
	q.Advance(now)
	cancelled, err := q.pick(sequences, func(e *entry) bool { return e.scheduled })
	if err != nil {
		return err
	}
	for _, e := range cancelled {
		q.remove(e)
	}
	return nil
}

// ReceiveDeferred hands out deferred messages by their sequence numbers, all or none. In a queue
// that requires sessions all must be of the one session, and somebody must hold its lock. Errors:
// ErrMessageNotFound, ErrSessionLockLost.
func (q *Queue) ReceiveDeferred(now time.Time, sequences []int64, session string, mode Mode) ([]Delivery, error) {
	q.Advance(now)
	var held *SessionLock
	if q.spec.RequiresSession {
		var err error
		if held, err = q.lockOn(now, session); err != nil {
			return nil, err
		}
	}
	found, err := q.pick(sequences, func(e *entry) bool {
		return e.deferred && e.lock == nil && (held == nil || e.SessionID == session)
	})
	if err != nil {
		return nil, err
	}
	deliveries := make([]Delivery, len(found))
	for i, e := range found {
		deliveries[i] = q.handOut(e, held, mode, now)
	}
	return deliveries, nil
}

// pick finds the entries with the given sequence numbers, each of which must match and stand there
// once.
func (q *Queue) pick(sequences []int64, match func(*entry) bool) ([]*entry, error) {
	picked := map[int64]bool{}
	entries := make([]*entry, len(sequences))
	for i, sequence := range sequences {
		e := q.entries[sequence]
		if e == nil || picked[sequence] || !match(e) {
			return nil, ErrMessageNotFound
		}
		picked[sequence] = true
		entries[i] = e
	}
	return entries, nil
}
