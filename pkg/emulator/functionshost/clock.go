package functionshost

import (
	"sync"
	"time"
)

// Clock is what a host reads the time from and waits on: timers, functionTimeout, the crash
// policy, the drain and the locks. A nil Clock is the wall clock; one of NewClock stands still
// until Advance moves it. The start of the handler takes real time on either.
type Clock struct {
	mu      sync.Mutex
	now     time.Time
	waiting map[chan time.Time]time.Time // what each waits for
}

// NewClock returns a clock that stands at a time.
func NewClock(now time.Time) *Clock {
	return &Clock{now: now, waiting: map[chan time.Time]time.Time{}}
}

// Now is the time on the clock.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves a clock of NewClock. Who waits for a time on the way wakes at that time, not at
// the end of the way.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for channel, at := range c.waiting {
		if !at.After(c.now) {
			channel <- at
			delete(c.waiting, channel)
		}
	}
}

// at returns a channel that receives the time at t, and a function that stops the wait.
func (c *Clock) at(t time.Time) (reached <-chan time.Time, stop func()) {
	if c == nil {
		timer := time.NewTimer(time.Until(t))
		return timer.C, func() { timer.Stop() }
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	channel := make(chan time.Time, 1)
	if !t.After(c.now) {
		channel <- c.now
		return channel, func() {}
	}
	c.waiting[channel] = t
	return channel, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, channel)
	}
}

// after is at for a time from now.
func (c *Clock) after(d time.Duration) (reached <-chan time.Time, stop func()) {
	return c.at(c.Now().Add(d))
}
