package events

import "time"

// Position is the place of an event among all events of its subject. The zero value comes before all of
// them.
type Position struct {
	Epoch    int64 // 0 in events of releases that had none
	Sequence int64
	Time     time.Time
}

// Position returns the place of the event among those of its subject.
func (e ScaleEvent) Position() Position { return Position{e.Epoch, e.Sequence, e.Time} }

// Precedes reports whether an event that arrives after the one at p, and stands at q, is newer and so to be
// acted on:
//
//   - A later epoch is newer, and an earlier one stale, whatever the sequences: the state of the subject
//     began anew, as where it was lost.
//   - Within an epoch a higher sequence is newer. Gaps are allowed: a lost event costs nothing but time.
//   - The same epoch and sequence are the same event, whatever else it says.
//   - Without epochs a lower sequence is stale, unless its event was made later: then the publisher lost
//     its state and counts from 1 again.
func (p Position) Precedes(q Position) bool {
	switch {
	case p.Epoch != q.Epoch:
		return q.Epoch > p.Epoch
	case p.Epoch == 0 && q.Sequence < p.Sequence:
		return q.Time.After(p.Time)
	}
	return q.Sequence > p.Sequence
}

// SameEvent reports whether both are places of one event, published twice.
func (p Position) SameEvent(q Position) bool { return p.Epoch == q.Epoch && p.Sequence == q.Sequence }
