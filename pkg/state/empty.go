package state

import (
	"context"
	"time"
)

// Empty is a Store that stays empty. A dry run uses it if no state exists yet, since opening a real store
// would create one.
type Empty struct{}

// Load returns the zero Entry.
func (Empty) Load(context.Context, string) (Entry, error) { return Entry{}, nil }

// Commit stores nothing.
func (Empty) Commit(context.Context, Version, State, *Event) error { return nil }

// Outbox returns no event.
func (Empty) Outbox(context.Context, []string) ([]Event, error) { return nil, nil }

// Remove has nothing to remove.
func (Empty) Remove(context.Context, string, ...int64) error { return nil }

// History returns no sample.
func (Empty) History(context.Context, string, time.Time, time.Time) ([]Sample, error) {
	return nil, nil
}

// Summaries returns none.
func (Empty) Summaries(context.Context, string, time.Time, time.Time) ([]Summary, error) {
	return nil, nil
}

// Prune has nothing to remove.
func (Empty) Prune(context.Context, string, time.Time) error { return nil }

// Documents returns none.
func (Empty) Documents(context.Context, string) ([]Document, error) { return nil, nil }

// Put stores nothing.
func (Empty) Put(context.Context, Document) (Version, error) { return "", nil }

// Close has nothing to release.
func (Empty) Close() error { return nil }
