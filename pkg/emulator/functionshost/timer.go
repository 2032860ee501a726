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
	next         func(time.Time) time.Time // strictly after
	monitored    bool                      // the host keeps a schedule status
	adjustDST    bool                      // false for a constant interval
	runOnStartup bool
	location     *time.Location
	running      chan struct{} // holds one token: a timer never overlaps itself

	mu     sync.Mutex
	status scheduleStatus
}

// scheduleStatus is that of the SDK (WebJobs.Extensions Timers/Scheduling/ScheduleStatus.cs).
type scheduleStatus struct {
	last        time.Time // of the last run; zero if there was none
	next        time.Time // the occurrence after that
	lastUpdated time.Time
}

// Tick is one firing of a timer.
type Tick struct {
	PastDue bool // the host was down when the timer should have fired
}

func newTimer(trigger binding, settings map[string]string, now time.Time) (*timer, error) {
	schedule := trigger.text("schedule")
	if schedule == "" {
		return nil, fmt.Errorf("timer binding %q has no schedule", trigger.name)
	}
	t := &timer{monitored: true, location: location(settings), running: make(chan struct{}, 1)}
	t.runOnStartup, _ = trigger.properties["runOnStartup"].(bool)
	if use, ok := trigger.properties["useMonitor"].(bool); ok {
		t.monitored = use
	}
	if interval, err := parseTimeSpan(schedule); err == nil {
		if interval <= 0 {
			return nil, fmt.Errorf("schedule %q is no interval", schedule)
		}
		t.next = func(now time.Time) time.Time { return now.Add(interval) }
		t.monitored = t.monitored && interval >= time.Minute
	} else {
		if len(strings.Fields(schedule)) != 6 || strings.ContainsAny(schedule, "?@=") {
			return nil, fmt.Errorf("schedule %q is no NCRONTAB expression of six fields", schedule)
		}
		parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
		expression, err := parser.Parse(schedule)
		if err != nil {
			return nil, fmt.Errorf("schedule %q is no NCRONTAB expression: %w", schedule, err)
		}
		t.next = func(now time.Time) time.Time { return expression.Next(now.In(t.location)) }
		t.adjustDST = true
		// More than one occurrence in the next minute: no status
		// (Timers/Scheduling/TimerSchedule.cs:71-86).
		t.monitored = t.monitored && t.next(t.next(now)).After(now.Add(time.Minute))
	}
	t.status.next = t.next(now)
	return t, nil
}

// location is the time zone of the schedules, UTC unless one of two settings names another of
// the tz database. WEBSITE_TIME_ZONE is that of Azure, TZ that of .NET on Linux.
func location(settings map[string]string) *time.Location {
	for _, name := range []string{"WEBSITE_TIME_ZONE", "TZ"} {
		if zone := settings[name]; zone != "" {
			if l, err := time.LoadLocation(zone); err == nil {
				return l
			}
		}
	}
	return time.UTC
}

// Timer fires a timer function by hand and waits for its end, or until ctx gives up. The
// function gets what the host would send: a ScheduleStatus where the host keeps one, which it
// does not for schedules of less than a minute, and null otherwise. A firing waits until the one
// before has ended, since the host re-arms a timer only then. An error is an invocation that the
// host would count as failed.
func (h *Host) Timer(ctx context.Context, name string, tick Tick) (Invocation, error) {
	f := h.find(name)
	switch {
	case f == nil || f.timer == nil:
		return Invocation{}, fmt.Errorf("there is no timer function %q", name)
	case f.disabled:
		return Invocation{}, fmt.Errorf("the function %q is disabled", name)
	}
	now := h.clock.Now()
	return h.fire(ctx, f, now, now, tick)
}

// fire runs a timer function. The schedule goes on from the given occurrence, also after a
// failure: there is no retry (Timers/Listener/TimerListener.cs:314-322).
func (h *Host) fire(ctx context.Context, f *function, now, occurrence time.Time, tick Tick) (Invocation, error) {
	select {
	case f.timer.running <- struct{}{}:
		defer func() { <-f.timer.running }()
	case <-ctx.Done():
		return Invocation{}, fmt.Errorf("the last run of timer %q has not ended: %w", f.name, ctx.Err())
	}
	invocation, err := h.invoke(ctx, f, f.timerPayload(now, tick))
	f.timer.ran(occurrence)
	return invocation, err
}

func (t *timer) ran(occurrence time.Time) {
	t.set(scheduleStatus{last: occurrence, next: t.next(occurrence), lastUpdated: occurrence})
}

func (t *timer) set(status scheduleStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = status
}

func (t *timer) current() scheduleStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}

// statusPayload is what the host tells the function of its schedule, nil if it keeps nothing. It is
// that of the run before, whose next occurrence is this one.
func (t *timer) statusPayload() any {
	if !t.monitored {
		return nil
	}
	format := func(at time.Time) string {
		if at.IsZero() {
			return at.Format(dotNetTime) // in UTC everywhere
		}
		return at.In(t.location).Format(dotNetTime)
	}
	s := t.current()
	return map[string]any{"Last": format(s.last), "Next": format(s.next), "LastUpdated": format(s.lastUpdated)}
}
