package report

import (
	"sync"
	"time"
)

// Durations keeps the longest of a tick's waits for accounts, the store and the queue. The zero value
// has none. It is safe for concurrent use.
type Durations struct {
	mu      sync.Mutex
	longest Took
}

// Took is how long a tick waited for one of them.
type Took struct {
	Who  string
	Time time.Duration
}

// Add adds one wait.
func (d *Durations) Add(who string, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if took > d.longest.Time {
		d.longest = Took{who, took}
	}
}

// Longest returns the longest wait; zero if there was none.
func (d *Durations) Longest() Took {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.longest
}
