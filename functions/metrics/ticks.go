package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/pkg/events"
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
	polls, decisions, requests, charge                 *prometheus.CounterVec // of a processor
	overruns, commitFailures, published, publishErrors prometheus.Counter
	duration                                           prometheus.Histogram
	signals                                            *prometheus.GaugeVec
	unpublished                                        *prometheus.GaugeVec // without labels: a vector has no series before the first tick
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

		polls:     counter("feedscale_polls_total", "Polls of a processor by this process: complete, incomplete if a partition is unknown, failed if all of it is.", "processor", "result"),
		decisions: counter("feedscale_decisions_total", "Decisions of this process on a processor, by the direction in which they move its replicas.", "processor", "direction"),
		requests:  counter("feedscale_requests_total", "HTTP requests that this process made to Cosmos DB for a processor; a shared one counts once.", "processor"),
		charge:    counter("feedscale_request_charge_total", "Request units that this process spent at Cosmos DB for a processor; a shared request counts once.", "processor"),
	}
	t.total.WithLabelValues(resultOK)
	t.total.WithLabelValues(resultFailed)
	for _, p := range processors {
		for _, result := range []string{resultComplete, resultIncomplete, resultFailed} {
			t.polls.WithLabelValues(p.Name, result)
		}
		for _, direction := range []scaling.Direction{scaling.Out, scaling.In, scaling.None} {
			t.decisions.WithLabelValues(p.Name, string(direction))
		}
		t.requests.WithLabelValues(p.Name)
		t.charge.WithLabelValues(p.Name)
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
	t.unpublished.WithLabelValues().Set(float64(result.Unpublished))
}

// ObservePoll counts what a tick polled of a processor. It is safe for concurrent use.
func (h *Handler) ObservePoll(s state.State) {
	t, result := &h.ticks, resultFailed
	if s.Lag.Complete() {
		result = resultComplete
	} else if s.Lag.Known() {
		result = resultIncomplete
	}
	t.polls.WithLabelValues(s.Processor, result).Inc()
	if s.Decision != nil {
		t.decisions.WithLabelValues(s.Processor, string(s.Decision.Direction)).Inc()
	}
	t.requests.WithLabelValues(s.Processor).Add(float64(s.Lag.Requests))
	t.charge.WithLabelValues(s.Processor).Add(s.Lag.Charge)
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

// Publisher returns p, with every delivery counted.
func (h *Handler) Publisher(p events.Publisher) events.Publisher {
	return publisher{Publisher: p, ticks: &h.ticks}
}

type publisher struct {
	events.Publisher
	ticks *ticks
}

func (p publisher) Publish(ctx context.Context, body []byte) error {
	err := p.Publisher.Publish(ctx, body)
	if err != nil {
		p.ticks.publishErrors.Inc()
	} else {
		p.ticks.published.Inc()
	}
	return err
}
