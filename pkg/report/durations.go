package report

import (
	"cmp"
	"slices"
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

// Longest returns all waits, the longest first.
func (d *Durations) Longest() []Took {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Took, 0, len(d.took))
	for who, took := range d.took {
		all = append(all, Took{who, took})
	}
	slices.SortFunc(all, func(a, b Took) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Who, b.Who)) })
	return all
}
