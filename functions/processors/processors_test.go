package processors_test

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/functions/processors"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// function is a Handler over a state file, of processors that are polled every minute.
type function struct {
	mux     *http.ServeMux
	handler *processors.Handler
	store   *boltstore.Store
	clock   *testworld.Clock
}

func newFunction(t *testing.T, names ...string) function {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "feedscale.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	h := &processors.Handler{Overview: &overview.Overview{Store: store}}
	f := function{http.NewServeMux(), h, store, testworld.NewClock(noon)}
	h.Now, h.Log = f.clock.Now, slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, name := range names {
		h.Processors = append(h.Processors, overview.Subject{Name: name, Next: func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }})
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
	if c := w.Header().Get("Cache-Control"); c != "no-store" && (c != "private, no-cache" || w.Code != http.StatusOK) {
		t.Errorf("%s %s may be kept by a proxy: %v", method, path, w.Header())
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
	if w := f.ask(t, http.MethodGet, "/api/processors/orders"); w.Code != http.StatusOK || testworld.Decode[report.StoredProcessor](t, w.Body.Bytes()).Sequence != 3 {
		t.Errorf("what is known: %d %s", w.Code, w.Body)
	}
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/never"), http.StatusServiceUnavailable, "no decision on processor never holds: it was never polled")
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/broken"), http.StatusServiceUnavailable, "no decision on processor broken holds: it could not be measured: the leases cannot be read")
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/nobody"), http.StatusNotFound, `no processor or group is named \"nobody\"`)
	f.clock.Advance(3*time.Minute + time.Second)
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/orders"), http.StatusServiceUnavailable, "more than three of its poll intervals ago")
}

func TestWhileItIsPausedTheLastDecisionBeforeThatIsTold(t *testing.T) {
	t.Parallel()
	before := scaling.Memory{Replicas: new(2), Active: true, MetricValue: 7}
	would := &scaling.Decision{Time: noon, Replicas: 0, Previous: new(2), Direction: scaling.In, Reasons: []scaling.Reason{{Step: "paused", Why: "shown only"}}}
	unmeasured := changefeed.ProcessorLag{Time: noon, Error: "the leases cannot be read"}
	for _, c := range []struct {
		rule  string
		s     state.State
		says  string // the detail of a 503; "" = 200 with what was decided before
		wants string // the reasons
	}{
		{"whatever would be decided now", state.State{Lag: lagging("orders").Lag, Decision: would, Memory: before}, "", "shown only; whoever asks is told what was decided before the pause; "},
		{"even where nothing can be measured", state.State{Lag: unmeasured, Memory: before}, "", "whoever asks is told what was decided before the pause; "},
		{"where there is none, none is made up", state.State{Lag: lagging("orders").Lag, Decision: would}, "it is paused: nothing is published, and nothing was decided before", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			f := newFunction(t, "orders")
			c.s.Processor, c.s.Paused = "orders", true
			f.commit(t, c.s)
			w := f.ask(t, http.MethodGet, "/api/processors/orders")
			if inList := f.ask(t, http.MethodGet, "/api/processors"); w.Code == http.StatusOK && !strings.Contains(inList.Body.String(), strings.TrimSpace(w.Body.String())) {
				t.Errorf("the list has another entry: %s", inList.Body)
			}
			if c.says != "" {
				wantProblem(t, w, http.StatusServiceUnavailable, c.says)
				return
			}
			got := testworld.Decode[report.StoredProcessor](t, w.Body.Bytes())
			var why string
			for _, r := range got.Reasons {
				why += r.Why + "; "
			}
			if w.Code != http.StatusOK || *got.DesiredReplicas != 2 || *got.MetricValue != 7 || !*got.Active || *got.Direction != scaling.None || !got.Paused || why != c.wants {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

func TestTheListHasEveryProcessorInItsOrderHoweverOld(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "never", "orders")
	f.commit(t, lagging("orders"))
	f.clock.Advance(time.Hour)
	w := f.ask(t, http.MethodGet, "/api/processors")
	list := testworld.Decode[struct {
		Time       time.Time
		Processors []report.StoredProcessor
	}](t, w.Body.Bytes())
	if w.Code != http.StatusOK || !list.Time.Equal(noon.Add(time.Hour)) || len(list.Processors) != 2 || list.Processors[0].Name != "never" ||
		list.Processors[0].PolledAt != nil || list.Processors[1].Name != "orders" || *list.Processors[1].Lag != 7 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAHistoryIsOfTheLastDayOrOfTheTimesThatAreAsked(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	f.commit(t, lagging("orders"))
	const path, day = "/api/processors/orders/history", "?since=2026-03-01T00:00:00Z&until=2026-03-02T00:00:00Z"
	w := f.ask(t, http.MethodGet, path+day)
	if got := testworld.Decode[report.History](t, w.Body.Bytes()); w.Code != http.StatusOK || got.Processor != "orders" || len(got.Samples) != 1 || *got.Samples[0].Lag != 7 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.ask(t, http.MethodGet, path+"?since=2025-01-01T00:00:00Z&until=2025-01-02T00:00:00Z"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"samples":[]`) {
		t.Errorf("a day without polls: %d %s", w.Code, w.Body)
	}
	for query, says := range map[string]string{"?since=yesterday": "since is", "?until=-1h": "until is", "?step=0s": "step is"} {
		wantProblem(t, f.ask(t, http.MethodGet, path+query), http.StatusBadRequest, says)
	}
	for _, query := range []string{"", "?since=1h", "?step=5m"} {
		f.clock.Advance(time.Minute)
		if w := f.ask(t, http.MethodGet, path+query); w.Code != http.StatusOK || strings.Count(w.Body.String(), `"time"`) != 1 {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/nobody/history"+day), http.StatusNotFound, "nobody")
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/order/history"+day), http.StatusNotFound, "did you mean orders?")
}

func TestOneStateThatCannotBeReadIsRefusedAndInTheListAnEntryWithItsError(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	testworld.Must(t, f.store.Close())
	for _, path := range []string{"/api/processors/orders", "/api/processors/orders/history"} {
		wantProblem(t, f.ask(t, http.MethodGet, path), http.StatusServiceUnavailable, "the state cannot be read: ")
	}
	w := f.ask(t, http.MethodGet, "/api/processors")
	all := testworld.Decode[list](t, w.Body.Bytes())
	if w.Code != http.StatusOK || len(all.Processors) != 1 || all.Processors[0].Name != "orders" || all.Processors[0].Error == nil ||
		!strings.HasPrefix(*all.Processors[0].Error, "the state cannot be read: ") || all.Processors[0].Lag != nil || all.Processors[0].DesiredReplicas != nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

type list struct {
	Time       time.Time
	Processors []report.StoredProcessor
	Groups     []report.StoredGroup
}

func TestAGroupAnswersAsAProcessorDoes(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	f.handler.Groups = []overview.Subject{
		{Name: "shop-workers", Next: func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }},
		{Name: "dark", Next: func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }},
	}
	f.handler.Processors[0].Group = "shop-workers"
	f.commit(t, lagging("orders"))
	f.commit(t, state.State{
		Processor: "shop-workers", Epoch: 5, Sequence: 2, PolledAt: noon,
		Members:  []state.Member{{Processor: "orders", Replicas: new(2), Active: true, Totals: changefeed.Totals{Lag: new(int64(7)), Status: changefeed.StatusLagging}}},
		Decision: &scaling.Decision{Time: noon, Replicas: 2, Direction: scaling.Out, Active: true, MetricValue: 2},
	})
	f.commit(t, state.State{Processor: "dark", Members: []state.Member{{Processor: "orders"}}})
	w := f.ask(t, http.MethodGet, "/api/processors/shop-workers")
	g := testworld.Decode[report.StoredGroup](t, w.Body.Bytes())
	if w.Code != http.StatusOK || *g.DesiredReplicas != 2 || *g.MetricValue != 2 || len(g.Members) != 1 || *g.Members[0].Lag != 7 || g.Epoch != 5 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/dark"), http.StatusServiceUnavailable, "no decision on group dark holds: nothing is decided for the group")
	all := testworld.Decode[list](t, f.ask(t, http.MethodGet, "/api/processors").Body.Bytes())
	if len(all.Groups) != 2 || all.Groups[0].Name != "shop-workers" || all.Processors[0].Group == nil || *all.Processors[0].Group != "shop-workers" {
		t.Errorf("%+v", all)
	}
	f.clock.Advance(3*time.Minute + time.Second)
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/shop-workers"), http.StatusServiceUnavailable, "more than three of its poll intervals ago")
}

func TestAListCanBeOfSomeNamesAlone(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders", "payments", "returns")
	f.handler.Groups = []overview.Subject{{Name: "shop-workers"}, {Name: "others"}}
	for query, want := range map[string]string{
		"?name=payments": "payments", "?name=shop-workers": "shop-workers", "?name=returns&name=orders": "orders returns", "?name=nothing": "",
		"": "orders payments returns shop-workers others",
	} {
		w := f.ask(t, http.MethodGet, "/api/processors"+query)
		all := testworld.Decode[list](t, w.Body.Bytes())
		var names []string
		for _, p := range all.Processors {
			names = append(names, p.Name)
		}
		for _, g := range all.Groups {
			names = append(names, g.Name)
		}
		if got := strings.Join(names, " "); w.Code != http.StatusOK || got != want || all.Processors == nil || all.Groups == nil {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestASummaryHasNoPartitionsAndWhatACallerHasIsNotSentAgain(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	f.commit(t, lagging("orders"))
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors?fields=all"), http.StatusBadRequest, "allowed are summary, ")
	w := f.ask(t, http.MethodGet, "/api/processors?fields=summary")
	if all := testworld.Decode[list](t, w.Body.Bytes()); len(all.Processors[0].Partitions) != 0 || *all.Processors[0].Lag != 7 {
		t.Errorf("%s", w.Body)
	}
	tag := w.Header().Get("ETag")
	f.clock.Advance(time.Second)
	again := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/processors?fields=summary", nil)
	again.Header.Set("If-None-Match", tag)
	second := httptest.NewRecorder()
	f.mux.ServeHTTP(second, again)
	if second.Code != http.StatusNotModified || second.Body.Len() != 0 || tag == "" {
		t.Errorf("%d %s", second.Code, second.Body)
	}
	polled := lagging("orders")
	polled.Lag.Partitions[0].Lag = new(int64(8))
	f.handler.Wrote("orders", &polled)
	third := httptest.NewRecorder()
	f.mux.ServeHTTP(third, again)
	if all := testworld.Decode[list](t, third.Body.Bytes()); third.Code != http.StatusOK || *all.Processors[0].Lag != 8 || third.Header().Get("ETag") == tag {
		t.Errorf("after a poll: %d %s", third.Code, third.Body)
	}
}

func TestASummaryIsMadeOnceAndHasTheTimeOfItsAnswer(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders", "payments", "returns", "audit")
	f.commit(t, lagging("orders"))
	reads := &hangingRow{Store: f.store}
	f.handler.Store = reads
	var tag string
	for i, accepts := range []string{"gzip", "", "gzip"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/processors?fields=summary", nil)
		r.Header.Set("Accept-Encoding", accepts)
		w := httptest.NewRecorder()
		f.mux.ServeHTTP(w, r)
		body := io.Reader(w.Body)
		if accepts != "" {
			unpacked, err := gzip.NewReader(w.Body)
			testworld.Must(t, err)
			body = unpacked
		}
		text, err := io.ReadAll(body) // which checks the checksum and the length
		testworld.Must(t, err)
		all := testworld.Decode[list](t, text)
		if !all.Time.Equal(f.clock.Now()) || len(all.Processors) != 4 || *all.Processors[0].Lag != 7 || all.Groups == nil {
			t.Errorf("at %s: %s", f.clock.Now(), text)
		}
		if i > 0 && w.Header().Get("ETag") != tag {
			t.Errorf("the ETag is %s, want %s", w.Header().Get("ETag"), tag)
		}
		tag = w.Header().Get("ETag")
		f.clock.Advance(1500 * time.Millisecond)
	}
	if got := reads.reads.Load(); got != 4 {
		t.Errorf("%d rows were read, want 4", got)
	}
}

// TestATrendIsOfTheRowsThatAreSeen holds the lag of the last hour, in steps of two minutes.
func TestATrendIsOfTheRowsThatAreSeen(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders", "payments")
	var version state.Version
	for i, lag := range []*int64{new(int64(5)), new(int64(9)), new(int64(3)), nil} {
		s := lagging("orders")
		s.AttemptedAt = noon.Add(time.Duration(i-4) * time.Minute)
		s.Lag.Time, s.Lag.Partitions[0].Lag = s.AttemptedAt, lag
		s.Record(new(state.State), state.Observation{})
		testworld.Must(t, f.store.Commit(t.Context(), version, s, nil))
		entry, err := storetest.Load(t.Context(), f.store, "orders")
		testworld.Must(t, err)
		version = entry.Version
	}
	type trend struct {
		Since       time.Time
		StepSeconds int
		Lags        map[string][]*int64
	}
	got := testworld.Decode[trend](t, f.ask(t, http.MethodGet, "/api/processors?fields=trend&name=orders&name=payments&name=gone").Body.Bytes())
	orders := got.Lags["orders"]
	if len(got.Lags) != 2 || len(orders) != 30 || len(got.Lags["payments"]) != 30 || got.StepSeconds != 120 || !got.Since.Equal(noon.Add(-58*time.Minute)) {
		t.Fatalf("got %+v", got)
	}
	if orders[26] != nil || *orders[27] != 9 || *orders[28] != 3 || orders[29] != nil {
		t.Errorf("the last steps are %v", orders[26:])
	}
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors?fields=trend"), http.StatusBadRequest, "allowed are 1 to 50")
	wantProblem(t, f.ask(t, http.MethodGet, "/api/processors?fields=trend"+strings.Repeat("&name=orders", 51)), http.StatusBadRequest, "allowed are 1 to 50")
}

// TestAnAddressWithTheKeyIsKeptNowhere holds it of what may be kept without one, and asked for again.
func TestAnAddressWithTheKeyIsKeptNowhere(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	f.commit(t, lagging("orders"))
	for path, want := range map[string]string{"/api/processors": "private, no-cache", "/api/processors/orders?code=k": "no-store"} {
		if got := f.ask(t, http.MethodGet, path).Header().Get("Cache-Control"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestALongAnswerIsCompressedForWhoTakesThat(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "a", "b", "c", "d", "e", "f")
	for accepts, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.5": "gzip", "gzip;q=0": "", "": ""} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/processors", nil)
		r.Header.Set("Accept-Encoding", accepts)
		w := httptest.NewRecorder()
		f.mux.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != want {
			t.Errorf("of %q: %q", accepts, got)
		}
		if want != "" {
			plain, err := gzip.NewReader(w.Body)
			testworld.Must(t, err)
			body, err := io.ReadAll(plain)
			testworld.Must(t, err)
			if all := testworld.Decode[list](t, body); len(all.Processors) != 6 {
				t.Errorf("%s", body)
			}
		}
	}
}

func TestOnlyGETIsAllowed(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	for _, path := range []string{"/api/processors", "/api/processors/orders", "/api/processors/orders/history"} {
		wantProblem(t, f.ask(t, http.MethodPost, path), http.StatusMethodNotAllowed, "only GET is allowed here")
	}
}

func TestTheWholeStateIsServedWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	if _, pattern := f.mux.Handler(request(t, "/api/processors/orders/state")); pattern != "" {
		t.Errorf("nobody asked for it, and it is served by %s", pattern)
	}
	f.handler.ServeState, f.mux = true, http.NewServeMux()
	f.handler.Register(f.mux)
	want := lagging("orders")
	want.Memory = scaling.Memory{Replicas: new(2), Failures: 3}
	f.commit(t, want)
	w := f.ask(t, http.MethodGet, "/api/processors/orders/state")
	if got := testworld.Decode[state.State](t, w.Body.Bytes()); w.Code != http.StatusOK || got.Memory.Failures != 3 || *got.Memory.Replicas != 2 || !got.AttemptedAt.Equal(noon) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.ask(t, http.MethodGet, "/api/processors/removed/state"); w.Code != http.StatusOK || w.Body.String() != "null" {
		t.Errorf("of what is not stored: %d %s", w.Code, w.Body)
	}
}

func TestTheListSaysWhatIsOverdue(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders", "never")
	f.commit(t, lagging("orders"))
	for _, overdue := range []bool{false, true} {
		all := testworld.Decode[report.List](t, f.ask(t, http.MethodGet, "/api/processors").Body.Bytes())
		if all.Processors[0].Stale != overdue || all.Processors[1].Stale || !all.Processors[0].AttemptedAt.Equal(noon) || all.Processors[1].AttemptedAt != nil {
			t.Errorf("overdue %v: %+v", overdue, all)
		}
		f.clock.Advance(3*time.Minute + time.Second)
	}
}

// hangingRow is a store of which one row hangs.
type hangingRow struct {
	state.Store
	processor string
	reads     atomic.Int64
}

func (s *hangingRow) Load(ctx context.Context, processor string) (state.Entry, error) {
	s.reads.Add(1)
	if processor == s.processor {
		<-ctx.Done()
		return state.Entry{}, ctx.Err()
	}
	return s.Store.Load(ctx, processor)
}

// TestARowThatHangsKeepsNoOtherFromBeingListed holds that KEDA, which waits 3 s, has its answer.
func TestARowThatHangsKeepsNoOtherFromBeingListed(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders", "stuck")
	f.commit(t, lagging("orders"))
	synctest.Test(t, func(t *testing.T) {
		f.handler.Store = &hangingRow{Store: f.store, processor: "stuck"}
		began := time.Now()
		all := f.handler.List(t.Context(), nil, true)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		began = time.Now()
		if shown := f.handler.Current(); time.Since(began) > 2*time.Second || shown[0].Err != nil || shown[1].Err == nil {
			t.Errorf("the entries took %s: %+v", time.Since(began), shown)
		}
		if all.Processors[0].Error != nil || all.Processors[1].Error == nil {
			t.Errorf("%+v", all.Processors)
		}
	})
}
