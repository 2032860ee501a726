package processors

import (
	"net/http"
	"time"
)

const (
	trendBack  = time.Hour       // that a trend goes back
	trendStep  = 2 * time.Minute // of which it has the most that was pending
	mostTrends = 50              // in an answer
)

// trend is the lag of some processors and groups in the last hour, for the small charts of a list.
type trend struct {
	Since       time.Time           `json:"since"`
	StepSeconds int                 `json:"stepSeconds"`
	Lags        map[string][]*int64 `json:"lags"` // most pending transactions of each step, by name; null if unknown
}

// trend answers with the lag of what has one of some names. It is asked for the rows that somebody sees, so
// that a list of thousands reads no history.
func (h *Handler) trend(r *http.Request) (any, error) {
	names := r.URL.Query()["name"]
	if len(names) == 0 || len(names) > mostTrends {
		return nil, refused("name is given %d times; allowed are 1 to %d", len(names), mostTrends)
	}
	until := h.Now().UTC().Truncate(trendStep).Add(trendStep)
	answer := trend{Since: until.Add(-trendBack), StepSeconds: int(trendStep / time.Second), Lags: make(map[string][]*int64, len(names))}
	for _, name := range names {
		if !h.Knows(name) {
			continue // it has left the configuration
		}
		samples, err := h.Store.History(r.Context(), name, answer.Since, until)
		if err != nil {
			return nil, err
		}
		lags := make([]*int64, trendBack/trendStep)
		for _, s := range samples {
			if of := &lags[s.Time.Sub(answer.Since)/trendStep]; s.Lag != nil && (*of == nil || *s.Lag > **of) {
				*of = s.Lag
			}
		}
		answer.Lags[name] = lags
	}
	return answer, nil
}
