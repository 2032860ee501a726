package demo

import (
	"fmt"
	"sync"
	"time"
)

// Happening is something that was done to the world, by itself or by whoever watches.
type Happening struct {
	Time time.Time
	Text string // for people, such as "partition 2 of orders was split into 6 and 7"
}

// recentHappenings is how many happenings are kept.
const recentHappenings = 5

// journal keeps the last happenings.
type journal struct {
	now func() time.Time

	mu     sync.Mutex
	recent []Happening // the oldest first
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.recent = append(j.recent, Happening{Time: j.now(), Text: fmt.Sprintf(format, args...)})
	j.recent = j.recent[max(0, len(j.recent)-recentHappenings):]
}

// happenings returns a copy of the last happenings, the oldest first.
func (j *journal) happenings() []Happening {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Happening(nil), j.recent...)
}
