package processors

import (
	"fmt"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/functions/internal/problem"
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
func (h *Handler) trend(w http.ResponseWriter, r *http.Request, names []string) {
	if len(names) == 0 || len(names) > mostTrends {
		problem.Write(w, r, h.Log, http.StatusBadRequest, fmt.Sprintf("name is given %d times; allowed are 1 to %d", len(names), mostTrends))
		return
	}
	select {
	case h.reading <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	defer func() { <-h.reading }()
	until := h.Now().UTC().Truncate(trendStep).Add(trendStep)
	answer := trend{Since: until.Add(-trendBack), StepSeconds: int(trendStep / time.Second), Lags: make(map[string][]*int64, len(names))}
	for _, name := range names {
		if !h.Knows(name) {
			continue // it has left the configuration
		}
		samples, err := h.Store.History(r.Context(), name, answer.Since, until)
		if err != nil {
			h.unreadable(w, r, err)
			return
		}
		lags := make([]*int64, trendBack/trendStep)
		for _, s := range samples {
			if of := &lags[s.Time.Sub(answer.Since)/trendStep]; s.Lag != nil && (*of == nil || *s.Lag > **of) {
				*of = s.Lag
			}
		}
		answer.Lags[name] = lags
	}
	h.write(w, r, answer)
}
