package processors

import (
	"net/http"
	"strconv"
	"time"
)

// RouteReport has what ran, by the leases. A Functions host forwards it as the function report.
const RouteReport = "/api/report"

// ReportPage is the most processors of an answer.
const ReportPage = 500

// reportBack is how far a report goes back if nothing else is asked for.
const reportBack = 168 * time.Hour

// report answers with a page of what ran since a time.
func (h *Handler) report(r *http.Request) (any, error) {
	query, now := r.URL.Query(), h.Now().UTC()
	since, err := h.time(r, "since", now.Add(-reportBack))
	if err != nil {
		return nil, err
	}
	if since.Before(now.Add(-longestHistory)) || since.After(now) {
		return nil, refused("since is %q; allowed are times in the last %d days", query.Get("since"), longestHistory/(24*time.Hour))
	}
	page := 0
	if given := query.Get("page"); given != "" {
		if page, err = strconv.Atoi(given); err != nil || page < 0 || page > len(h.Processors)/ReportPage {
			return nil, refused("page is %q; allowed are numbers from 0 to nextPage of the page before", given)
		}
	}
	asked, err := h.Members(query["name"])
	if err != nil {
		return nil, err
	}
	first := min(page*ReportPage, len(asked))
	last := min(first+ReportPage, len(asked))
	answer, err := h.Report(r.Context(), asked[first:last], since, func(int) {})
	if last < len(asked) {
		answer.NextPage = new(page + 1)
	}
	return answer, err
}
