package storetest

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
)

func loadRules() []rule {
	return []rule{
		{"a processor of which nothing is stored has the zero Record", func(t *testing.T, store state.Store) {
			commit(t, store, small("other", 1), event("other", 1))
			got := load(t, store, "orders")
			if got.Version != "" || got.Outbox != nil || got.State.Processor != "" {
				t.Errorf("got %+v, want the zero Record", got)
			}
		}},
		{"a State comes back with every field", func(t *testing.T, store state.Store) {
			want := full("orders", 3)
			commit(t, store, want, nil)
			wantState(t, store, want)
		}},
		{"a State of the least fields comes back", func(t *testing.T, store state.Store) {
			want := state.State{Processor: "orders"}
			commit(t, store, want, nil)
			wantState(t, store, want)
		}},
		{"a State of 200 partitions comes back", func(t *testing.T, store state.Store) {
			want := full("orders", 200)
			commit(t, store, want, nil)
			wantState(t, store, want)
		}},
		{"a State of 10000 partitions comes back, and with an event", func(t *testing.T, store state.Store) {
			want := full("orders", 10_000)
			commit(t, store, want, event("orders", 1))
			wantState(t, store, want)
		}},
		{"a smaller State leaves nothing of the bigger one before it", func(t *testing.T, store state.Store) {
			commit(t, store, full("orders", 2_000), nil)
			want := small("orders", 2)
			commit(t, store, want, nil)
			wantState(t, store, want)
			commit(t, store, full("orders", 2_000), nil)
			wantState(t, store, full("orders", 2_000))
		}},
		{"a Record has the events of its own processor only, oldest first", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 9), event("orders", 9))
			commit(t, store, small("orders", 10), event("orders", 10))
			commit(t, store, small("orders-eu", 1), event("orders-eu", 1))
			wantEvents(t, load(t, store, "orders").Outbox, event("orders", 9), event("orders", 10))
		}},
		{"processors do not see each other, however alike their names", func(t *testing.T, store state.Store) {
			names := []string{
				"a", "a-b", "a--b", "ab", "b", "0", "9-9", "state", "outbox", "outbox-000000000001", "history",
				strings.Repeat("x", 62), strings.Repeat("x", 63), strings.Repeat("x", 31) + "-" + strings.Repeat("x", 31),
			}
			for i, name := range names {
				commit(t, store, small(name, int64(i)), event(name, int64(i+1)))
			}
			for i, name := range names {
				wantState(t, store, small(name, int64(i)))
				wantEvents(t, load(t, store, name).Outbox, event(name, int64(i+1)))
			}
		}},
	}
}
