package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/report"
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
	total          *prometheus.CounterVec
	duration       prometheus.Histogram
	overruns       prometheus.Counter
	polls          *polls
	commitFailures prometheus.Counter
	published      prometheus.Counter
	publishErrors  prometheus.Counter
	signals        *prometheus.GaugeVec
	signalFailures *prometheus.CounterVec
	unpublished    *prometheus.GaugeVec // without labels: a vector has no series before the first tick
}

// newTicks makes the series. Every counter is there from the beginning: to Prometheus the first value of a series
// is no increase.
func newTicks(processors []overview.Subject) ticks {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	t := ticks{
		total: counter("feedscale_ticks_total", "Ticks of this process; failed if nothing at all could be committed.", "result"),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "feedscale_tick_duration_seconds", Help: "How long the ticks of this process took, from loading the state to publishing.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60, 120, 300}, // up to functionTimeout
		}),
		overruns:       prometheus.NewCounter(prometheus.CounterOpts{Name: "feedscale_tick_overruns_total", Help: "Ticks of this process that took longer than the timer's schedule allows."}),
		polls:          newPolls(processors),
		commitFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: "feedscale_commit_failures_total", Help: "Polls whose state this process could not load or commit."}),
		published:      prometheus.NewCounter(prometheus.CounterOpts{Name: "feedscale_events_published_total", Help: "Scale events that this process delivered."}),
		publishErrors:  prometheus.NewCounter(prometheus.CounterOpts{Name: "feedscale_event_publish_failures_total", Help: "Attempts of this process to deliver a scale event that failed."}),
		signals: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "feedscale_signal_queue_messages", Help: "Messages that this process last made a signal queue hold, one for each replica.",
		}, []string{"queue"}),
		signalFailures: counter("feedscale_signal_queue_failures_total", "Attempts of this process to have a signal queue hold what was decided that failed.", "queue"),
		unpublished: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "feedscale_events_unpublished", Help: "Scale events that the last tick of this process left in the outbox.",
		}, nil),
	}
	t.total.WithLabelValues(resultOK)
	t.total.WithLabelValues(resultFailed)
	return t
}

func (t *ticks) collectors() []prometheus.Collector {
	return []prometheus.Collector{t.total, t.duration, t.overruns, t.commitFailures, t.published, t.publishErrors, t.signals, t.signalFailures, t.unpublished}
}

// Observe counts a tick of this process: what came of it, how long it took, and the error that Tick returned. It
// is safe for concurrent use.
func (h *Handler) Observe(result report.Tick, duration time.Duration, overran bool, err error) {
	t := &h.ticks
	if err != nil {
		t.total.WithLabelValues(resultFailed).Inc()
	} else {
		t.total.WithLabelValues(resultOK).Inc()
	}
	t.duration.Observe(duration.Seconds())
	if overran {
		t.overruns.Inc()
	}
	t.commitFailures.Add(float64(result.Uncommitted))
	t.unpublished.WithLabelValues().Set(float64(result.Unpublished))
}

// ObservePoll counts what a tick polled of a processor. It is safe for concurrent use.
func (h *Handler) ObservePoll(s state.State) { h.ticks.polls.add(s) }

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
