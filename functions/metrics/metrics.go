// Package metrics is the HTTP function that Prometheus scrapes. function.json beside it is what the host reads.
//
// It has two kinds of series. Those named feedscale_processor_*, _group_*, _throughput_* and _partition_*, and
// feedscale_outbox_events, come from the state store (stored.go): every instance of a Functions app answers the
// same. All others are counted in this process as its ticks happen (ticks.go), begin at zero with it,
// and are those of the instance that answers. What is unknown has no series; it is never zero. Labels are bounded
// by the configuration. Leases, of which there may be any number, are labels only if that is asked for.
//
// Start with [New].
//
// The package is internal to the program: its API may change in any release.
package metrics

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/feedscale/feedscale/functions/internal/compression"
	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/functions/internal/problem"
)

// Route is where the metrics are, with the prefix that the host puts before it.
const Route = "/api/metrics"

// Handler serves the route, and counts what it is told of.
type Handler struct {
	*overview.Overview // what is stored
	ticks              ticks
	registry           *prometheus.Registry // of what there is one of in a process
}

// New makes a Handler with a registry of its own, for a version of the build. It asks the store for nothing
// before the first scrape.
func New(o *overview.Overview, version string) *Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "feedscale_build_info", Help: "1, labelled with the version of this build and of Go.",
	}, []string{"version", "goversion"}).WithLabelValues(version, runtime.Version()).Set(1)
	return &Handler{Overview: o, ticks: newTicks(registry, o.Processors), registry: registry}
}

// show shows one family after the other.
func (h *Handler) show(show func(*dto.MetricFamily)) error {
	own, err := h.registry.Gather()
	for _, f := range own { // if some cannot be read, the others
		show(f)
	}
	var f families
	h.stored(&f)
	h.ticks.polls.collect(&f)
	f.show(show)
	return err
}

// Gather returns the metrics that a scrape shows, for those who push them.
func (h *Handler) Gather() (all []*dto.MetricFamily, err error) {
	err = h.show(func(f *dto.MetricFamily) { all = append(all, f) })
	return all, err
}

// Register adds the route to a mux.
func (h *Handler) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+Route, h.scrape)
	mux.HandleFunc(Route, problem.OnlyGET)
}

// scrape answers with Prometheus text, family by family.
func (h *Handler) scrape(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	to, end := compression.Answer(w, r)
	err := h.show(func(f *dto.MetricFamily) {
		_, _ = expfmt.MetricFamilyToText(to, f) // a caller that went away has no use for an error
	})
	_ = end()
	if err != nil {
		h.Log.Error("some metrics of the process cannot be read", "error", err.Error())
	}
}
