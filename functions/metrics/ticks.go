package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// The values of the label result.
const (
	resultOK         = "ok"
	resultFailed     = "failed"
	resultComplete   = "complete"
	resultIncomplete = "incomplete"
)

// ticks are the series of this process.
type ticks struct {
	total, signalFailures                              *prometheus.CounterVec
	overruns, commitFailures, published, publishErrors prometheus.Counter
	duration                                           prometheus.Histogram
	signals                                            *prometheus.GaugeVec
	unpublished                                        *prometheus.GaugeVec // without labels: a vector has no series before the first tick
	polls                                              *polls
}

// newTicks makes the series. Every counter is there from the beginning: to Prometheus the first value of a series
// is no increase.
func newTicks(registry prometheus.Registerer, processors []overview.Subject) ticks {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	t := ticks{
		total: counter("feedscale_ticks_total", "Ticks of this process; failed if nothing at all could be committed.", "result"),
		duration: promauto.With(registry).NewHistogram(prometheus.HistogramOpts{
			Name: "feedscale_tick_duration_seconds", Help: "How long the ticks of this process took, from loading the state to publishing.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60, 120, 300}, // up to functionTimeout
		}),
		overruns:       counter("feedscale_tick_overruns_total", "Ticks of this process that took longer than the timer's schedule allows.").WithLabelValues(),
		commitFailures: counter("feedscale_commit_failures_total", "Polls whose state this process could not load or commit.").WithLabelValues(),
		published:      counter("feedscale_events_published_total", "Scale events that this process delivered.").WithLabelValues(),
		publishErrors:  counter("feedscale_event_publish_failures_total", "Attempts of this process to deliver a scale event that failed.").WithLabelValues(),
		signals:        gauge("feedscale_signal_queue_messages", "Messages that this process last made a signal queue hold, one for each replica.", "queue"),
		signalFailures: counter("feedscale_signal_queue_failures_total", "Attempts of this process to have a signal queue hold what was decided that failed.", "queue"),
		unpublished:    gauge("feedscale_events_unpublished", "Scale events that the last tick of this process left in the outbox."),
		polls:          &polls{of: make(map[string]pollCounts, len(processors))},
	}
	t.total.WithLabelValues(resultOK)
	t.total.WithLabelValues(resultFailed)
	for _, p := range processors {
		t.polls.of[p.Name] = pollCounts{}
	}
	return t
}

// Observe counts a tick of this process: what came of it, how long it took, and the error that Tick returned. It
// is safe for concurrent use.
func (h *Handler) Observe(result report.Tick, duration time.Duration, overran bool, err error) {
	t, outcome := &h.ticks, resultOK
	if err != nil {
		outcome = resultFailed
	}
	t.total.WithLabelValues(outcome).Inc()
	t.duration.Observe(duration.Seconds())
	if overran {
		t.overruns.Inc()
	}
	t.commitFailures.Add(float64(result.Uncommitted))
	t.published.Add(float64(result.Published))
	t.publishErrors.Add(float64(result.PublishErrors))
	t.unpublished.WithLabelValues().Set(float64(result.Unpublished))
}

// ObserveSignals counts an attempt to have a signal queue hold so many messages. It is safe for
// concurrent use.
func (h *Handler) ObserveSignals(queue string, messages int, err error) {
	failures := h.ticks.signalFailures.WithLabelValues(queue) // 0 from the first attempt on
	if err != nil {
		failures.Inc()
		return
	}
	h.ticks.signals.WithLabelValues(queue).Set(float64(messages))
}

// polls counts what this process has polled of each processor. There may be thousands, and a vector of the
// library's takes many times the memory.
type polls struct {
	mu sync.Mutex
	of map[string]pollCounts
}

// pollCounts are the counts of one processor, those of its polls by result, and of its decisions by direction.
type pollCounts struct {
	polls, decisions [3]float64
	requests, charge float64
}

var (
	results    = []string{resultComplete, resultIncomplete, resultFailed}
	directions = []scaling.Direction{scaling.None, scaling.Out, scaling.In} // a decision without one moves nothing
)

// ObservePoll counts what a tick polled of a processor. It is safe for concurrent use.
func (h *Handler) ObservePoll(s state.State) {
	p, result := h.ticks.polls, resultFailed
	if s.Lag.Complete() {
		result = resultComplete
	} else if s.Lag.Known() {
		result = resultIncomplete
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of[s.Processor]
	of.polls[slices.Index(results, result)]++
	if d := s.Decision; d != nil {
		of.decisions[max(0, slices.Index(directions, d.Direction))]++
	}
	of.requests += float64(s.Lag.Requests)
	of.charge += s.Lag.Charge
	p.of[s.Processor] = of
}

// collect adds the series of copies of the counts, so that no tick waits for a scrape.
func (p *polls) collect(f *families) {
	p.mu.Lock()
	all := maps.Clone(p.of)
	p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		of, l := all[name], labels(nil).with("processor", name)
		for i, result := range results {
			f.add("feedscale_polls_total", "Polls of a processor by this process: complete, incomplete if a partition is unknown, failed if all of it is.",
				l.with("result", result), of.polls[i])
		}
		for i, direction := range directions {
			f.add("feedscale_decisions_total", "Decisions of this process on a processor, by the direction in which they move its replicas.",
				l.with("direction", string(direction)), of.decisions[i])
		}
		f.add("feedscale_requests_total", "HTTP requests that this process made to Cosmos DB for a processor; a shared one counts once.", l, of.requests)
		f.add("feedscale_request_charge_total", "Request units that this process spent at Cosmos DB for a processor; a shared request counts once.", l, of.charge)
	}
}
