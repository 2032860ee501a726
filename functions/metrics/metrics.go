// Package metrics is the HTTP function that Prometheus scrapes.
// function.json beside it is what the host reads.
//
// It has two kinds of series. Those named feedscale_processor_*, _group_*,
// _throughput_* and _partition_*, and feedscale_outbox_events, come from the
// state store at the scrape (stored.go): every instance of a Functions app
// answers the same. All others are counted in this process as its ticks happen
// (ticks.go), begin at zero with it, and are those of the instance that answers.
// What is unknown has no series; it is never zero. The only processors, groups
// and queues are those of the configuration, which bounds the labels; leases,
// of which the accounts decide how many there are, are labels on request alone.
package metrics

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/state"
)

// Route is where the metrics are, with the prefix that the host puts before it.
const Route = "/api/metrics"

// Options are what the function is made of.
type Options struct {
	Processors []string // the configured names
	Groups     []string
	Partitions bool // series for each partition, too
	Store      state.Store
	Version    string // of this build
	Now        func() time.Time
	Log        *slog.Logger
}

// Handler serves the route, and counts what it is told of.
type Handler struct {
	ticks    ticks
	registry *prometheus.Registry
	scrape   http.Handler
	log      *slog.Logger
}

// New makes a Handler with a registry of its own. It asks the store for
// nothing before the first scrape.
func New(o Options) *Handler {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "feedscale_build_info", Help: "1, labelled with the version of this build and of Go.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(o.Version, runtime.Version()).Set(1)

	h := &Handler{ticks: newTicks(o.Processors), registry: prometheus.NewRegistry(), log: o.Log}
	h.registry.MustRegister(build, newStored(o), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h.registry.MustRegister(h.ticks.collectors()...)
	h.scrape = promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(o.Log.Handler(), slog.LevelError),
	})
	return h
}

// Gather returns the metrics that a scrape shows, for those who push them.
func (h *Handler) Gather() ([]*dto.MetricFamily, error) { return h.registry.Gather() }

// Register adds the route to a mux.
func (h *Handler) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+Route, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		h.scrape.ServeHTTP(w, r)
	})
	mux.HandleFunc(Route, problem.OnlyGET(h.log))
}
