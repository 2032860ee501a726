package broker

import (
	"slices"
	"time"
)

func (q *Queue) inOrder() []*entry {
	entries := make([]*entry, 0, len(q.entries))
	for _, e := range q.entries {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *entry) int { return int(a.sequence - b.sequence) })
	return entries
}

// Peek returns up to count messages from a sequence number on, in any state, and changes nothing.
// session limits it to one session; nil = all.
func (q *Queue) Peek(now time.Time, from int64, count int, session *string) []Delivery {
	q.Advance(now)
	var deliveries []Delivery
	for _, e := range q.inOrder() {
		if len(deliveries) >= count {
			break
		}
		if e.sequence < from || session != nil && e.SessionID != *session {
			continue
		}
		d := e.delivery()
		// A peek must not reveal the lock of another receiver.
		d.Token, d.LockedUntil = Token{}, time.Time{}
		deliveries = append(deliveries, d)
	}
	return deliveries
}

// DeleteBatch removes up to count active messages that were enqueued before an instant, oldest
// first, and returns how many.
func (q *Queue) DeleteBatch(now time.Time, count int, before time.Time) int {
	q.Advance(now)
	deleted := 0
	for _, e := range q.inOrder() {
		if deleted >= count {
			break
		}
		if e.receivable() && e.enqueuedAt.Before(before) {
			q.remove(e)
			deleted++
		}
	}
	return deleted
}

// All returns every message, those of the dead-letter queue last.
func (q *Queue) All(now time.Time) []Delivery {
	q.Advance(now)
	var deliveries []Delivery
	for _, e := range q.inOrder() {
		deliveries = append(deliveries, e.delivery())
	}
	if q.dead != nil {
		for _, d := range q.dead.All(now) {
			if d.State == Active {
				d.State = DeadLettered
			}
			deliveries = append(deliveries, d)
		}
	}
	return deliveries
}
