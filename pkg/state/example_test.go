package state_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// A tick loads what is stored, commits the new State together with its event, publishes the event
// and removes it. Of two ticks that loaded the same version, the second to commit gets ErrConflict.
func ExampleStore() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	store, err := boltstore.Open(filepath.Join(folder, "feedscale.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	ctx := context.Background()

	stored, _ := store.Load(ctx, "orders")
	next, _ := stored.State()
	next.Processor, next.Sequence = "orders", next.Sequence+1
	event := &state.Event{Processor: "orders", Sequence: next.Sequence, Body: []byte(`{"desiredReplicas":3}`)}
	fmt.Println("commit:", store.Commit(ctx, stored.Version, next, event))
	err = store.Commit(ctx, stored.Version, next, event)
	fmt.Println("another tick:", errors.Is(err, state.ErrConflict))

	stored, _ = store.Load(ctx, "orders")
	for _, e := range stored.Outbox {
		fmt.Printf("publish event %d: %s\n", e.Sequence, e.Body)
		fmt.Println("remove:", store.Remove(ctx, e.Processor, e.Sequence))
	}
	// Output:
	// commit: <nil>
	// another tick: true
	// publish event 1: {"desiredReplicas":3}
	// remove: <nil>
}
