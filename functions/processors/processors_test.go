package processors_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/processors"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// function is a Handler over a state file, of processors that are polled every minute.
type function struct {
	mux   *http.ServeMux
	store *boltstore.Store
	clock *testworld.Clock
}

func newFunction(t *testing.T, names ...string) function {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "feedscale.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	f := function{http.NewServeMux(), store, testworld.NewClock(noon)}
	h := processors.Handler{Store: store, Now: f.clock.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, name := range names {
		h.Processors = append(h.Processors, processors.Processor{Name: name, Next: func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }})
	}
	h.Register(f.mux)
	return f
}

// commit stores what a poll at noon made of a processor.
func (f function) commit(t *testing.T, s state.State) {
	t.Helper()
	s.AttemptedAt = noon
	testworld.Must(t, f.store.Commit(t.Context(), "", s, nil))
}

func (f function) ask(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	f.mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%s %s may be kept by a cache: %v", method, path, w.Header())
	}
	return w
}

// wantProblem holds that a problem document answers.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, says string) {
	t.Helper()
	if w.Code != status || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), says) {
		t.Errorf("%d %v %s, want %d that says %s", w.Code, w.Header(), w.Body, status, says)
	}
}

func lagging(name string) state.State {
	return state.State{
		Processor: name, PolledAt: noon, Sequence: 3,
		Lag:      changefeed.ProcessorLag{Time: noon, Partitions: []changefeed.Partition{{Lease: "0", Lag: new(int64(7)), Status: changefeed.StatusLagging}}},
		Decision: &scaling.Decision{Time: noon, Replicas: 2, Direction: scaling.Out, Active: true, MetricValue: 7},
	}
}

func TestWhatIsNotKnownIsRefusedSoThatAScalerFallsBack(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders", "broken", "never")
	f.commit(t, lagging("orders"))
	f.commit(t, state.State{Processor: "broken", Lag: changefeed.ProcessorLag{Time: noon, Error: "the leases cannot be read"}})
	if w := f.ask(t, http.MethodGet, "/api/processors/orders"); w.Code != http.StatusOK || testworld.Decode[report.Stored](t, w.Body.Bytes()).Sequence != 3 {
		t.Errorf("what is known: %d %s", w.Code, w.Body)
	}
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/never"), http.StatusServiceUnavailable, "processor never was never polled")
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/broken"), http.StatusServiceUnavailable, "nothing could be decided for processor broken: the leases cannot be read")
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/nobody"), http.StatusNotFound, `no processor is named \"nobody\"`)
	f.clock.Advance(3*time.Minute + time.Second)
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/orders"), http.StatusServiceUnavailable, "more than 3 of its poll intervals ago")
}

func TestTheListHasEveryProcessorInItsOrderHoweverOld(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "never", "orders")
	f.commit(t, lagging("orders"))
	f.clock.Advance(time.Hour)
	w := f.ask(t, http.MethodGet, "/api/processors")
	list := testworld.Decode[struct {
		Time       time.Time
		Processors []report.Stored
	}](t, w.Body.Bytes())
	if w.Code != http.StatusOK || !list.Time.Equal(noon.Add(time.Hour)) || len(list.Processors) != 2 || list.Processors[0].Name != "never" ||
		list.Processors[0].PolledAt != nil || list.Processors[1].Name != "orders" || *list.Processors[1].Lag != 7 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAHistoryNeedsItsTwoTimes(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	f.commit(t, lagging("orders"))
	const path, day = "/api/processors/orders/history", "?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z"
	w := f.ask(t, http.MethodGet, path+day)
	if got := testworld.Decode[report.History](t, w.Body.Bytes()); w.Code != http.StatusOK || got.Processor != "orders" || len(got.Samples) != 1 || *got.Samples[0].Lag != 7 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.ask(t, http.MethodGet, path+"?from=2025-01-01T00:00:00Z&to=2025-01-02T00:00:00Z"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"samples":[]`) {
		t.Errorf("a day without polls: %d %s", w.Code, w.Body)
	}
	for _, query := range []string{"", "?from=yesterday&to=2026-03-02T00:00:00Z", "?from=2026-03-01T00:00:00Z"} {
		wantProblem(t, f.ask(t, http.MethodGet, path+query), http.StatusBadRequest, "from and to have to be RFC 3339 times")
	}
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/nobody/history"+day), http.StatusNotFound, "nobody")
}

func TestAStateThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	testworld.Must(t, f.store.Close())
	for _, path := range []string{"/api/processors", "/api/processors/orders", "/api/processors/orders/history?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z"} {
		wantProblem(t, f.ask(t, http.MethodGet, path), http.StatusServiceUnavailable, "the state cannot be read: ")
	}
}

func TestOnlyGETIsAllowed(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	for _, path := range []string{"/api/processors", "/api/processors/orders", "/api/processors/orders/history"} {
		wantProblem(t, f.ask(t, http.MethodPost, path), http.StatusMethodNotAllowed, "only GET is allowed here")
	}
}
