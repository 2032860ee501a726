package state

import (
	"context"
	"time"
)

// Empty is a Store that stays empty: its methods return nothing, store nothing, and never fail. A dry run
// uses it if no state exists yet, since opening a real store would create one.
type Empty struct{}

// The methods of Store.
func (Empty) Load(context.Context, string) (Entry, error)                           { return Entry{}, nil }
func (Empty) Commit(context.Context, Version, State, *Event) error                  { return nil }
func (Empty) Outbox(context.Context, []string) ([]Event, error)                     { return nil, nil }
func (Empty) Remove(context.Context, string, ...int64) error                        { return nil }
func (Empty) Prune(context.Context, string, time.Time) error                        { return nil }
func (Empty) Documents(context.Context, string) ([]Document, error)                 { return nil, nil }
func (Empty) Put(context.Context, Document) (Version, error)                        { return "", nil }
func (Empty) Close() error                                                          { return nil }
func (Empty) History(_ context.Context, _ string, _, _ time.Time) ([]Sample, error) { return nil, nil }
func (Empty) Summaries(_ context.Context, _ string, _, _ time.Time) ([]Summary, error) {
	return nil, nil
}
