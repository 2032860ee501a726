package tablestore_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

func TestTheColumnsForPeople(t *testing.T) {
	t.Parallel()
	store, table := open(t), client(t)
	const big = int64(1)<<53 + 1 // no float64 is this number
	one, rest := int64(1), big-1
	polled := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))

	for _, tt := range []struct {
		name  string
		state state.State
		want  map[string]any // nil where the column is absent
	}{
		{"a State that was measured", state.State{
			Processor: "orders", PolledAt: polled, Sequence: big, Decision: &scaling.Decision{Replicas: 5},
			Lag: changefeed.ProcessorLag{Time: polled, Partitions: []changefeed.Partition{
				{Lease: "0", Lag: &one, Status: changefeed.StatusOK}, {Lease: "1", Lag: &rest, Status: changefeed.StatusLagging},
			}},
		}, map[string]any{
			"processor": "orders", "sequence": aztables.EDMInt64(big), "desiredReplicas": aztables.EDMInt64(5),
			"lag": aztables.EDMInt64(big), "status": "lagging", "polledAt": aztables.EDMDateTime(polled.UTC()),
		}},
		{"what is unknown now is absent, though it was known before", state.State{Processor: "orders", Sequence: 7}, map[string]any{
			"processor": "orders", "sequence": aztables.EDMInt64(7), "desiredReplicas": nil, "lag": nil, "status": nil, "polledAt": nil,
		}},
	} {
		record, err := storetest.Load(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Commit(t.Context(), record.Version, tt.state, nil); err != nil {
			t.Fatal(err)
		}
		row := stored(t, table, "orders", "state")
		for column, want := range tt.want {
			if got := row.Properties[column]; got != want {
				t.Errorf("%s: %s: got %v, want %v", tt.name, column, got, want)
			}
		}
		if text, _ := row.Properties["state"].(string); !strings.Contains(text, `"processor":"orders"`) {
			t.Errorf("%s: the State is not there as text: %q", tt.name, text)
		}
	}
}

func TestWhatDoesNotFitIntoARowIsRefusedAndStoresNothing(t *testing.T) {
	t.Parallel()
	store := open(t)
	noise := make([]byte, 2<<20)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range noise {
		noise[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[random.IntN(64)]
	}
	bigState := state.State{Processor: "orders", Lag: changefeed.ProcessorLag{Error: string(noise)}}
	bigEvent := state.Event{Processor: "orders", Sequence: 1, Body: noise}
	for name, tt := range map[string]struct {
		state state.State
		event *state.Event
		want  string
	}{
		"a State":  {bigState, nil, "bolt:"},
		"an event": {state.State{Processor: "orders"}, &bigEvent, "fewer labels"},
	} {
		err := store.Commit(t.Context(), "", tt.state, tt.event)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
	record, err := storetest.Load(t.Context(), store, "orders")
	if err != nil || record.Version != "" {
		t.Errorf("got version %q and %v, want nothing", record.Version, err)
	}
}

func TestTheLargestEventFits(t *testing.T) {
	t.Parallel()
	store := open(t)
	body := []byte(strings.Repeat("x", 15*64<<10))
	event := state.Event{Processor: "orders", Sequence: 1, Body: body}
	if err := store.Commit(t.Context(), "", state.State{Processor: "orders"}, &event); err != nil {
		t.Fatal(err)
	}
	record, err := storetest.Load(t.Context(), store, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if len(record.Outbox) != 1 || string(record.Outbox[0].Body) != string(body) {
		t.Error("the event came back changed")
	}
}

func TestTextOfTheLargestSizeIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	store := open(t)
	for _, units := range []int{31_000, 31_700, 32_500, 33_000, 40_000} { // around where text is compressed
		for name, letter := range map[string]string{"one": "x", "two": "é", "pair": "😀"} {
			want := strings.Repeat(letter, units/len(letter))
			next := state.State{Processor: name, Lag: changefeed.ProcessorLag{Error: want}}
			record, err := storetest.Load(t.Context(), store, name)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Commit(t.Context(), record.Version, next, nil); err != nil {
				t.Fatal(err)
			}
			if record, err = storetest.Load(t.Context(), store, name); err != nil || record.State.Lag.Error != want {
				t.Errorf("%s, %d: %v, or another State", name, units, err)
			}
		}
	}
}

func TestARowOfAnotherKindIsLeftAlone(t *testing.T) {
	t.Parallel()
	store, table := open(t), client(t)
	commit(t, store, "orders", "")
	for _, key := range []string{"history-2026010203", "note", "zzz", "outbox", "outboz"} {
		insert(t, table, "orders", key, map[string]any{"text": "something else"})
	}
	record, err := storetest.Load(t.Context(), store, "orders")
	if err != nil || record.Version == "" || len(record.Outbox) > 0 {
		t.Errorf("got version %q, %d events and %v", record.Version, len(record.Outbox), err)
	}
	if events, err := store.Outbox(t.Context(), nil); err != nil || len(events) > 0 {
		t.Errorf("got %d events and %v", len(events), err)
	}
}

func TestARowThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	store, table := open(t), client(t)
	commit(t, store, "orders", "")
	binary := aztables.EDMBinary("x")
	for processor, row := range map[string]struct {
		key        string
		properties map[string]any
	}{
		"empty":      {"state", map[string]any{}},
		"not-json":   {"state", map[string]any{"state": "hello"}},
		"not-packed": {"state", map[string]any{"state0": binary}},
		"not-text":   {"state", map[string]any{"state": aztables.EDMInt64(1)}},
		"word":       {"outbox-next", map[string]any{"body0": binary}},
		"digits":     {"outbox-7", map[string]any{"body0": binary}},
		"no-body":    {"outbox-000000000007", map[string]any{}},
	} {
		insert(t, table, processor, row.key, row.properties)
		_, err := storetest.Load(t.Context(), store, processor)
		if err == nil || !strings.Contains(err.Error(), row.key) || !strings.Contains(err.Error(), processor) {
			t.Errorf("%s: got %v, want an error that names the row", processor, err)
		}
	}
	if _, err := store.Outbox(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "outbox-") {
		t.Errorf("outbox: got %v, want an error that names the row", err)
	}
}

// client reads and writes the rows of a test as another program would.
func client(t *testing.T) *aztables.Client {
	t.Helper()
	service, err := aztables.NewServiceClientFromConnectionString(account, nil)
	if err != nil {
		t.Fatal(err)
	}
	return service.NewClient(tableOf(t))
}

func insert(t *testing.T, table *aztables.Client, processor, key string, properties map[string]any) {
	t.Helper()
	entity, err := json.Marshal(aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: processor, RowKey: key}, Properties: properties})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.AddEntity(t.Context(), entity, nil); err != nil {
		t.Fatal(err)
	}
}

func stored(t *testing.T, table *aztables.Client, processor, key string) aztables.EDMEntity {
	t.Helper()
	response, err := table.GetEntity(t.Context(), processor, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	var row aztables.EDMEntity
	if err := json.Unmarshal(response.Value, &row); err != nil {
		t.Fatal(err)
	}
	return row
}
