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

// Precedes reports whether an event at q, which arrives after the one at p, is newer, so that a consumer
// acts on it:
//
//   - A later epoch is newer, whatever the sequences: the state of the subject was lost and began anew.
//   - Within an epoch a higher sequence is newer. Gaps are allowed.
//   - The same epoch and sequence are the same event.
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

// SameEvent reports whether both are the place of one event.
func (p Position) SameEvent(q Position) bool { return p.Epoch == q.Epoch && p.Sequence == q.Sequence }
