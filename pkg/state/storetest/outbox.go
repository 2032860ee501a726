package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
)

func outboxRules() []rule {
	return []rule{
		{"an empty outbox has no events", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), nil)
			wantEvents(t, outbox(t, store))
		}},
		{"events come by processor and oldest first, whatever their number of digits", func(t *testing.T, store state.Store) {
			sequences := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 99, 100, 999_999, 1_000_000, 999_999_999_999}
			var want []*state.Event
			for _, name := range []string{"a", "a-b", "ab"} {
				for _, sequence := range sequences {
					want = append(want, event(name, sequence))
				}
			}
			for i := len(sequences) - 1; i >= 0; i-- { // the order of arrival does not count
				for _, name := range []string{"ab", "a", "a-b"} {
					commit(t, store, small(name, sequences[i]), event(name, sequences[i]))
				}
			}
			wantEvents(t, outbox(t, store), want...)
			wantEvents(t, load(t, store, "a-b").Outbox, want[len(sequences):2*len(sequences)]...)
		}},
		{"the events of the excepted processors stay away, and only those", func(t *testing.T, store state.Store) {
			names := []string{"0", "a", "a-b", "a0", "ab", "b", "outbox-000000000001"} // in order
			var all []*state.Event
			for _, name := range names {
				for sequence := range int64(2) {
					all = append(all, event(name, sequence+1))
					commit(t, store, small(name, sequence+1), event(name, sequence+1))
				}
			}
			for _, except := range [][]string{
				{}, {"a"}, {"0"}, {"outbox-000000000001"}, {"a-b", "a"}, {"ab", "a", "ab", "a"}, {"0", "a-b", "b"}, {"A", "a-", "aa", "zzz", "a'b"}, names,
			} {
				var want []*state.Event
				for _, event := range all {
					if !slices.Contains(except, event.Processor) {
						want = append(want, event)
					}
				}
				wantEvents(t, outbox(t, store, except...), want...)
			}
		}},
		{"an outbox of more than a thousand events comes back whole", func(t *testing.T, store state.Store) {
			const events, writers = 1040, 8
			var want []*state.Event
			for i := range events {
				want = append(want, event(fmt.Sprintf("orders-%04d", i), 1))
			}
			var all sync.WaitGroup
			for writer := range writers {
				all.Go(func() {
					for i := writer; i < events; i += writers {
						if err := store.Commit(t.Context(), "", small(want[i].Processor, 1), want[i]); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			wantEvents(t, outbox(t, store), want...)
		}},
		{"a body comes back byte for byte", func(t *testing.T, store state.Store) {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			long := make([]byte, 300_000)
			random := rand.New(rand.NewPCG(3, 4))
			for i := range long {
				long[i] = byte(random.Uint32())
			}
			bodies := map[string][]byte{
				"empty": {}, "zero": {0}, "every": every, "long": long, "edge": long[:64<<10], "past-edge": long[:64<<10+1],
				"json":     []byte("{\"id\": \"a\",\r\n \"why\":\"5 > 4 & 'ünï' \\u00e9 😀 \"}\n"),
				"not-utf8": []byte("\xff\xfe\xc3("), "blank": []byte("  \n"), "date": []byte("2026-01-01T00:00:00Z"), "number": []byte("007"),
			}
			for name, body := range bodies {
				commit(t, store, small(name, 1), &state.Event{Processor: name, Sequence: 1, Body: body})
			}
			for name, body := range bodies {
				loaded := load(t, store, name).Outbox
				if len(loaded) != 1 || !bytes.Equal(loaded[0].Body, body) {
					t.Errorf("%s: the body that was loaded is not the one that was committed", name)
				}
			}
			for _, waiting := range outbox(t, store) {
				if !bytes.Equal(waiting.Body, bodies[waiting.Processor]) {
					t.Errorf("%s: the body in the outbox is not the one that was committed", waiting.Processor)
				}
			}
		}},
		{"what a store returned is the caller's to change", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), event("orders", 1))
			clear(load(t, store, "orders").Outbox[0].Body)
			clear(outbox(t, store)[0].Body)
			wantEvents(t, outbox(t, store), event("orders", 1))
		}},
		{"removing takes out that event only", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), event("orders", 1))
			commit(t, store, small("orders", 2), event("orders", 2))
			commit(t, store, small("orders-eu", 1), event("orders-eu", 1))
			remove(t, store, "orders", 1)
			wantEvents(t, outbox(t, store), event("orders", 2), event("orders-eu", 1))
			wantState(t, store, small("orders", 2))
		}},
		{"removing what is not there is no error", func(t *testing.T, store state.Store) {
			remove(t, store, "orders", 1)
			commit(t, store, small("orders", 1), event("orders", 1))
			remove(t, store, "orders", 1)
			remove(t, store, "orders", 1)
			remove(t, store, "orders", 2)
			wantEvents(t, outbox(t, store))
		}},
		{"two ticks that remove the same event at once both succeed", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), event("orders", 1))
			var all sync.WaitGroup
			for range ticks {
				all.Go(func() {
					if err := store.Remove(t.Context(), "orders", 1); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			wantEvents(t, outbox(t, store))
		}},
	}
}

func remove(t *testing.T, store state.Store, processor string, sequence int64) {
	t.Helper()
	if err := store.Remove(t.Context(), processor, sequence); err != nil {
		t.Fatalf("remove: %v", err)
	}
}
