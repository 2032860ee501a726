package state

import "context"

// Empty is a Store in which nothing is stored, and stays so: for a dry run
// where there is no state yet, since opening one would create it.
type Empty struct{}

// Load returns the zero Record.
func (Empty) Load(context.Context, string) (Record, error) { return Record{}, nil }

// Commit stores nothing.
func (Empty) Commit(context.Context, Version, State, *Event) error { return nil }

// Outbox returns no event.
func (Empty) Outbox(context.Context) ([]Event, error) { return nil, nil }

// Remove has nothing to remove.
func (Empty) Remove(context.Context, string, int64) error { return nil }

// Close has nothing to release.
func (Empty) Close() error { return nil }
