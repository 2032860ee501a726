package changefeed

import "time"

// StallKind is how a partition fails to move.
type StallKind string

// The kinds of a stall.
const (
	StallHung     StallKind = "hung"     // one owner keeps the lease: its handler does not return
	StallFlapping StallKind = "flapping" // the lease is given back and taken again: its handler throws
)

// Stall says since when a partition has not moved, and who tried.
type Stall struct {
	Kind   StallKind `json:"kind"`
	Since  time.Time `json:"since"`
	Owners []string  `json:"owners"` // that were seen since, in the order of their names; at most 5
}

// Rewound is a position that went backwards: somebody restored, reset or deleted a lease.
type Rewound struct {
	From int64     `json:"from"` // LSN of the checkpoint before
	To   int64     `json:"to"`   // LSN of the checkpoint after; 0 where the lease has none any more
	Time time.Time `json:"time"` // of the poll that saw it
}
