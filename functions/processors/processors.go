// Package processors is the HTTP function that answers KEDA and people: what
// the state store holds of each processor, without a call to Cosmos DB
// (docs/act.md, HTTP). function.json beside it is what the host reads.
package processors

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// The routes, with the prefix that the host puts before them. A Functions host
// forwards the first two, which function.json declares; the third is for `feedscale
// history`, which cannot open a state file that another process has open.
const (
	Route        = "/api/processors"
	RouteOne     = "/api/processors/{name}"
	RouteHistory = "/api/processors/{name}/history"
)

// parallel bounds how many states are loaded at once for the list.
const parallel = 32

// staleAfter is how many of its own poll intervals a state may be old.
const staleAfter = 3

// Processor is what the function needs to know of a configured processor.
type Processor struct {
	Name string
	// Next is when a processor in a state is polled for the first time after t.
	Next func(s state.State, t time.Time) time.Time
}

// Handler serves both routes.
type Handler struct {
	Processors []Processor // in the order of the configuration
	Store      state.Store
	Now        func() time.Time
	Log        *slog.Logger

	NeverPolled string // why nothing is ever polled; "" where nothing keeps it from that
}

// Register adds the routes to a mux.
func (h *Handler) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+Route, h.all)
	mux.HandleFunc("GET "+RouteOne, h.one)
	mux.HandleFunc("GET "+RouteHistory, h.history)
	mux.HandleFunc(RouteHistory, problem.OnlyGET(h.Log))
	mux.HandleFunc(Route, problem.OnlyGET(h.Log))
	mux.HandleFunc(RouteOne, problem.OnlyGET(h.Log))
}

func (h *Handler) all(w http.ResponseWriter, r *http.Request) {
	reports := make([]report.Stored, len(h.Processors))
	failed := make([]error, len(h.Processors))
	var loads errgroup.Group
	loads.SetLimit(parallel)
	for i, p := range h.Processors {
		loads.Go(func() error {
			reports[i], failed[i] = h.load(r.Context(), p)
			return nil
		})
	}
	_ = loads.Wait() // none fails for all
	for _, err := range failed {
		if err != nil {
			h.unreadable(w, r, err)
			return
		}
	}
	h.write(w, struct {
		Time       time.Time       `json:"time"`
		Processors []report.Stored `json:"processors"`
	}{h.Now().UTC().Truncate(time.Millisecond), reports})
}

func (h *Handler) one(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	for _, p := range h.Processors {
		if p.Name == name {
			h.answer(w, r, p)
			return
		}
	}
	h.unknown(w, r, name)
}

func (h *Handler) unknown(w http.ResponseWriter, r *http.Request, name string) {
	problem.Write(w, r, h.Log, http.StatusNotFound, fmt.Sprintf("no processor is named %q: the processors file says which there are", name))
}

// answer says what is known of a processor, or refuses with 503, so that a
// scaler applies its own fallback rather than an old number.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, p Processor) {
	record, err := h.Store.Load(r.Context(), p.Name)
	if err != nil {
		h.unreadable(w, r, err)
		return
	}
	s := record.State
	switch {
	case s.AttemptedAt.IsZero():
		problem.Write(w, r, h.Log, http.StatusServiceUnavailable, h.neverPolled(p.Name))
	case h.stale(p, s):
		problem.Write(w, r, h.Log, http.StatusServiceUnavailable, fmt.Sprintf("processor %s was last polled at %s, more than %d of its poll intervals ago: the timer function may not be running", p.Name, s.AttemptedAt.Format(time.RFC3339), staleAfter))
	case s.Decision == nil:
		problem.Write(w, r, h.Log, http.StatusServiceUnavailable, fmt.Sprintf("nothing could be decided for processor %s: %s", p.Name, s.Lag.Problem()))
	default:
		h.write(w, report.NewStored(s))
	}
}

// history answers with the samples between the RFC 3339 times from and to.
func (h *Handler) history(w http.ResponseWriter, r *http.Request) {
	from, fromErr := time.Parse(time.RFC3339Nano, r.FormValue("from"))
	to, toErr := time.Parse(time.RFC3339Nano, r.FormValue("to"))
	if fromErr != nil || toErr != nil {
		problem.Write(w, r, h.Log, http.StatusBadRequest, "from and to have to be RFC 3339 times, as in ?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z")
		return
	}
	name := r.PathValue("name")
	if !slices.ContainsFunc(h.Processors, func(p Processor) bool { return p.Name == name }) {
		h.unknown(w, r, name)
		return
	}
	samples, err := h.Store.History(r.Context(), name, from, to)
	if err != nil {
		h.unreadable(w, r, err)
		return
	}
	h.write(w, report.History{Processor: name, Samples: append([]state.Sample{}, samples...)})
}

// neverPolled says that a processor was never polled and, where it is known, why.
func (h *Handler) neverPolled(name string) string {
	text := "processor " + name + " was never polled"
	if h.NeverPolled != "" {
		text += ", since " + h.NeverPolled
	}
	return text
}

// stale reports whether more than three polls are overdue.
func (h *Handler) stale(p Processor, s state.State) bool {
	due := s.AttemptedAt
	for range staleAfter {
		due = p.Next(s, due)
	}
	return h.Now().After(due)
}

func (h *Handler) load(ctx context.Context, p Processor) (report.Stored, error) {
	record, err := h.Store.Load(ctx, p.Name)
	record.State.Processor = p.Name
	stored := report.NewStored(record.State)
	if err == nil && record.State.AttemptedAt.IsZero() && h.NeverPolled != "" {
		stored.Error = new(h.neverPolled(p.Name))
	}
	return stored, err
}

func (h *Handler) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	h.Log.Error("the state cannot be read", "error", err.Error())
	problem.Write(w, r, h.Log, http.StatusServiceUnavailable, "the state cannot be read: "+err.Error())
}

func (h *Handler) write(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		h.Log.Debug("a caller went away before its answer", "error", err.Error())
	}
}
