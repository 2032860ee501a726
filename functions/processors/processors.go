// Package processors is the HTTP function that answers KEDA and people: what
// the state store holds of each processor, without a call to Cosmos DB
// (docs/http.md). function.json beside it, and those of history and report, are what the host reads.
package processors

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

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

	mu      sync.Mutex // held while the summary is encoded, so that who asks at once shares it
	encoded uint64     // generation of the entries that the summary is of
	summary *summary   // nil until somebody asks
}

// Register adds the routes to a mux.
func (h *Handler) Register(mux *http.ServeMux) {
	h.reading = make(chan struct{}, maxReading)
	mux.HandleFunc("GET "+Route, h.all)
	mux.HandleFunc("GET "+RouteOne, h.one)
	mux.HandleFunc("GET "+RouteHistory, h.history)
	mux.HandleFunc(RouteHistory, problem.OnlyGET(h.Log))
	mux.HandleFunc("GET "+RouteReport, h.report)
	mux.HandleFunc(RouteReport, problem.OnlyGET(h.Log))
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
	if !slices.Contains([]string{"", "summary", "trend"}, fields) {
		problem.Write(w, r, h.Log, http.StatusBadRequest,
			fmt.Sprintf("fields is %q; allowed are summary, which leaves the partitions out, and trend, which is the lag of the last hour", fields))
		return
	}
	names := query["name"]
	switch {
	case fields == "trend":
		h.trend(w, r, names)
	case fields == "summary" && len(names) == 0:
		s, err := h.summarized()
		if err != nil {
			h.unencodable(w, r, err)
			return
		}
		h.writeSummary(w, r, s)
	default:
		all := h.List(r.Context(), names)
		if fields == "summary" {
			withoutPartitions(all.Processors)
		}
		h.writeList(w, r, all)
	}
}

// summarized is the summary of everything, encoded once until an entry changes.
func (h *Handler) summarized() (*summary, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	processors, groups, generation := h.Current()
	if h.summary != nil && generation == h.encoded {
		return h.summary, nil
	}
	all := make([]report.Stored, len(processors))
	for i, e := range processors {
		all[i] = e.Processor
	}
	withoutPartitions(all)
	allGroups := make([]report.StoredGroup, len(groups))
	for i, e := range groups {
		allGroups[i] = e.Group
	}
	encoded, err := encodeSummary(report.NewList(h.Now(), all, allGroups))
	if err == nil {
		h.summary, h.encoded = encoded, generation
	}
	return encoded, err
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
		h.unknown(w, r, name)
	case err != nil:
		problem.Write(w, r, h.Log, http.StatusServiceUnavailable, err.Error())
	case h.IsGroup(name):
		h.write(w, r, report.NewStoredGroup(found))
	default:
		h.write(w, r, report.NewStored(found))
	}
}

// state answers with the whole State that is stored under a name, configured or not; null if none is.
func (h *Handler) state(w http.ResponseWriter, r *http.Request) {
	s, stored, err := h.Stored(r.Context(), r.PathValue("name"))
	switch {
	case err != nil:
		h.unreadable(w, r, err)
	case !stored:
		h.write(w, r, nil)
	default:
		h.write(w, r, s)
	}
}

func (h *Handler) unknown(w http.ResponseWriter, r *http.Request, name string) {
	problem.Write(w, r, h.Log, http.StatusNotFound, report.UnknownName(name).Error())
}

func (h *Handler) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	h.Log.Error("the state cannot be read", "error", err.Error())
	problem.Write(w, r, h.Log, http.StatusServiceUnavailable, "the state cannot be read: "+err.Error())
}
