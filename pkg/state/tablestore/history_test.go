package tablestore_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

func hour() time.Time { return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC) }

func polledAt(at time.Time) state.State {
	return state.State{Processor: "orders", AttemptedAt: at}
}

func TestACommitIsOneTransactionWithAndWithoutHistory(t *testing.T) {
	t.Parallel()
	var asked recorder
	store, err := tablestore.OpenWithConnectionString(account, tableOf(t), through(asked.record(network)))
	if err != nil {
		t.Fatal(err)
	}
	commit(t, store, "shipments", "") // creates the table
	event := state.Event{Processor: "orders", Sequence: 1, Body: []byte("{}")}
	for _, tt := range []struct {
		name  string
		next  state.State
		event *state.Event
	}{
		{"the first, without history", polledAt(time.Time{}), nil},
		{"without history", polledAt(time.Time{}), nil},
		{"the first of an hour", polledAt(hour()), nil},
		{"a second of an hour, with an event", polledAt(hour().Add(time.Minute)), &event},
		{"in place of another", polledAt(hour().Add(time.Minute)), nil},
	} {
		record, err := storetest.Load(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		before := len(asked.asked())
		if err := store.Commit(t.Context(), record.Version, tt.next, tt.event); err != nil {
			t.Fatal(err)
		}
		if got, want := asked.asked()[before:], []string{"POST /devstoreaccount1/$batch"}; !slices.Equal(got, want) {
			t.Errorf("%s: asked %q, want %q", tt.name, got, want)
		}
	}
	samples, err := store.History(t.Context(), "orders", hour(), hour().Add(time.Hour))
	if err != nil || len(samples) != 2 {
		t.Errorf("got %d samples and %v, want 2", len(samples), err)
	}
}

func TestTheFirstCommitOfAllKeepsItsSample(t *testing.T) {
	t.Parallel()
	store := open(t)
	if err := store.Commit(t.Context(), "", polledAt(hour()), nil); err != nil {
		t.Fatal(err)
	}
	samples, err := store.History(t.Context(), "orders", hour(), hour().Add(time.Hour))
	if err != nil || len(samples) != 1 {
		t.Errorf("got %d samples and %v, want 1", len(samples), err)
	}
}

// The service refuses a row of more than 1 MiB or 252 properties, which Azurite need not.
func TestAFullHourKeepsToTheLimitsOfARow(t *testing.T) {
	t.Parallel()
	store, table := open(t), client(t)
	version := state.Version("")
	for _, at := range []time.Time{hour().Add(14 * time.Second), hour().Add(time.Hour - time.Nanosecond)} {
		next := polledAt(at)
		next.Decision = &scaling.Decision{Reasons: slices.Repeat([]scaling.Reason{{Step: "clamp", Why: "é"}}, 200)}
		if err := store.Commit(t.Context(), version, next, nil); err != nil {
			t.Fatal(err)
		}
		record, err := storetest.Load(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		version = record.Version
	}
	properties := stored(t, table, "orders", "history-2026010203").Properties
	if len(properties) != 2 {
		t.Errorf("got %d properties, want one a sample", len(properties))
	}
	const samples = int(time.Hour / state.SampleInterval)
	if samples > 252 {
		t.Errorf("an hour has %d samples", samples)
	}
	for _, name := range []string{"t0000", "t3585"} {
		text, ok := properties[name].(string)
		if !ok {
			t.Fatalf("%s is %v", name, properties[name])
		}
		property := 8 + 2*len(name) + 4 + 2*len(utf16.Encode([]rune(text))) // as the service counts
		if size := samples*property + 4 + 2*(63+len("history-2026010203")); size < 900_000 || size > 1<<20 {
			t.Errorf("a full row takes %d bytes, want close to the limit and below it", size)
		}
	}
}

func TestHistoryIsOneQueryOfTheHoursAskedFor(t *testing.T) {
	t.Parallel()
	var asked recorder
	store := openThrough(t, keyed, asked.record(func(*http.Request) (*http.Response, error) { return rows(), nil }))
	for _, span := range []struct{ from, to time.Time }{
		{hour().Add(time.Minute), hour().Add(3 * time.Hour)},
		{hour(), hour().Add(time.Nanosecond)},
		{hour(), hour()}, // nothing to ask for
		{hour(), hour().Add(-time.Hour)},
	} {
		if samples, err := store.History(t.Context(), "a'b", span.from, span.to); err != nil || samples != nil {
			t.Errorf("got %v and %v, want nothing", samples, err)
		}
	}
	wantFilters(t, &asked,
		"PartitionKey eq 'a''b' and RowKey ge 'history-2026010203' and RowKey le 'history-2026010205'",
		"PartitionKey eq 'a''b' and RowKey ge 'history-2026010203' and RowKey le 'history-2026010203'",
	)
}

func TestPruneReadsKeysOnlyAndRemovesEveryHour(t *testing.T) {
	t.Parallel()
	var asked recorder
	store := openThrough(t, keyed, asked.record(func(request *http.Request) (*http.Response, error) {
		switch {
		case strings.Contains(request.URL.Query().Get("$filter"), "summary-"):
			return rows(key("summary-2026010203")), nil
		case request.Method == http.MethodGet:
			return rows(key("history-2026010201"), key("history-2026010202"), key("history-2026010203")), nil
		case strings.Contains(request.URL.Path, "history-2026010202"): // another process was faster
			return refusing(http.StatusNotFound, "ResourceNotFound"), nil
		default:
			return response(http.StatusNoContent, ""), nil
		}
	}))
	if err := store.Prune(t.Context(), "a'b", hour().Add(time.Hour+time.Minute)); err != nil {
		t.Fatal(err)
	}
	wantFilters(t, &asked,
		"PartitionKey eq 'a''b' and RowKey ge 'history-' and RowKey lt 'history-2026010204'",
		"PartitionKey eq 'a''b' and RowKey ge 'summary-' and RowKey lt 'summary-2026010204'",
	)
	if got := asked.requests[0].URL.Query().Get("$select"); got != "PartitionKey,RowKey" {
		t.Errorf("selected %q", got)
	}
	got := asked.asked()
	slices.Sort(got)
	var want []string
	for i := 1; i <= 3; i++ {
		want = append(want, fmt.Sprintf("DELETE /feedscale(PartitionKey='a''b',RowKey='history-202601020%d')", i))
	}
	want = append(want, "DELETE /feedscale(PartitionKey='a''b',RowKey='summary-2026010203')", "GET /feedscale()", "GET /feedscale()")
	if !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestAnHourThatCannotBeRemovedIsAnError(t *testing.T) {
	t.Parallel()
	store := openThrough(t, keyed, func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet {
			return rows(key("history-2026010201"), key("history-2026010202")), nil
		}
		return refusing(http.StatusForbidden, "AuthorizationPermissionMismatch"), nil
	})
	err := store.Prune(t.Context(), "orders", hour())
	if err == nil || showsSecret(err) {
		t.Fatalf("got %v, want an error without a secret", err)
	}
	for _, part := range []string{"prune the history", "orders", "account key"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}

func TestASampleThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	store, table := open(t), client(t)
	commit(t, store, "orders", "")
	for processor, property := range map[string]struct {
		name  string
		value any
	}{
		"number":         {"t0000", 7},
		"not-json":       {"t0015", "hello"},
		"another-time":   {"t0030", `{"time":"2026-01-02T03:00:45Z"}`},
		"another-hour":   {"t0030", `{"time":"2026-01-02T04:00:30Z"}`},
		"another-column": {"note", `{"time":"2026-01-02T03:00:30Z"}`},
	} {
		insert(t, table, processor, "history-2026010203", map[string]any{property.name: property.value})
		_, err := store.History(t.Context(), processor, hour(), hour().Add(time.Hour))
		if err == nil {
			t.Errorf("%s: got no error", processor)
			continue
		}
		for _, part := range []string{processor, "history-2026010203", property.name, "delete it"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is missing in: %v", processor, part, err)
			}
		}
	}
}

func TestTheServiceHasToConfirmTheSampleToo(t *testing.T) {
	t.Parallel()
	store := openThrough(t, keyed, func(*http.Request) (*http.Response, error) { return accepted(), nil })
	err := store.Commit(t.Context(), "", polledAt(hour()), nil)
	if err == nil || errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), "proxy") {
		t.Errorf("got %v, want an error that is no conflict", err)
	}
}

func TestTheOutboxIsSearchedInTheGapsBetweenTheExcepted(t *testing.T) {
	t.Parallel()
	const event = "RowKey ge 'outbox-' and RowKey lt 'outbox.'"
	for name, tt := range map[string]struct {
		except, want []string
	}{
		"nobody": {nil, []string{event}},
		"one": {[]string{"a"}, []string{
			"PartitionKey lt 'a' and " + event,
			"PartitionKey gt 'a' and " + event,
		}},
		"some, in any order, and twice": {[]string{"b", "a-b", "it's", "b", "a"}, []string{
			"PartitionKey lt 'a' and " + event,
			"PartitionKey gt 'a' and PartitionKey lt 'a-b' and " + event,
			"PartitionKey gt 'a-b' and PartitionKey lt 'b' and " + event,
			"PartitionKey gt 'b' and PartitionKey lt 'it''s' and " + event,
			"PartitionKey gt 'it''s' and " + event,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked recorder
			store := openThrough(t, keyed, asked.record(func(*http.Request) (*http.Response, error) { return rows(), nil }))
			except := slices.Clone(tt.except)
			if events, err := store.Outbox(t.Context(), except); err != nil || events != nil {
				t.Errorf("got %v and %v, want nothing", events, err)
			}
			if !slices.Equal(except, tt.except) {
				t.Errorf("the names of the caller are now %q", except)
			}
			wantFilters(t, &asked, tt.want...)
		})
	}
}

func TestOneGapThatCannotBeSearchedFailsTheOutbox(t *testing.T) {
	t.Parallel()
	store := openThrough(t, keyed, func(request *http.Request) (*http.Response, error) {
		if strings.HasPrefix(request.URL.Query().Get("$filter"), "PartitionKey gt 'a' and PartitionKey lt 'b'") {
			return refusing(http.StatusForbidden, "AuthorizationPermissionMismatch"), nil
		}
		return rows(), nil
	})
	_, err := store.Outbox(t.Context(), []string{"a", "b", "c"})
	if err == nil || !strings.Contains(err.Error(), "403 AuthorizationPermissionMismatch") || !strings.Contains(err.Error(), "outbox") {
		t.Errorf("got %v, want the refusal", err)
	}
}

func TestNoMoreThanSixteenGapsAreSearchedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			mutex   sync.Mutex
			waiting int
		)
		answered := make(chan struct{})
		store := openThrough(t, keyed, func(*http.Request) (*http.Response, error) {
			mutex.Lock()
			waiting++
			mutex.Unlock()
			<-answered
			return rows(), nil
		})
		names := make([]string, 40)
		for i := range names {
			names[i] = fmt.Sprintf("orders-%d", i)
		}
		done := make(chan error, 1)
		go func() {
			_, err := store.Outbox(t.Context(), names)
			done <- err
		}()
		synctest.Wait()
		mutex.Lock()
		if waiting != 16 {
			t.Errorf("%d requests at once, want 16", waiting)
		}
		mutex.Unlock()
		close(answered)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if waiting != 41 {
			t.Errorf("%d requests, want 41", waiting)
		}
	})
}

// wantFilters wants these filters of queries, in any order.
func wantFilters(t *testing.T, asked *recorder, want ...string) {
	t.Helper()
	var got []string
	for _, request := range asked.requests {
		if request.Method == http.MethodGet {
			got = append(got, request.URL.Query().Get("$filter"))
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// key is what a query of the keys finds of a row.
func key(row string) string { return fmt.Sprintf(`{"PartitionKey":"a'b","RowKey":%q}`, row) }
