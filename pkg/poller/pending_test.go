package poller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

const pending = 5000 // events, of a broker that was away for a night

// body is the event of a sequence.
func body(processor string, sequence int64, replicas int) []byte {
	return fmt.Appendf(nil, `{"specversion":"1.0","id":"%[1]s-000000000%[2]d","source":"feedscale","type":"feedscale.scale.v1","subject":"%[1]s","time":"2026-01-01T00:00:00Z","datacontenttype":"application/json","data":{"processor":"%[1]s","sequence":%[2]d,"desiredReplicas":%[3]d,"previousReplicas":1,"active":true,"direction":"out","metricValue":9,"lag":9,"changeAgeSeconds":1,"partitionCount":1,"partitionsWithLag":1,"complete":true,"status":"lagging","reasons":[],"target":{}}}`, processor, sequence, replicas)
}

// longOutbox is a store in which many events of one processor wait, each removal of a hundred of which
// takes as long as with a table.
type longOutbox struct {
	state.Store
	processor string

	mu       sync.Mutex
	events   []state.Event
	removals int
}

func (s *longOutbox) Load(ctx context.Context, processor string) (state.Entry, error) {
	record, err := s.Store.Load(ctx, processor)
	s.mu.Lock()
	defer s.mu.Unlock()
	if processor == s.processor {
		record.Outbox = append(slices.Clone(s.events), record.Outbox...)
	}
	return record, err
}

func (s *longOutbox) Remove(ctx context.Context, processor string, sequences ...int64) error {
	for some := range slices.Chunk(sequences, 100) {
		time.Sleep(30 * time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.mu.Lock()
		s.events = slices.DeleteFunc(s.events, func(e state.Event) bool { return slices.Contains(some, e.Sequence) })
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.removals++
	s.mu.Unlock()
	return s.Store.Remove(ctx, processor, sequences...)
}

// TestALongOutboxDelaysNobody has 5,000 events of one processor pending: the newest is published, the
// others are dropped in one removal, and the other processors are published meanwhile.
func TestALongOutboxDelaysNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		l.write(5)
		account := l.Client()
		l.poller.Processors = []poller.Processor{l.named("behind", account, 0), l.named("other", account, 0)}
		store := &longOutbox{Store: l.store, processor: "behind"}
		for i := range int64(pending) {
			store.events = append(store.events, state.Event{Processor: "behind", Sequence: i + 1, Body: body("behind", i+1, 7)})
		}
		stored := state.State{Processor: "behind", Sequence: pending}
		if err := l.store.Commit(t.Context(), "", stored, nil); err != nil {
			t.Fatal(err)
		}
		l.poller.Store = store
		began := time.Now()
		soon := l.soon()
		r, err := l.poller.Tick(t.Context(), poller.Mode{})
		if err != nil || r.Unpublished != 0 || r.Uncommitted != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		took := time.Since(began)
		if got := strings.Join(slices.Sorted(slices.Values(soon())), ", "); got != fmt.Sprintf("behind/%d null->1 true, other/1 null->1 true", pending+1) {
			t.Errorf("published in the first second of %s: %q; want the newest of each", took, got)
		}
		if len(store.events) != 0 || store.removals > 3 {
			t.Errorf("%d events are left after %d removals", len(store.events), store.removals)
		}
		if took > tickTimeout {
			t.Errorf("the tick took %s", took)
		}
		time.Sleep(interval)
		if _, err := l.poller.Tick(t.Context(), poller.Mode{}); err != nil || len(l.broker.take(t)) != 0 {
			t.Errorf("published again, %v", err)
		}
	})
}

// TestALongOutboxInATable_Long has them removed from a table in one tick.
func TestALongOutboxInATable_Long(t *testing.T) {
	t.Parallel()
	account := tables(t)
	store, err := tablestore.OpenWithConnectionString(account, "pending", azcore.ClientOptions{Transport: bounded.NewClient()})
	if err != nil {
		t.Fatal(err)
	}
	first := state.Event{Processor: "orders", Sequence: 1, Body: body("orders", 1, 7)}
	if err := store.Commit(t.Context(), "", state.State{Processor: "orders", Sequence: pending, Decision: &scaling.Decision{Replicas: 7}}, &first); err != nil {
		t.Fatal(err)
	}
	copyEvent(t, account, pending)
	w := newWorld(t)
	w.poller.Store = store
	w.write(5)
	w.poller.Timeout = 10 * time.Minute // on a machine that has much else to do
	w.tick()
	w.wantEvents(fmt.Sprintf("orders/%d null->1 true", pending+1))
	if record, err := storetest.Load(t.Context(), store, "orders"); err != nil || len(record.Outbox) != 0 {
		t.Errorf("%d events are left, %v", len(record.Outbox), err)
	}
}

// copyEvent copies the row of the first event of orders for each further sequence.
func copyEvent(t *testing.T, connection string, n int64) {
	t.Helper()
	service, err := aztables.NewServiceClientFromConnectionString(connection, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := service.NewClient("pending")
	row := func(sequence int64) string { return fmt.Sprintf("outbox-%012d", sequence) }
	stored, err := table.GetEntity(t.Context(), "orders", row(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	var entity aztables.EDMEntity
	if err := entity.UnmarshalJSON(stored.Value); err != nil {
		t.Fatal(err)
	}
	var sequences []int64
	for i := int64(2); i <= n; i++ {
		sequences = append(sequences, i)
	}
	for some := range slices.Chunk(sequences, 100) {
		var actions []aztables.TransactionAction
		for _, sequence := range some {
			text, err := aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: "orders", RowKey: row(sequence)}, Properties: entity.Properties}.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: text})
		}
		if _, err := table.SubmitTransaction(t.Context(), actions, nil); err != nil {
			t.Fatal(err)
		}
	}
}
