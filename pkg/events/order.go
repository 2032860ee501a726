package events

import "time"

// Position is the place of an event among all events of its subject. The zero value comes before all
// of them.
type Position struct {
	Sequence int64
	Time     time.Time
}

// Position returns the place of the event among those of its subject.
func (e ScaleEvent) Position() Position { return Position{e.Sequence, e.Time} }

// Precedes reports whether an event that arrives after the one at p, and stands at q, is newer and so
// to be acted on:
//
//   - A higher sequence is newer. Gaps are allowed: a lost event costs nothing but time.
//   - The same sequence is the same event, whatever else it says.
//   - A lower sequence is stale, unless its event was made later: then the publisher lost its state
//     and counts from 1 again.
func (p Position) Precedes(q Position) bool {
	return q.Sequence > p.Sequence || q.Sequence < p.Sequence && q.Time.After(p.Time)
}

// SameEvent reports whether both are places of one event, published twice.
func (p Position) SameEvent(q Position) bool { return p.Sequence == q.Sequence }
