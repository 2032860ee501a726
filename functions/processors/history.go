package processors

import (
	"fmt"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// lookBack is how far a history goes back where nothing else is asked for.
const lookBack = 24 * time.Hour

// history answers with the samples with since <= time < until, one for each step.
func (h *Handler) history(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !h.Knows(name) {
		h.unknown(w, r, name)
		return
	}
	since, until, err := h.between(r)
	if err != nil {
		problem.Write(w, r, h.Log, http.StatusBadRequest, err.Error())
		return
	}
	var step time.Duration
	if given := r.URL.Query().Get("step"); given != "" {
		if step, err = time.ParseDuration(given); err != nil || step <= 0 {
			problem.Write(w, r, h.Log, http.StatusBadRequest, fmt.Sprintf("step is %q; allowed are durations above 0, as in ?step=5m", given))
			return
		}
	}
	samples, err := h.Store.History(r.Context(), name, since, until)
	if err != nil {
		h.unreadable(w, r, err)
		return
	}
	h.write(w, r, report.History{Processor: name, Samples: downsample(samples, step)})
}

// between reads from when until when: the last day where nothing else is asked for.
func (h *Handler) between(r *http.Request) (since, until time.Time, err error) {
	if until, err = h.time(r, "until", h.Now().UTC()); err != nil {
		return since, until, err
	}
	since, err = h.time(r, "since", until.Add(-lookBack))
	return since, until, err
}

// Knows reports whether a processor or group is configured.
func (h *Handler) Knows(name string) bool {
	for _, p := range h.Processors {
		if p.Name == name {
			return true
		}
	}
	for _, g := range h.Groups {
		if g.Name == name {
			return true
		}
	}
	return false
}

// time reads a time, or a duration that it is ago.
func (h *Handler) time(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	given := r.URL.Query().Get(name)
	if given == "" {
		return otherwise, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, given); err == nil {
		return t, nil
	}
	if ago, err := time.ParseDuration(given); err == nil && ago >= 0 {
		return h.Now().UTC().Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%s is %q; allowed are RFC 3339 times and durations, as in ?since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z or ?since=6h", name, given)
}

// downsample keeps the last sample of each step, and every one that changed the replicas: what was
// decided is never left out. A step of 0 keeps all.
func downsample(samples []state.Sample, step time.Duration) []state.Sample {
	kept := make([]state.Sample, 0, len(samples))
	for i, s := range samples {
		last := i == len(samples)-1 || step <= 0 || !samples[i+1].Time.Truncate(step).Equal(s.Time.Truncate(step))
		if last || s.Changed() {
			kept = append(kept, s)
		}
	}
	return kept
}
