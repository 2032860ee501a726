package report

import (
	"sync"
	"time"
)

// Durations collects how long a tick waited for each account, the store and the queue. The zero
// value is empty. It is safe for concurrent use.
type Durations struct {
	mu   sync.Mutex
	took map[string]time.Duration
}

// Add records one wait. Of several waits for the same name, the longest counts.
func (d *Durations) Add(who string, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.took == nil {
		d.took = make(map[string]time.Duration)
	}
	d.took[who] = max(d.took[who], took)
}

// Took is how long a tick waited for one of them.
type Took struct {
	Who  string
	Time time.Duration
}

// Longest returns the longest wait; zero if there was none.
func (d *Durations) Longest() (longest Took) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for who, took := range d.took {
		if took > longest.Time {
			longest = Took{who, took}
		}
	}
	return longest
}
