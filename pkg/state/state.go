// Package state says what is remembered of each processor between two ticks,
// and what a store of it must do. It does no I/O: boltstore and tablestore do,
// and storetest proves both the same.
package state

import (
	"context"
	"errors"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// State is everything remembered of one processor. It is replaced as a whole
// by each tick.
type State struct {
	Processor   string    `json:"processor"`
	AttemptedAt time.Time `json:"attemptedAt"`       // last poll, whatever came of it
	PolledAt    time.Time `json:"polledAt,omitzero"` // last poll that measured something; zero where none did

	Lag      changefeed.ProcessorLag `json:"lag"`                // of the last poll
	Decision *scaling.Decision       `json:"decision,omitempty"` // of the last poll; nil where nothing could be decided
	Memory   scaling.Memory          `json:"memory"`             // what the next decision needs to know of the earlier ones

	Sequence  int64      `json:"sequence"`            // of the last scale event; 0 where there was none
	Published *Published `json:"published,omitempty"` // what the last scale event said
	Paused    bool       `json:"paused,omitempty"`

	Recorded *Sample `json:"recorded,omitempty"` // what the history keeps of the last poll; nil where Record was not called
}

// Published is what the last scale event of a processor said.
type Published struct {
	Time     time.Time `json:"time"`
	Replicas int       `json:"replicas"`
	Active   bool      `json:"active"`
}

// Version identifies one stored State, as an ETag does. The empty Version
// means that nothing is stored.
type Version string

// Event is one scale event that waits in the outbox.
type Event struct {
	Processor string
	Sequence  int64  // 1..999999999999, unique and rising within a processor
	Body      []byte // the exact bytes to be published, however often it takes
}

// Record is what a store holds of one processor.
type Record struct {
	State   State   // zero where Version is empty
	Version Version // to be handed to Commit
	Outbox  []Event // not yet published, oldest first
}

// ErrConflict is returned by Commit where the stored State is not the one the
// Version was read with: another tick was faster, and this one's result is to
// be dropped.
var ErrConflict = errors.New("the state was changed by another tick")

// Store keeps the State, the outbox and the history of every processor
// (DESIGN 8). All methods are safe for concurrent use, give up when ctx ends,
// and name the store and the processor in their errors.
type Store interface {
	// Load returns what is stored of a processor; the zero Record where
	// nothing is.
	Load(ctx context.Context, processor string) (Record, error)

	// Commit replaces the State of s.Processor, adds event to its outbox where
	// it is not nil, and s.Sample() to its history where s.AttemptedAt is not
	// zero: all or nothing. It returns ErrConflict, and stores nothing, unless
	// the stored State is still that of version.
	//
	// The history keeps one sample for each 15 s, counted from the full hour
	// (SampleInterval): of those that fall together, the one committed last.
	Commit(ctx context.Context, version Version, s State, event *Event) error

	// Outbox returns the events that are not yet published of all processors
	// but those in except, by processor and oldest first. With the configured
	// ones in except, these are the events of processors that no longer are.
	Outbox(ctx context.Context, except []string) ([]Event, error)

	// Remove takes a published event out of the outbox. Removing one that is
	// not there is no error: two ticks may publish the same event.
	Remove(ctx context.Context, processor string, sequence int64) error

	// History returns the samples of a processor with from <= Time < to, oldest
	// first; nil where there are none.
	History(ctx context.Context, processor string, from, to time.Time) ([]Sample, error)

	// Prune removes from the history of a processor every hour (UTC) that ended
	// at or before the given time, and nothing else. Having nothing to remove
	// is no error: two processes may prune at once.
	Prune(ctx context.Context, processor string, before time.Time) error

	// Close releases what the store holds open.
	Close() error
}
