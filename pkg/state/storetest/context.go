package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

func contextRules() []rule {
	return []rule{
		{"a context that has ended ends every method, and nothing changes", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), event("orders", 1))
			version := load(t, store, "orders").Version
			ctx, cancel := context.WithCancel(t.Context())
			cancel()

			_, loadErr := Load(ctx, store, "orders")
			_, outboxErr := store.Outbox(ctx, nil)
			_, historyErr := store.History(ctx, "orders", polled().Add(-time.Hour), polled().Add(time.Hour))
			_, summariesErr := store.Summaries(ctx, "orders", polled().Add(-time.Hour), polled().Add(time.Hour))
			_, documentsErr := store.Documents(ctx, ".throughput")
			_, putErr := store.Put(ctx, state.Document{Name: ".throughput", Text: []byte("{}")})
			for method, err := range map[string]error{
				"Load":      loadErr,
				"Outbox":    outboxErr,
				"History":   historyErr,
				"Summaries": summariesErr,
				"Documents": documentsErr,
				"Put":       putErr,
				"Commit":    store.Commit(ctx, version, small("orders", 2), event("orders", 2)),
				"Remove":    store.Remove(ctx, "orders", 1),
				"Prune":     store.Prune(ctx, "orders", polled().Add(24*time.Hour)),
			} {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s: got %v, want context.Canceled", method, err)
				}
			}
			wantState(t, store, small("orders", 1))
			wantEvents(t, outbox(t, store), event("orders", 1))
			wantHistory(t, store, small("orders", 1))
		}},
	}
}
