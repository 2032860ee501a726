package tablestore_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

func TestLoadAndCommitAreOneRequestEach(t *testing.T) {
	t.Parallel()
	var asked recorder
	store, err := tablestore.OpenWithConnectionString(account, tableOf(t), through(asked.record(network)))
	if err != nil {
		t.Fatal(err)
	}
	commit(t, store, "shipments", "") // creates the table
	before := len(asked.asked())
	event := state.Event{Processor: "orders", Sequence: 1, Body: []byte("{}")}
	if err := store.Commit(t.Context(), "", state.State{Processor: "orders"}, &event); err != nil {
		t.Fatal(err)
	}
	record, err := storetest.Load(t.Context(), store, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if record.Version == "" || len(record.Outbox) != 1 {
		t.Errorf("got version %q and %d events", record.Version, len(record.Outbox))
	}
	want := []string{"POST /devstoreaccount1/$batch", "GET /devstoreaccount1/" + tableOf(t) + "()"}
	if got := asked.asked()[before:]; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestEveryPageIsRead(t *testing.T) {
	t.Parallel()
	event := func(processor string, sequence int) string {
		return fmt.Sprintf(`{"PartitionKey":%q,"RowKey":"outbox-%012d","body0@odata.type":"Edm.Binary","body0":"eA=="}`, processor, sequence)
	}
	pages := map[string]*http.Response{ // by the row at which the page begins; the second one is empty
		"":  response(http.StatusOK, `{"value":[`+event("orders", 1)+`]}`, "x-ms-continuation-NextPartitionKey", "p", "x-ms-continuation-NextRowKey", "b"),
		"b": response(http.StatusOK, `{"value":[]}`, "x-ms-continuation-NextPartitionKey", "p", "x-ms-continuation-NextRowKey", "c"),
		"c": response(http.StatusOK, `{"value":[`+event("orders", 2)+`,{"odata.etag":"W/\"1\"","PartitionKey":"orders","RowKey":"state","state":"{\"processor\":\"orders\"}"}]}`),
	}
	store := openThrough(t, keyed, func(request *http.Request) (*http.Response, error) {
		return pages[request.URL.Query().Get("NextRowKey")], nil
	})
	record, err := storetest.Load(t.Context(), store, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if record.Version != `W/"1"` || record.State.Processor != "orders" || len(record.Outbox) != 2 {
		t.Errorf("got %+v, want the state and the events of all pages", record)
	}
}

func TestAProcessorsNameCannotChangeTheQuery(t *testing.T) {
	t.Parallel()
	var asked recorder
	store := openThrough(t, keyed, asked.record(func(*http.Request) (*http.Response, error) { return rows(), nil }))
	if _, err := storetest.Load(t.Context(), store, "a' or PartitionKey ne 'a"); err != nil {
		t.Fatal(err)
	}
	filter := asked.requests[0].URL.Query().Get("$filter")
	if want := "PartitionKey eq 'a'' or PartitionKey ne ''a' and "; !strings.HasPrefix(filter, want) {
		t.Errorf("got %s, want it to begin with %s", filter, want)
	}
}

// A connection that breaks after the service has stored makes the SDK try again, which the service
// then refuses as a conflict. What was stored is there once.
func TestACommitWhoseAnswerIsLostIsStoredOnce(t *testing.T) {
	t.Parallel()
	var losing atomic.Bool
	store, err := tablestore.OpenWithConnectionString(account, tableOf(t), through(
		func(request *http.Request) (*http.Response, error) {
			response, err := network(request)
			if err == nil && strings.HasSuffix(request.URL.Path, "$batch") && losing.CompareAndSwap(true, false) {
				_ = response.Body.Close()
				return nil, errors.New("connection reset by peer")
			}
			return response, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	for sequence := range int64(3) { // a first commit, and replacements
		record, err := storetest.Load(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		event := state.Event{Processor: "orders", Sequence: sequence + 1, Body: []byte("{}")}
		losing.Store(true)
		if err := store.Commit(t.Context(), record.Version, state.State{Processor: "orders", AttemptedAt: hour().Add(time.Duration(sequence) * time.Minute), Sequence: sequence + 1}, &event); err != nil && !errors.Is(err, state.ErrConflict) {
			t.Fatalf("got %v, want none or ErrConflict", err)
		}
		if losing.Load() {
			t.Fatal("no answer was lost")
		}
		after, err := storetest.Load(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if after.State.Sequence != sequence+1 || int64(len(after.Outbox)) != sequence+1 {
			t.Errorf("got state %d with %d events, want %d of each", after.State.Sequence, len(after.Outbox), sequence+1)
		}
		if err := store.Commit(t.Context(), record.Version, state.State{Processor: "orders"}, nil); !errors.Is(err, state.ErrConflict) {
			t.Errorf("another tick: got %v, want ErrConflict", err)
		}
	}
	if samples, err := store.History(t.Context(), "orders", hour(), hour().Add(time.Hour)); err != nil || len(samples) != 3 {
		t.Errorf("got %d samples and %v, want one of each commit", len(samples), err)
	}
}

// commit stores a State without an event.
func commit(t *testing.T, store *tablestore.Store, processor string, version state.Version) {
	t.Helper()
	if err := store.Commit(t.Context(), version, state.State{Processor: processor}, nil); err != nil {
		t.Fatal(err)
	}
}
