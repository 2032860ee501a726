// Package processors is the HTTP functions that answer KEDA and people from the state store, without a call to
// Cosmos DB (docs/http.md). function.json beside it, and those of history and report, are what the host reads.
//
// It knows no poller and no account. Start with [Handler.Register].
//
// The package is internal to the program: its API may change in any release.
package processors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/feedscale/feedscale/functions/internal/compression"
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

// maxLarge is how many large answers are made and sent at once. More wait: a list of 100,000 leases takes some
// 90 MiB.
const maxLarge = 2

// Handler serves all routes.
type Handler struct {
	*overview.Overview

	// Policies returns what the history of a processor may be replayed against, the first one if
	// nothing is asked for; none for a group. nil if nothing is replayed.
	Policies func(name string) []simulate.Scaler

	// ServeState has other processes on this machine read the whole State of a processor, whose file
	// is open here.
	ServeState bool

	large *semaphore.Weighted      // places of large answers
	last  atomic.Pointer[encoding] // the summary that was made last; nil = none was
}

// encoding is the JSON of a list of entries without its first field, the time.
type encoding struct {
	of   []*overview.Entry
	text []byte
}

// Register adds the routes to a mux.
func (h *Handler) Register(mux *http.ServeMux) {
	h.large = semaphore.NewWeighted(maxLarge)
	routes := map[string]http.HandlerFunc{Route: h.all, RouteOne: h.small(h.one), RouteHistory: h.inTurn(h.history), RouteReport: h.inTurn(h.report)}
	if h.Policies != nil {
		routes[RouteSimulation] = h.inTurn(h.simulate)
	}
	if h.ServeState {
		routes[RouteState] = h.small(h.state)
	}
	for route, answer := range routes {
		mux.HandleFunc("GET "+route, answer)
		mux.HandleFunc(route, problem.OnlyGET)
	}
}

// refusal is the reason for another status than 200.
type refusal struct {
	error
	status int
}

func refused(format string, args ...any) error {
	return refusal{fmt.Errorf(format, args...), http.StatusBadRequest}
}

// small answers with what a function returns, or with why it does not.
func (h *Handler) small(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := answer(r)
		h.answer(w, r, body, err)
	}
}

// inTurn answers like small, and holds one of the places of large answers until it has sent its own.
func (h *Handler) inTurn(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.large.Acquire(r.Context(), 1) != nil {
			return // the caller has gone
		}
		defer h.large.Release(1)
		h.small(answer)(w, r)
	}
}

// answer answers with a value as JSON, or with an error.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, body any, err error) {
	text, unencodable := json.Marshal(body)
	refusal, refused := errors.AsType[refusal](err)
	switch err = cmp.Or(err, unencodable); {
	case err == nil:
		tagged := text
		if _, list := body.(report.List); list { // its first field is its time, which changes with each answer
			_, tagged, _ = bytes.Cut(text, []byte(","))
		}
		w.Header().Set("Content-Type", "application/json")
		compression.Send(w, r, text, tagged)
	case r.Context().Err() != nil: // the caller has gone
	case errors.Is(err, report.ErrUnknownName):
		problem.Write(w, r, http.StatusNotFound, err.Error())
	case refused:
		problem.Write(w, r, refusal.status, err.Error())
	default:
		h.Log.Error("the state cannot be read", "error", err.Error())
		problem.Write(w, r, http.StatusServiceUnavailable, "the state cannot be read: "+err.Error())
	}
}

// all answers with everything there is, or what of it is asked for by name.
func (h *Handler) all(w http.ResponseWriter, r *http.Request) {
	fields, names := r.URL.Query().Get("fields"), r.URL.Query()["name"]
	switch {
	case fields == "trend":
		h.inTurn(h.trend)(w, r)
	case fields == "summary" && len(names) == 0:
		h.summary(w, r)
	case fields == "summary" || fields == "":
		h.inTurn(func(r *http.Request) (any, error) { return h.List(r.Context(), names, fields == ""), nil })(w, r)
	default:
		h.answer(w, r, nil, refused("fields is %q; allowed are summary, which leaves the partitions out, and trend, which is the lag of the last hour", fields))
	}
}

// summary answers with all entries, without partitions. They are encoded once for all who ask before one of them changes:
// 5,000 processors take 0.1 s of CPU, and a page asks every few seconds.
func (h *Handler) summary(w http.ResponseWriter, r *http.Request) {
	entries, last := h.Current(), h.last.Load()
	if last == nil || !slices.Equal(last.of, entries) {
		text, err := json.Marshal(h.Summary(entries))
		if err != nil {
			h.answer(w, r, nil, err)
			return
		}
		_, text, _ = bytes.Cut(text, []byte(","))
		last = &encoding{entries, text}
		h.last.Store(last)
	}
	now, _ := json.Marshal(h.Now().UTC().Truncate(time.Millisecond)) // a time of these years has a JSON
	w.Header().Set("Content-Type", "application/json")
	compression.Send(w, r, slices.Concat([]byte(`{"time":`), now, []byte(","), last.text), last.text)
}

// one answers with what is known of a processor or group, or refuses with 503, so that a scaler applies
// its own fallback rather than an old number.
func (h *Handler) one(r *http.Request) (any, error) {
	found, err := h.Answer(r.Context(), r.PathValue("name"))
	switch {
	case errors.Is(err, report.ErrUnknownName):
		return nil, err
	case err != nil:
		return nil, refusal{err, http.StatusServiceUnavailable}
	case len(found.Members) > 0:
		return report.NewStoredGroup(found), nil
	}
	return report.NewStored(found), nil
}

// state answers with the whole State that is stored under a name, configured or not; null if none is.
func (h *Handler) state(r *http.Request) (any, error) {
	s, stored, err := h.Stored(r.Context(), r.PathValue("name"))
	if err != nil || !stored {
		return nil, err
	}
	return s, nil
}
