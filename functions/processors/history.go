package processors

import (
	"context"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// lookBack is how far a history goes back if nothing else is asked for.
const lookBack = 24 * time.Hour

const (
	// maxSamples is the greatest number of samples in an answer: those of a day, with a margin.
	maxSamples = 6_000
	// readAtOnce is how much of a history is in memory before it is thinned.
	readAtOnce = 6 * time.Hour
	// longestHistory is the most that FEEDSCALE_HISTORY may keep.
	longestHistory = 8760 * time.Hour
)

// history answers with the samples with since <= time < until, one for each step.
func (h *Handler) history(r *http.Request) (any, error) {
	name := r.PathValue("name")
	since, until, err := h.between(r)
	if err != nil {
		return nil, err
	}
	var step time.Duration
	if given := r.URL.Query().Get("step"); given != "" {
		if step, err = time.ParseDuration(given); err != nil || step <= 0 {
			return nil, refused("step is %q; allowed are durations above 0, as in ?step=5m", given)
		}
	}
	samples, err := h.read(r.Context(), name, since, until, step, maxSamples, false)
	return report.History{Processor: name, Samples: samples}, err
}

// read reads the samples with since <= time < until, some hours at a time, within the longest history that can be
// kept. Of each step it keeps the last sample, and those that changed the replicas; 0 keeps all. It fails if more than
// so many are left. brief leaves reasons and partitions out, which are most of a sample.
func (h *Handler) read(ctx context.Context, name string, since, until time.Time, step time.Duration, most int, brief bool) ([]state.Sample, error) {
	now := h.Now()
	if oldest := now.Add(-longestHistory); since.Before(oldest) {
		since = oldest
	}
	if newest := now.Add(lookBack); until.After(newest) {
		until = newest
	}
	kept := []state.Sample{}
	for from, to := since, since; from.Before(until); from = to {
		if to = from.Add(readAtOnce); step < readAtOnce {
			to = to.Truncate(step) // no step is read in two parts
		}
		if until.Before(to) {
			to = until
		}
		samples, err := h.Store.History(ctx, name, from, to)
		if err != nil {
			return nil, err
		}
		for i := range samples {
			if brief {
				samples[i].Reasons, samples[i].Partitions = nil, nil
			}
		}
		if kept = append(kept, report.Thin(samples, step)...); len(kept) > most {
			return nil, refused("there are more than %d samples: ask for less time, as in ?since=6h, or for a longer step, as in ?step=5m", most)
		}
	}
	return kept, nil
}

// between reads from when until when: the last day if nothing else is asked for. The processor or group that is
// asked for is known.
func (h *Handler) between(r *http.Request) (since, until time.Time, err error) {
	if name := r.PathValue("name"); !h.Knows(name) {
		return since, until, h.Unknown(name)
	}
	if until, err = h.time(r, "until", h.Now().UTC()); err != nil {
		return since, until, err
	}
	since, err = h.time(r, "since", until.Add(-lookBack))
	return since, until, err
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
	return time.Time{}, refused("%s is %q; allowed are RFC 3339 times and durations, as in ?since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z or ?since=6h", name, given)
}

const (
	trendBack  = time.Hour       // that a trend goes back
	trendStep  = 2 * time.Minute // of which it has the most that was pending
	mostTrends = 50              // in an answer
)

// trend answers with the lag of the named processors and groups in the last hour, for the small charts of a list: the
// most pending transactions of each step; null if unknown. The page names those that its list shows at the moment,
// since the history of thousands would take long to read.
func (h *Handler) trend(r *http.Request) (any, error) {
	names := r.URL.Query()["name"]
	if len(names) == 0 || len(names) > mostTrends {
		return nil, refused("name is given %d times; allowed are 1 to %d", len(names), mostTrends)
	}
	until := h.Now().UTC().Truncate(trendStep).Add(trendStep)
	since, all := until.Add(-trendBack), make(map[string][]*int64, len(names))
	for _, name := range names {
		if !h.Knows(name) {
			continue // it has left the configuration
		}
		samples, err := h.Store.History(r.Context(), name, since, until)
		if err != nil {
			return nil, err
		}
		lags := make([]*int64, trendBack/trendStep)
		for _, s := range samples {
			if of := &lags[s.Time.Sub(since)/trendStep]; s.Lag != nil && (*of == nil || *s.Lag > **of) {
				*of = s.Lag
			}
		}
		all[name] = lags
	}
	return object{"since": since, "stepSeconds": int(trendStep / time.Second), "lags": all}, nil
}
