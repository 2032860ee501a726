package processors

import (
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/functions/internal/problem"
)

const (
	trendBack  = time.Hour       // that a trend goes back
	trendStep  = 2 * time.Minute // of which it has the most that was pending
	mostTrends = 50              // in an answer
	trendReads = 8               // histories that are read at once for it
)

// trend is the lag of some processors and groups in the last hour, for the small charts of a list.
type trend struct {
	Since       time.Time           `json:"since"`
	StepSeconds int                 `json:"stepSeconds"`
	Lags        map[string][]*int64 `json:"lags"` // most pending transactions of each step, by name; null where unknown
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
	lags := make([][]*int64, len(names))
	reads, ctx := errgroup.WithContext(r.Context())
	reads.SetLimit(trendReads)
	for i, name := range names {
		if !h.Knows(name) {
			continue // it has left the configuration
		}
		lags[i] = make([]*int64, trendBack/trendStep)
		reads.Go(func() error {
			samples, err := h.Store.History(ctx, name, answer.Since, until)
			for _, s := range samples {
				if of := &lags[i][s.Time.Sub(answer.Since)/trendStep]; s.Lag != nil && (*of == nil || *s.Lag > **of) {
					*of = s.Lag
				}
			}
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		h.unreadable(w, r, err)
		return
	}
	for i, name := range names {
		if lags[i] != nil {
			answer.Lags[name] = lags[i]
		}
	}
	h.write(w, r, answer)
}
