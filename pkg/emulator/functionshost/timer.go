package functionshost

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// timer is what the host keeps of a timerTrigger.
type timer struct {
	next      func(time.Time) time.Time // strictly after, UTC
	monitored bool                      // the host keeps a status blob
	adjustDST bool                      // false for a constant interval
	running   chan struct{}             // holds one token: a timer never overlaps itself

	mu       sync.Mutex
	last     time.Time // of the last run; zero where there was none
	upcoming time.Time // the occurrence after that
}

// Tick is one firing of a timer.
type Tick struct {
	PastDue bool // the host was down when the timer should have fired
}

func newTimer(trigger binding) (*timer, error) {
	schedule := trigger.text("schedule")
	if schedule == "" {
		return nil, fmt.Errorf("timer binding %q has no schedule", trigger.name)
	}
	t := &timer{monitored: true, running: make(chan struct{}, 1)}
	if use, ok := trigger.properties["useMonitor"].(bool); ok {
		t.monitored = use
	}
	if interval, err := parseTimeSpan(schedule); err == nil {
		if interval <= 0 {
			return nil, fmt.Errorf("schedule %q is no interval", schedule)
		}
		t.next = func(now time.Time) time.Time { return now.Add(interval) }
	} else {
		if len(strings.Fields(schedule)) != 6 || strings.ContainsAny(schedule, "?@=") {
			return nil, fmt.Errorf("schedule %q is no NCRONTAB expression of six fields", schedule)
		}
		parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
		expression, err := parser.Parse(schedule)
		if err != nil {
			return nil, fmt.Errorf("schedule %q is no NCRONTAB expression: %w", schedule, err)
		}
		t.next = func(now time.Time) time.Time { return expression.Next(now.UTC()) }
		t.adjustDST = true
	}
	t.monitored = t.monitored && !t.isFrequent()
	return t, nil
}

// isFrequent tells whether the timer fires more often than once a minute, for
// which the host keeps no status.
func (t *timer) isFrequent() bool {
	at := t.next(time.Unix(0, 0))
	for range 5 {
		following := t.next(at)
		if following.Sub(at) < time.Minute {
			return true
		}
		at = following
	}
	return false
}

// Timer fires a timer function and waits for its end. The function gets what
// the host would send: a ScheduleStatus where the host keeps one, which it
// does not for schedules of less than a minute, and null otherwise. A firing
// waits until the one before has ended, since the host re-arms a timer only then.
// An error is an invocation that the host would count as failed.
func (h *Host) Timer(ctx context.Context, name string, tick Tick) (Invocation, error) {
	f := h.find(name)
	switch {
	case f == nil || f.timer == nil:
		return Invocation{}, fmt.Errorf("there is no timer function %q", name)
	case f.disabled:
		return Invocation{}, fmt.Errorf("the function %q is disabled", name)
	}
	select {
	case f.timer.running <- struct{}{}:
		defer func() { <-f.timer.running }()
	case <-ctx.Done():
		return Invocation{}, fmt.Errorf("the last run of timer %q has not ended: %w", name, ctx.Err())
	}
	now := h.now()
	invocation, err := h.invoke(ctx, f, f.timerPayload(now, tick))
	f.timer.ran(now) // after a failure too: there is no retry
	return invocation, err
}

// arm sets the first occurrence.
func (t *timer) arm(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upcoming = t.next(now)
}

func (t *timer) ran(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.upcoming = now, t.next(now)
}

// status is what the host tells the function of its schedule, nil where it
// keeps nothing. It is that of the run before, whose next occurrence is this one.
func (t *timer) status() any {
	if !t.monitored {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.last.UTC().Format(dotNetTime) // both have the same zero time
	return map[string]any{"Last": last, "Next": t.upcoming.UTC().Format(dotNetTime), "LastUpdated": last}
}
