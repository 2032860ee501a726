package changefeed

import "time"

// StallKind says how a partition fails to make progress.
type StallKind string

// The kinds of a stall.
const (
	StallHung     StallKind = "hung"     // one owner keeps the lease, and its handler does not return
	StallFlapping StallKind = "flapping" // the lease is released and acquired again and again, since the handler throws
)

// Stall says since when the position of a partition has not moved, and which owners had its lease.
type Stall struct {
	Kind   StallKind `json:"kind"`
	Since  time.Time `json:"since"`
	Owners []string  `json:"owners"` // owners seen since then, sorted; at most 5
}

// Rewound is a position that went backwards: a lease was restored, reset or deleted.
type Rewound struct {
	From int64     `json:"from"` // LSN of the checkpoint before
	To   int64     `json:"to"`   // LSN of the checkpoint after; 0 if the lease has none any more
	Time time.Time `json:"time"` // of the poll that found it
}

// Ahead is a position that the feed has not reached: the lease comes from elsewhere.
type Ahead struct {
	Position int64 `json:"position"` // LSN of the checkpoint
	Feed     int64 `json:"feed"`     // newest LSN of the partition key range
}
