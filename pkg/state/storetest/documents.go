package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
)

// put stores a document, whatever its version.
func put(t *testing.T, store state.Store, name, text string) state.Document {
	t.Helper()
	d := state.Document{Name: name, Text: []byte(text)}
	for _, stored := range documents(t, store, name) {
		if stored.Name == name {
			d.Version = stored.Version
		}
	}
	version, err := store.Put(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	d.Version = version
	return d
}

func documents(t *testing.T, store state.Store, prefix string) []state.Document {
	t.Helper()
	found, err := store.Documents(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wantDocuments(t *testing.T, store state.Store, prefix string, want ...state.Document) {
	t.Helper()
	if got, want := fmt.Sprintf("%q", documents(t, store, prefix)), fmt.Sprintf("%q", want); got != want && (got != "[]" || want != "[]") {
		t.Errorf("the documents %s are %s, want %s", prefix, got, want)
	}
}

func documentRules() []rule {
	return []rule{
		{"documents come back by name, and nothing else does", func(t *testing.T, store state.Store) {
			wantDocuments(t, store, ".throughput")
			commit(t, store, small("orders", 1), event("orders", 1))
			b, a := put(t, store, ".throughput.b", `{"text":"it's b"}`), put(t, store, ".throughput.a", `{}`)
			whole, signals := put(t, store, ".throughput", `{"n":1}`), put(t, store, "signal.queues", `{"n":2}`)
			wantDocuments(t, store, ".throughput", whole, a, b)
			wantDocuments(t, store, ".throughput.", a, b)
			wantDocuments(t, store, "signal.queues", signals)
			wantEvents(t, outbox(t, store), event("orders", 1))
		}},
		{"a document of 300 KB comes back", func(t *testing.T, store state.Store) {
			wantDocuments(t, store, "signal.queues", put(t, store, "signal.queues", `{"text":"`+strings.Repeat("x", 300_000)+`"}`))
		}},
		{"a document is replaced and removed by its version alone", func(t *testing.T, store state.Store) {
			first := put(t, store, ".throughput.a", `{"n":1}`)
			second := put(t, store, ".throughput.a", `{"n":2}`)
			if first.Version == second.Version {
				t.Errorf("both have the version %q", first.Version)
			}
			for _, d := range []state.Document{first, {Name: first.Name, Text: first.Text}, {Name: first.Name, Version: first.Version}} {
				if _, err := store.Put(t.Context(), d); !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), ".throughput.a") {
					t.Errorf("%q: got %v, want ErrConflict of .throughput.a", d, err)
				}
			}
			wantDocuments(t, store, ".throughput", second)
			second.Text = nil
			if version, err := store.Put(t.Context(), second); err != nil || version != "" {
				t.Errorf("removing it: %q, %v", version, err)
			}
			wantDocuments(t, store, ".throughput")
			if _, err := store.Put(t.Context(), first); !errors.Is(err, state.ErrConflict) {
				t.Errorf("what was removed: got %v, want ErrConflict", err)
			}
			wantDocuments(t, store, ".throughput", put(t, store, ".throughput.a", `{"n":3}`))
		}},
		{"of many that put a document at once one succeeds", func(t *testing.T, store state.Store) {
			version := put(t, store, ".throughput.a", `{}`).Version
			var stored atomic.Int32
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					_, err := store.Put(context.WithoutCancel(t.Context()), state.Document{Name: ".throughput.a", Version: version, Text: []byte(`{"n":1}`)})
					if err == nil {
						stored.Add(1)
					} else if !errors.Is(err, state.ErrConflict) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n := stored.Load(); n != 1 {
				t.Errorf("%d have", n)
			}
		}},
	}
}
