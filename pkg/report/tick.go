package report

import "github.com/feedscale/feedscale/pkg/state"

// Tick is what one tick did.
type Tick struct {
	Polled      []state.State // of each processor that was polled, in the order of the configuration
	Groups      []state.State // of each group that was decided
	Uncommitted int           // how many of both could not be committed, since the store failed
	Unpublished int           // events that stay in the outbox for the next tick
	TooLarge    int           // events that were dropped, since the queue takes none so large
	Took        []Took        // whom it waited for, the longest first
}

// Complete reports whether everything that was polled is known, and stored and published.
func (t Tick) Complete() bool {
	for i := range t.Polled {
		if !t.Polled[i].Lag.Complete() {
			return false
		}
	}
	return t.Uncommitted == 0 && t.Unpublished == 0 && t.TooLarge == 0
}
