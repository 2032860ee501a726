package broker

import (
	"container/heap"
	"time"
)

// due is an instant at which to look at a message or, if session is set, at a session. It is only a
// reminder: by then the message may be settled or the lock renewed.
type due struct {
	at       time.Time
	sequence int64
	session  *session
}

// timeline is a heap of reminders, the earliest first; equal instants in the order of sequence
// numbers.
type timeline []due

func (t timeline) Len() int { return len(t) }
func (t timeline) Less(i, j int) bool {
	if !t[i].at.Equal(t[j].at) {
		return t[i].at.Before(t[j].at)
	}
	return t[i].sequence < t[j].sequence
}
func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(x any)   { *t = append(*t, x.(due)) }
func (t *timeline) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

func (q *Queue) remindOf(e *entry, at time.Time) {
	heap.Push(&q.reminders, due{at: at, sequence: e.sequence})
	q.forgetReminders()
}

func (q *Queue) remindOfSession(l *SessionLock) {
	heap.Push(&q.reminders, due{at: l.until, session: l.session})
	q.forgetReminders()
}

// forgetReminders drops the reminders of settled messages once they are the majority. Otherwise a
// long time to live would keep them in memory.
func (q *Queue) forgetReminders() {
	if len(q.reminders) < 1024 || len(q.reminders) < 4*(len(q.entries)+len(q.sessions)) {
		return
	}
	kept := q.reminders[:0]
	for _, reminder := range q.reminders {
		if reminder.session != nil || q.entries[reminder.sequence] != nil {
			kept = append(kept, reminder)
		}
	}
	clear(q.reminders[len(kept):])
	q.reminders = kept
	heap.Init(&q.reminders)
}

// NextDue is when to call Advance next; ok is false if nothing is going to happen by itself.
func (q *Queue) NextDue() (at time.Time, ok bool) {
	if len(q.reminders) == 0 {
		return time.Time{}, false
	}
	return q.reminders[0].at, true
}

// Advance does everything that is due by now: scheduled messages are enqueued, locks and messages
// expire. Every other method calls it first, so an owner needs it only for changes while nobody
// calls.
func (q *Queue) Advance(now time.Time) {
	for len(q.reminders) > 0 && !q.reminders[0].at.After(now) {
		reminder := heap.Pop(&q.reminders).(due)
		if reminder.session != nil {
			q.expireSession(reminder.session, now)
			continue
		}
		if e := q.entries[reminder.sequence]; e != nil {
			q.lookAt(e, now)
		}
	}
}

func (q *Queue) lookAt(e *entry, now time.Time) {
	switch {
	case e.scheduled:
		if !e.ScheduledFor.After(now) {
			// A scheduled message is numbered anew when its time comes, as if it was sent then.
			delete(q.entries, e.sequence)
			e.scheduled = false
			e.sequence = q.nextSequence()
			q.entries[e.sequence] = e
			q.enqueue(e, now)
		}
	case e.lock != nil:
		if e.lock.session == nil && !e.lock.until.After(now) {
			q.unlock(e, failed, now)
		}
	case e.expired(now) && !e.deferred:
		q.expire(e)
	}
}

// expire ends a message whose time to live is over. Deferred messages are spared: nobody but their
// receiver knows of them.
func (q *Queue) expire(e *entry) {
	if q.spec.DeadLetterOnExpiry && q.dead != nil {
		q.deadLetter(e, "TTLExpiredException", "The message expired and was dead lettered.", nil)
		return
	}
	q.remove(e)
}
