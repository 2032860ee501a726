package report

import (
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// Tick is the result of one tick.
type Tick struct {
	// of each processor that was polled, in the order of the configuration
	Polled        []state.State
	Groups        []state.State // of each group that was decided
	Uncommitted   int           // processors and groups that could not be committed, since the store failed
	Published     int           // events that were delivered
	PublishErrors int           // events that were not, of which one that is too large for the queue was dropped
	Unpublished   int           // events that wait in the outbox for the next tick
	Longest       WaitingTime   // what it waited for longest
}

// Complete reports whether everything was measured, stored and published.
func (t Tick) Complete() bool {
	for i := range t.Polled {
		if !t.Polled[i].Lag.Complete() {
			return false
		}
	}
	return t.Uncommitted == 0 && t.Unpublished == 0 && t.PublishErrors == 0
}

// WaitingTime is how long a tick waited for an account, the store or the queue.
type WaitingTime struct {
	Who  string
	Time time.Duration
}
