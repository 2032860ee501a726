package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
)

// ticks is the number of ticks that run at once in these tests.
const ticks = 16

func raceRules() []rule {
	return []rule{
		{"of many first commits at once exactly one wins", func(t *testing.T, store state.Store) {
			wantOneWinner(t, store, "", nil)
		}},
		{"of many commits of one version at once exactly one wins", func(t *testing.T, store state.Store) {
			for range 3 {
				commit(t, store, small("orders", 1_000), nil)
				wantOneWinner(t, store, load(t, store, "orders").Version, nil)
			}
		}},
		{"of many commits with the same event number exactly one wins, with its own event", func(t *testing.T, store state.Store) {
			wantOneWinner(t, store, "", event("orders", 1))
			wantOneWinner(t, store, load(t, store, "orders").Version, event("orders", 2))
		}},
		{"commits of many processors at once all succeed", func(t *testing.T, store state.Store) {
			var all sync.WaitGroup
			for tick := range ticks {
				all.Go(func() {
					name := fmt.Sprintf("orders-%d", tick)
					for sequence := range int64(5) {
						if err := replace(t.Context(), store, small(name, sequence+1), event(name, sequence+1)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			for tick := range ticks {
				wantState(t, store, small(fmt.Sprintf("orders-%d", tick), 5))
			}
			if got := len(outbox(t, store)); got != ticks*5 {
				t.Errorf("got %d events, want %d", got, ticks*5)
			}
		}},
	}
}

// wantOneWinner commits as many different States and, where event is not nil, as many different
// bodies under its number, all at once.
func wantOneWinner(t *testing.T, store state.Store, version state.Version, event *state.Event) {
	t.Helper()
	var results [ticks]error
	var all sync.WaitGroup
	start := make(chan struct{})
	for tick := range ticks {
		all.Go(func() {
			var own *state.Event
			if event != nil {
				own = &state.Event{Processor: event.Processor, Sequence: event.Sequence, Body: fmt.Appendf(nil, "tick %d", tick)}
			}
			<-start
			results[tick] = store.Commit(t.Context(), version, small("orders", int64(tick)), own)
		})
	}
	close(start)
	all.Wait()

	winner, winners := 0, 0
	for tick, err := range results {
		switch {
		case err == nil:
			winner = tick
			winners++
		case !errors.Is(err, state.ErrConflict):
			t.Errorf("tick %d: got %v, want ErrConflict", tick, err)
		}
	}
	if winners != 1 {
		t.Fatalf("%d ticks won, want 1", winners)
	}
	wantState(t, store, small("orders", int64(winner)))
	if event == nil {
		return
	}
	waiting := load(t, store, "orders").Outbox
	if last, want := string(waiting[len(waiting)-1].Body), fmt.Sprintf("tick %d", winner); last != want {
		t.Errorf("the event is that of %s, want %s", last, want)
	}
}
