package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
)

func commitRules() []rule {
	return []rule{
		{"every commit has a version of its own", func(t *testing.T, store state.Store) {
			seen := map[state.Version]bool{"": true}
			for range 5 {
				commit(t, store, small("orders", 1), nil)
				version := load(t, store, "orders").Version
				if seen[version] {
					t.Fatalf("version %q came back", version)
				}
				seen[version] = true
			}
		}},
		{"a version stays where nothing is committed", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), event("orders", 1))
			before := load(t, store, "orders").Version
			commit(t, store, small("other", 1), nil)
			if err := store.Remove(t.Context(), "orders", 1); err != nil {
				t.Fatal(err)
			}
			if got := load(t, store, "orders").Version; got != before {
				t.Errorf("got version %q, want %q", got, before)
			}
		}},
		{"a commit with an old version is a conflict and stores nothing", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), nil)
			old := load(t, store, "orders").Version
			commit(t, store, small("orders", 2), event("orders", 2))
			wantConflict(t, store, old, small("orders", 3), nil)
			wantConflict(t, store, old, small("orders", 3), event("orders", 3))
			wantState(t, store, small("orders", 2))
			wantEvents(t, outbox(t, store), event("orders", 2))
		}},
		{"a first commit where something is stored is a conflict and stores nothing", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), event("orders", 1))
			wantConflict(t, store, "", small("orders", 2), nil)
			wantConflict(t, store, "", small("orders", 2), event("orders", 2))
			wantState(t, store, small("orders", 1))
			wantEvents(t, outbox(t, store), event("orders", 1))
		}},
		{"a commit with a version where nothing is stored is a conflict and stores nothing", func(t *testing.T, store state.Store) {
			commit(t, store, small("other", 1), nil)
			version := load(t, store, "other").Version
			wantConflict(t, store, version, small("orders", 1), nil)
			wantConflict(t, store, version, small("orders", 1), event("orders", 1))
			if got := load(t, store, "orders"); got.Version != "" || len(got.Outbox) > 0 {
				t.Errorf("got %+v, want the zero Record", got)
			}
		}},
		{"an event whose number waits already is a conflict, and the first one stays", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), event("orders", 1))
			other := &state.Event{Processor: "orders", Sequence: 1, Body: []byte("another body")}
			wantConflict(t, store, load(t, store, "orders").Version, small("orders", 2), other)
			wantState(t, store, small("orders", 1))
			wantEvents(t, outbox(t, store), event("orders", 1))
		}},
		{"an event of another processor, or out of range, is refused and stores nothing", func(t *testing.T, store state.Store) {
			for _, refused := range []*state.Event{
				event("other", 1), event("orders", 0), event("orders", -1), event("orders", 1_000_000_000_000),
			} {
				err := store.Commit(t.Context(), "", small("orders", 1), refused)
				if err == nil || errors.Is(err, state.ErrConflict) {
					t.Errorf("event %s/%d: got %v, want an error that is no conflict", refused.Processor, refused.Sequence, err)
				}
			}
			if got := load(t, store, "orders"); got.Version != "" {
				t.Errorf("got version %q, want none", got.Version)
			}
			wantEvents(t, outbox(t, store))
		}},
		{"an error names the processor", func(t *testing.T, store state.Store) {
			err := store.Commit(t.Context(), "1", small("orders-eu", 1), nil)
			if err == nil || !strings.Contains(err.Error(), "orders-eu") {
				t.Errorf("got %v, want an error that names orders-eu", err)
			}
		}},
	}
}

func wantConflict(t *testing.T, store state.Store, version state.Version, next state.State, event *state.Event) {
	t.Helper()
	if err := store.Commit(t.Context(), version, next, event); !errors.Is(err, state.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
}
