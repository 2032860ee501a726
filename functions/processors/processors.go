// Package processors is the HTTP functions that answer KEDA and people from the state store, without a call to
// Cosmos DB (docs/http.md). function.json beside it, and those of history and report, are what the host reads.
//
// It knows no poller and no account. Start with [Handler.Register].
//
// The package is internal to the program: its API may change in any release.
package processors

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// The routes, with the prefix that the host puts before them. A Functions host forwards the first two
// as the function processors, the third as history, and RouteReport as report.
const (
	Route        = "/api/processors"
	RouteOne     = "/api/processors/{name}"
	RouteHistory = "/api/processors/{name}/history"
	RouteState   = "/api/processors/{name}/state" // if ServeState is set
)

// Handler serves all routes.
type Handler struct {
	*overview.Overview

	// Policies returns what the history of a processor may be replayed against, the first one if
	// nothing is asked for; none for a group. nil if nothing is replayed.
	Policies func(name string) []simulate.Scaler

	// ServeState has other processes on this machine read the whole State of a processor, whose file
	// is open here.
	ServeState bool

	reading    chan struct{} // holds one for each history that is read
	simulating chan struct{} // holds one for a replay that runs
	started    int64         // tells the ETags of this process from those of others
}

// Register adds the routes to a mux.
func (h *Handler) Register(mux *http.ServeMux) {
	h.reading, h.started = make(chan struct{}, maxReading), h.Now().UnixNano()
	routes := map[string]http.HandlerFunc{
		Route: h.all, RouteOne: h.one, RouteHistory: h.answered(h.reading, h.history), RouteReport: h.answered(h.reading, h.report),
	}
	if h.Policies != nil {
		h.simulating = make(chan struct{}, 1)
		routes[RouteSimulation] = h.answered(h.simulating, h.simulate)
	}
	if h.ServeState {
		routes[RouteState] = h.answered(nil, h.state)
	}
	for route, answer := range routes {
		mux.HandleFunc("GET "+route, answer)
		mux.HandleFunc(route, problem.OnlyGET(h.Log))
	}
}

// badRequest is the error of a question that cannot be answered as it was asked.
type badRequest struct{ error }

func refused(format string, args ...any) error { return badRequest{fmt.Errorf(format, args...)} }

// answered answers with what a function returns, as JSON, or with why it does not. Until the answer is sent, it has
// one of some places; nil is without limit.
func (h *Handler) answered(places chan struct{}, answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if places != nil {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
			case <-r.Context().Done():
				return
			}
		}
		body, err := answer(r)
		switch {
		case err == nil:
			h.write(w, r, body)
		case r.Context().Err() != nil: // nobody waits any more
		case errors.Is(err, report.ErrUnknownName):
			problem.Write(w, r, h.Log, http.StatusNotFound, err.Error())
		case errors.As(err, new(badRequest)):
			problem.Write(w, r, h.Log, http.StatusBadRequest, err.Error())
		default:
			h.Log.Error("the state cannot be read", "error", err.Error())
			problem.Write(w, r, h.Log, http.StatusServiceUnavailable, "the state cannot be read: "+err.Error())
		}
	}
}

// all answers with everything there is, or what of it is asked for by name.
func (h *Handler) all(w http.ResponseWriter, r *http.Request) {
	fields, names := r.URL.Query().Get("fields"), r.URL.Query()["name"]
	switch {
	case fields == "trend":
		h.answered(h.reading, h.trend)(w, r)
	case fields == "summary" && len(names) == 0:
		processors, groups, generation := h.Current()
		all, allGroups := make([]report.Stored, len(processors)), make([]report.StoredGroup, len(groups))
		for i, e := range processors {
			all[i] = e.Processor
		}
		for i, e := range groups {
			allGroups[i] = e.Group
		}
		withoutPartitions(all)
		h.writeList(w, r, fmt.Sprintf(`"%x-%x"`, h.started, generation), report.NewList(h.Now().UTC().Truncate(time.Millisecond), all, allGroups))
	case fields == "summary" || fields == "":
		all := h.List(r.Context(), names)
		if fields == "summary" {
			withoutPartitions(all.Processors)
		}
		if tag, err := tagOf(all); err != nil {
			h.unencodable(w, r, err)
		} else {
			h.writeList(w, r, tag, all)
		}
	default:
		problem.Write(w, r, h.Log, http.StatusBadRequest,
			fmt.Sprintf("fields is %q; allowed are summary, which leaves the partitions out, and trend, which is the lag of the last hour", fields))
	}
}

func withoutPartitions(all []report.Stored) {
	for i := range all {
		all[i].Partitions = []report.Partition{}
	}
}

// one answers with what is known of a processor or group, or refuses with 503, so that a scaler applies
// its own fallback rather than an old number.
func (h *Handler) one(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	found, err := h.Answer(r.Context(), name)
	switch {
	case errors.Is(err, report.ErrUnknownName):
		problem.Write(w, r, h.Log, http.StatusNotFound, err.Error())
	case err != nil:
		problem.Write(w, r, h.Log, http.StatusServiceUnavailable, err.Error())
	case h.IsGroup(name):
		h.write(w, r, report.NewStoredGroup(found))
	default:
		h.write(w, r, report.NewStored(found))
	}
}

// state answers with the whole State that is stored under a name, configured or not; null if none is.
func (h *Handler) state(r *http.Request) (any, error) {
	s, stored, err := h.Stored(r.Context(), r.PathValue("name"))
	if err != nil || !stored {
		return nil, err
	}
	return s, nil
}
