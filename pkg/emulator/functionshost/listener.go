package functionshost

import (
	"context"
	"time"
)

const (
	earliest   = 2 * time.Millisecond // by which a timer may fire too early, seen on host 4.1037
	earlySlots = 10                   // one in so many fires early, seen on host 4.1037
	// between a run that took too long and the next, seen on host 4.1037
	overrunPause = 30 * time.Millisecond
)

// listen fires a timer by its schedule until the context ends, as TimerListener of the SDK does
// (WebJobs.Extensions Timers/Listener/TimerListener.cs). Only the host with the lock fires it
// ([Singleton(Mode = Listener)], :15). It releases the lock when no run is left, so not if the
// whole host ends before that.
func (h *Host) listen(ctx context.Context, f *function) {
	if !h.storage.lock(ctx, h.clock, f.name) {
		return
	}
	defer func() {
		if h.background.Err() != nil {
			h.storage.expire(f.name, h.clock.Now())
		} else {
			h.storage.unlock(f.name)
		}
		h.log.add(Debug, CategoryHost, "Timer listener stopped (%s)", f.name)
	}()
	t := f.timer
	now := h.clock.Now()
	pastDue := h.resume(f, now)
	startup := pastDue || t.runOnStartup
	due := now
	if !startup {
		due = h.due(t)
	}
	for {
		reached, stop := h.clock.at(due)
		h.log.add(Debug, CategoryHost, "Timer for '%s' started with interval '%s'.", f.name, due.Sub(h.clock.Now()))
		select {
		case now = <-reached:
		case <-ctx.Done():
			stop()
			return
		}
		// A firing that came early counts for its slot (:346-352), so that no slot runs twice.
		occurrence := now
		if next := t.current().next; !startup && next.After(now) {
			occurrence = next
		}
		// the log says how it ended
		_, _ = h.fire(h.background, f, now, occurrence, Tick{PastDue: pastDue})
		if t.monitored {
			h.storage.setStatus(f.name, t.current())
		}
		startup, pastDue = false, false
		if ctx.Err() != nil {
			return
		}
		due = h.due(t)
	}
}

// due returns when the timer fires next: at its occurrence or a little before, or almost at once if
// the occurrence passed while the function ran (TimerListener.cs:374-386).
func (h *Host) due(t *timer) time.Time {
	next, now := t.current().next, h.clock.Now()
	if !next.After(now) {
		return now.Add(overrunPause)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.random.IntN(earlySlots) == 0 {
		next = next.Add(-time.Duration(h.random.Int64N(int64(earliest))))
	}
	return next
}

// resume takes up a stored schedule status, and reports whether an occurrence was missed since
// (Timers/Scheduling/ScheduleMonitor.cs:48-128).
func (h *Host) resume(f *function, now time.Time) (pastDue bool) {
	t := f.timer
	status := scheduleStatus{next: t.next(now)}
	if !t.monitored {
		t.set(status)
		return false
	}
	stored, ok := h.storage.status(f.name)
	if !ok {
		t.set(status)
		status.lastUpdated = now // stored, but told to no function before the next start
		h.storage.setStatus(f.name, status)
		return false
	}
	from := stored.last
	if from.IsZero() {
		from = stored.lastUpdated
	}
	if expected := t.next(from); !stored.next.Equal(expected) { // the schedule has changed
		stored = scheduleStatus{next: expected, lastUpdated: from}
		if now.After(expected) {
			stored = scheduleStatus{next: t.next(now), lastUpdated: now}
		}
		h.storage.setStatus(f.name, stored)
	}
	t.set(stored)
	return now.After(stored.next)
}
