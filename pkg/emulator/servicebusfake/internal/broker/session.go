package broker

import (
	"sort"
	"time"
)

type session struct {
	id           string
	ready        ready
	entries      int // messages in any state
	lock         *SessionLock
	state        []byte
	stateUpdated time.Time
}

// SessionLock is a receiver's hold on a session.
type SessionLock struct {
	session *session
	until   time.Time
}

// ID is the session's id.
func (l *SessionLock) ID() string { return l.session.id }

// LockedUntil is when the lock is lost unless it is renewed.
func (l *SessionLock) LockedUntil() time.Time { return l.until }

func (q *Queue) session(id string) *session {
	s := q.sessions[id]
	if s == nil {
		s = &session{id: id}
		q.sessions[id] = s
	}
	return s
}

func (q *Queue) forgetIfEmpty(s *session) {
	if s.entries == 0 && s.lock == nil && s.state == nil {
		delete(q.sessions, s.id)
	}
}

// Accept locks the named session, which need not have messages. Errors: ErrSessionNotSupported,
// ErrSessionLocked.
func (q *Queue) Accept(now time.Time, id string) (*SessionLock, error) {
	q.Advance(now)
	if !q.spec.RequiresSession {
		return nil, ErrSessionNotSupported
	}
	s := q.session(id)
	if s.lock != nil {
		return nil, ErrSessionLocked
	}
	return q.lockSession(s, now), nil
}

// AcceptNext locks the free session whose first message is the oldest. Errors:
// ErrSessionNotSupported, ErrNoSession.
func (q *Queue) AcceptNext(now time.Time) (*SessionLock, error) {
	q.Advance(now)
	if !q.spec.RequiresSession {
		return nil, ErrSessionNotSupported
	}
	var next *session
	var oldest int64
	for _, s := range q.sessions {
		if s.lock != nil {
			continue
		}
		if e := s.ready.first(q); e != nil && (next == nil || e.sequence < oldest) {
			next, oldest = s, e.sequence
		}
	}
	if next == nil {
		return nil, ErrNoSession
	}
	return q.lockSession(next, now), nil
}

func (q *Queue) lockSession(s *session, now time.Time) *SessionLock {
	s.lock = &SessionLock{session: s}
	q.renewSession(s.lock, now)
	return s.lock
}

func (q *Queue) renewSession(l *SessionLock, now time.Time) time.Time {
	l.until = now.Add(q.spec.LockDuration)
	q.remindOfSession(l)
	return l.until
}

// Holds tells whether the lock is still the one on its session.
func (q *Queue) Holds(l *SessionLock) bool { return l.session.lock == l }

// ReleaseSession gives a session back. Its locked messages go back too, and this does not count as
// a delivery, unlike the expiry of the session's lock
// (https://learn.microsoft.com/azure/service-bus-messaging/message-sessions, message delivery
// count).
func (q *Queue) ReleaseSession(now time.Time, l *SessionLock) {
	q.Advance(now)
	if q.Holds(l) {
		q.unlockSession(l, returned, now)
	}
}

func (q *Queue) expireSession(s *session, now time.Time) {
	if s.lock != nil && !s.lock.until.After(now) {
		q.unlockSession(s.lock, failed, now)
	}
}

func (q *Queue) unlockSession(l *SessionLock, how outcome, now time.Time) {
	var held []*entry
	for _, e := range q.locks {
		if e.lock.session == l {
			held = append(held, e)
		}
	}
	sort.Slice(held, func(i, j int) bool { return held[i].sequence < held[j].sequence })
	for _, e := range held {
		q.unlock(e, how, now)
	}
	l.session.lock = nil
	q.changes++
	q.forgetIfEmpty(l.session)
}

// lockOn is the lock on a session, whoever holds it: management operations name the session, not
// the receiver.
func (q *Queue) lockOn(now time.Time, id string) (*SessionLock, error) {
	q.Advance(now)
	if !q.spec.RequiresSession {
		return nil, ErrSessionNotSupported
	}
	s := q.sessions[id]
	if s == nil || s.lock == nil {
		return nil, ErrSessionLockLost
	}
	return s.lock, nil
}

// RenewSession makes the lock on a session last its full duration from now on. Errors:
// ErrSessionLockLost, ErrSessionNotSupported.
func (q *Queue) RenewSession(now time.Time, id string) (time.Time, error) {
	l, err := q.lockOn(now, id)
	if err != nil {
		return time.Time{}, err
	}
	return q.renewSession(l, now), nil
}

// SessionState is what SetSessionState has stored, nil where nothing is. Errors:
// ErrSessionLockLost, ErrSessionNotSupported.
func (q *Queue) SessionState(now time.Time, id string) ([]byte, error) {
	l, err := q.lockOn(now, id)
	if err != nil {
		return nil, err
	}
	return l.session.state, nil
}

// SetSessionState stores bytes with a session; nil removes them. Errors: ErrSessionLockLost,
// ErrSessionNotSupported.
func (q *Queue) SetSessionState(now time.Time, id string, state []byte) error {
	l, err := q.lockOn(now, id)
	if err != nil {
		return err
	}
	l.session.state, l.session.stateUpdated = state, now
	return nil
}

// Sessions lists the ids of sessions that hold active messages or a state, sorted. Where
// updatedAfter is set, those whose state was set after it. Error: ErrSessionNotSupported.
func (q *Queue) Sessions(now time.Time, updatedAfter time.Time) ([]string, error) {
	q.Advance(now)
	if !q.spec.RequiresSession {
		return nil, ErrSessionNotSupported
	}
	active := map[string]bool{}
	for _, e := range q.entries {
		if state := e.state(); state == Active || state == Locked {
			active[e.SessionID] = true
		}
	}
	var ids []string
	for id, s := range q.sessions {
		if updatedAfter.IsZero() && (active[id] || s.state != nil) || !updatedAfter.IsZero() && s.stateUpdated.After(updatedAfter) {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids, nil
}
