// Package processors is the HTTP function that answers KEDA and people: what
// the state store holds of each processor, without a call to Cosmos DB
// (docs/act.md, HTTP). function.json beside it, and that of history, are what the host reads.
package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

// The routes, with the prefix that the host puts before them. A Functions host forwards the first two
// as the function processors, and the third as history.
const (
	Route        = "/api/processors"
	RouteOne     = "/api/processors/{name}"
	RouteHistory = "/api/processors/{name}/history"
	RouteState   = "/api/processors/{name}/state" // where ServeState is set
)

// parallel bounds how many states are loaded at once for the list.
const parallel = 32

// Processor is what the function needs to know of a configured processor.
type Processor struct {
	Name  string
	Group string // that it is a member of; "" = none
	// Next is when a processor in a state is polled for the first time after t.
	Next func(s state.State, t time.Time) time.Time
}

// Group is what the function needs to know of a configured group.
type Group struct {
	Name string
	Next func(s state.State, t time.Time) time.Time // as of a Processor
}

// Handler serves all routes.
type Handler struct {
	Processors []Processor // in the order of the configuration
	Groups     []Group
	Store      state.Store
	Now        func() time.Time
	Log        *slog.Logger

	NeverPolled string // why nothing is ever polled; "" where nothing keeps it from that

	// Policies returns what the history of a processor may be replayed against, the first one where
	// nothing is asked for; none for a group. nil where nothing is replayed.
	Policies func(name string) []simulate.Scaler

	// ServeState has other processes on this machine read the whole State of a processor, whose file
	// is open here.
	ServeState bool

	reading    chan struct{} // holds one for each history that is read
	simulating chan struct{} // holds one for a replay that runs
}

// Register adds the routes to a mux.
func (h *Handler) Register(mux *http.ServeMux) {
	h.reading = make(chan struct{}, maxReading)
	mux.HandleFunc("GET "+Route, h.all)
	mux.HandleFunc("GET "+RouteOne, h.one)
	mux.HandleFunc("GET "+RouteHistory, h.history)
	mux.HandleFunc(RouteHistory, problem.OnlyGET(h.Log))
	if h.Policies != nil {
		h.simulating = make(chan struct{}, 1)
		mux.HandleFunc("GET "+RouteSimulation, h.simulate)
		mux.HandleFunc(RouteSimulation, problem.OnlyGET(h.Log))
	}
	if h.ServeState {
		mux.HandleFunc("GET "+RouteState, h.state)
		mux.HandleFunc(RouteState, problem.OnlyGET(h.Log))
	}
	mux.HandleFunc(Route, problem.OnlyGET(h.Log))
	mux.HandleFunc(RouteOne, problem.OnlyGET(h.Log))
}

// all answers with everything there is, or what of it is asked for by name.
func (h *Handler) all(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	fields := query.Get("fields")
	if fields != "" && fields != "summary" {
		problem.Write(w, r, h.Log, http.StatusBadRequest, fmt.Sprintf("fields is %q; allowed is summary, which leaves the partitions out", fields))
		return
	}
	all := h.List(r.Context(), query["name"])
	if fields == "summary" {
		for i := range all.Processors {
			all.Processors[i].Partitions = []report.Partition{}
		}
	}
	tagged := all
	tagged.Time = time.Time{}
	h.writeTagged(w, r, all, tagged)
}

// List is what is held of everything there is, or of what has one of some names. What cannot be loaded
// is an entry with its error: it is no reason to say nothing about the others.
func (h *Handler) List(ctx context.Context, names []string) report.List {
	asked, now := h.named(names), h.Now().UTC().Truncate(time.Millisecond)
	processors, groups := make([]report.Stored, len(asked.Processors)), make([]report.StoredGroup, len(asked.Groups))
	var loads errgroup.Group
	loads.SetLimit(parallel)
	for i, p := range asked.Processors {
		loads.Go(func() error {
			found := h.load(ctx, "processor", p.Name, p.Next, now)
			found.Group = p.Group
			processors[i] = report.NewStored(found)
			return nil
		})
	}
	for i, g := range asked.Groups {
		loads.Go(func() error {
			groups[i] = report.NewStoredGroup(h.load(ctx, "group", g.Name, g.Next, now))
			return nil
		})
	}
	_ = loads.Wait() // none fails for all
	return report.NewList(now, processors, groups)
}

// choice is what a list is about.
type choice struct {
	Processors []Processor
	Groups     []Group
}

// named leaves of everything there is what has one of some names; without names it is everything.
func (h *Handler) named(names []string) choice {
	if len(names) == 0 {
		return choice{h.Processors, h.Groups}
	}
	var c choice
	for _, p := range h.Processors {
		if slices.Contains(names, p.Name) {
			c.Processors = append(c.Processors, p)
		}
	}
	for _, g := range h.Groups {
		if slices.Contains(names, g.Name) {
			c.Groups = append(c.Groups, g)
		}
	}
	return c
}

// rowTime is how long one row may take: KEDA waits 3 s for an answer.
const rowTime = 2 * time.Second

// loaded loads what is stored, and the State of that.
func (h *Handler) loaded(ctx context.Context, name string) (stored state.Entry, s state.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	if stored, err = h.Store.Load(ctx, name); err == nil {
		s, err = stored.State()
	}
	return stored, s, err
}

// load looks a State up for the list. next is when it is polled for the first time after a time.
func (h *Handler) load(ctx context.Context, kind, name string, next func(state.State, time.Time) time.Time, now time.Time) report.Lookup {
	stored, s, err := h.loaded(ctx, name)
	asked := report.Asked{State: s, Next: next}
	found := report.Lookup{State: s, Stale: asked.Stale(now), Err: err, Waiting: stored.Outbox}
	found.Overdue = asked.Overdue(found.Oldest(), now)
	switch {
	case err != nil:
		h.Log.Error("the state cannot be read", kind, name, "error", err.Error())
		found.Problem = "the state cannot be read: " + err.Error()
	case found.AttemptedAt.IsZero() && h.NeverPolled != "":
		found.Problem = report.NeverPolled(kind+" "+name, h.NeverPolled)
	}
	found.Processor, found.Decision = name, found.Standing()
	return found
}

// one answers with what is known of a processor or group, or refuses with 503, so that a scaler applies
// its own fallback rather than an old number.
func (h *Handler) one(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	found, err := h.Answer(r.Context(), name)
	switch {
	case errors.Is(err, report.ErrUnknownName):
		h.unknown(w, r, name)
	case err != nil:
		problem.Write(w, r, h.Log, http.StatusServiceUnavailable, err.Error())
	case h.isGroup(name):
		h.write(w, r, report.NewStoredGroup(found))
	default:
		h.write(w, r, report.NewStored(found))
	}
}

// state answers with the whole State that is stored under a name, configured or not; null where none is.
func (h *Handler) state(w http.ResponseWriter, r *http.Request) {
	stored, s, err := h.loaded(r.Context(), r.PathValue("name"))
	switch {
	case err != nil:
		h.unreadable(w, r, err)
	case stored.Version == "":
		h.write(w, r, nil)
	default:
		h.write(w, r, s)
	}
}

func (h *Handler) isGroup(name string) bool {
	return slices.ContainsFunc(h.Groups, func(g Group) bool { return g.Name == name })
}

func (h *Handler) unknown(w http.ResponseWriter, r *http.Request, name string) {
	problem.Write(w, r, h.Log, http.StatusNotFound, report.UnknownName(name).Error())
}

// Answer looks a processor or group up, with the Decision that a scaler may act upon: the answer to every
// scaler, over HTTP or otherwise. The error is report.ErrUnknownName, or says why
// there is no such decision.
func (h *Handler) Answer(ctx context.Context, name string) (report.Lookup, error) {
	asked := report.Asked{NeverPolled: h.NeverPolled}
	for _, p := range h.Processors {
		if p.Name == name {
			asked.Subject, asked.Next = "processor "+name, p.Next
		}
	}
	for _, g := range h.Groups {
		if g.Name == name {
			asked.Subject, asked.Next = "group "+name, g.Next
		}
	}
	if asked.Next == nil {
		return report.Lookup{}, report.UnknownName(name)
	}
	stored, s, err := h.loaded(ctx, name)
	if err != nil {
		h.Log.Error("the state cannot be read", "error", err.Error())
		return report.Lookup{}, fmt.Errorf("the state cannot be read: %w", err)
	}
	asked.State = s
	if s.Decision, err = asked.Decision(h.Now()); err != nil {
		return report.Lookup{}, err
	}
	found := report.Lookup{State: s, Waiting: stored.Outbox}
	found.Overdue = asked.Overdue(found.Oldest(), h.Now())
	return found, nil
}

func (h *Handler) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	h.Log.Error("the state cannot be read", "error", err.Error())
	problem.Write(w, r, h.Log, http.StatusServiceUnavailable, "the state cannot be read: "+err.Error())
}
