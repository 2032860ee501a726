package demo

import (
	"fmt"
	"sync"
	"time"
)

// Happening is a change to the world, made by itself or by a visitor.
type Happening struct {
	Time time.Time
	Text string // a sentence such as "partition 2 of orders was split into 6 and 7"
}

// recentHappenings is how many happenings the journal keeps.
const recentHappenings = 5

// journal keeps the last happenings.
type journal struct {
	now func() time.Time

	mu     sync.Mutex
	recent []Happening // oldest first
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.recent = append(j.recent, Happening{Time: j.now(), Text: fmt.Sprintf(format, args...)})
	j.recent = j.recent[max(0, len(j.recent)-recentHappenings):]
}

// happenings returns a copy of the last happenings, oldest first.
func (j *journal) happenings() []Happening {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Happening(nil), j.recent...)
}
