// Package storetest is the conformance suite for implementations of state.Store: a test for each
// sentence of its comments.
//
// It is imported by tests only, and knows no implementation. Start with Run; the rules are in the
// file of the method that they are about.
//
// The package is internal to the program: its API may change in any release.
package storetest

import (
	"context"
	"reflect"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
)

// rule is one requirement on a store. check is given an empty store.
type rule struct {
	name  string
	check func(t *testing.T, store state.Store)
}

// Run tests that the stores which open returns do what state.Store requires. open is called once
// per rule, from parallel tests, and has to return an empty store that nothing else uses; Run
// closes it.
func Run(t *testing.T, open func(t *testing.T) state.Store) {
	t.Helper()
	for _, rules := range [][]rule{loadRules(), commitRules(), raceRules(), outboxRules(), historyRules(), documentRules(), contextRules()} {
		for _, rule := range rules {
			t.Run(rule.name, func(t *testing.T) {
				t.Parallel()
				store := open(t)
				t.Cleanup(func() {
					if err := store.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				})
				rule.check(t, store)
			})
		}
	}
}

// Record is what a store holds of a processor, decoded.
type Record struct {
	State   state.State
	Version state.Version
	Outbox  []state.Event
}

// Load returns what a store holds of a processor, for tests that look at all of it.
func Load(ctx context.Context, store state.Store, processor string) (Record, error) {
	stored, err := store.Load(ctx, processor)
	if err != nil {
		return Record{}, err
	}
	s, err := stored.State()
	return Record{s, stored.Version, stored.Outbox}, err
}

func load(t *testing.T, store state.Store, processor string) Record {
	t.Helper()
	got, err := Load(t.Context(), store, processor)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return got
}

func outbox(t *testing.T, store state.Store, except ...string) []state.Event {
	t.Helper()
	got, err := store.Outbox(t.Context(), except)
	if err != nil {
		t.Fatalf("outbox: %v", err)
	}
	return got
}

// commit replaces what is stored of a processor, whatever its version.
func commit(t *testing.T, store state.Store, next state.State, event *state.Event) {
	t.Helper()
	if err := replace(t.Context(), store, next, event); err != nil {
		t.Fatal(err)
	}
}

func replace(ctx context.Context, store state.Store, next state.State, event *state.Event) error {
	stored, err := Load(ctx, store, next.Processor)
	if err != nil {
		return err
	}
	return store.Commit(ctx, stored.Version, next, event)
}

func event(processor string, sequence int64) *state.Event {
	return &state.Event{Processor: processor, Sequence: sequence, Body: []byte(`{"id":"` + processor + `"}`)}
}

func wantState(t *testing.T, store state.Store, want state.State) {
	t.Helper()
	if got := load(t, store, want.Processor).State; !reflect.DeepEqual(got, want) {
		t.Errorf("state of %s: got %s, want %s", want.Processor, brief(got), brief(want))
	}
}

func wantEvents(t *testing.T, got []state.Event, want ...*state.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d events, want %d", len(got), len(want))
		return
	}
	for i, event := range want {
		switch {
		case got[i].Processor != event.Processor || got[i].Sequence != event.Sequence:
			t.Errorf("event %d: got %s/%d, want %s/%d", i, got[i].Processor, got[i].Sequence, event.Processor, event.Sequence)
		case string(got[i].Body) != string(event.Body):
			t.Errorf("event %d: got a body of %d bytes, want the %d bytes committed", i, len(got[i].Body), len(event.Body))
		}
	}
}
