package state_test

import (
	"context"
	"errors"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
)

// conflicting is a store whose every commit comes too late.
type conflicting struct{ state.Empty }

func (conflicting) Commit(context.Context, state.Version, state.State, *state.Event) error {
	return state.ErrConflict
}

func TestACommitIsToldToWhoWaitsForThatProcessor(t *testing.T) {
	t.Parallel()
	for rule, store := range map[string]state.Store{"one that succeeds": state.Empty{}, "one that another process overtook": conflicting{}} {
		c := state.Commits{Store: store, Wrote: func(string, *state.State) {}}
		orders, again, payments := c.Changed("orders"), c.Changed("orders"), c.Changed("payments")
		if err := c.Commit(t.Context(), "", state.State{Processor: "orders"}, nil); err != nil && !errors.Is(err, state.ErrConflict) {
			t.Fatal(err)
		}
		for _, told := range []<-chan struct{}{orders, again} {
			select {
			case <-told:
			default:
				t.Errorf("%s is not told", rule)
			}
		}
		select {
		case <-payments:
			t.Errorf("%s is told of another processor", rule)
		case <-c.Changed("orders"):
			t.Errorf("%s is told again", rule)
		default:
		}
	}
}
