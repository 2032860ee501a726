package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

const (
	// keep is how long what was read answers further scrapes, so that two
	// Prometheus servers do not double the transactions of the state table.
	keep = 5 * time.Second
	// loadTimeout leaves a scrape time to answer without the store, within the
	// 10 s that Prometheus waits where it is not told otherwise.
	loadTimeout = 8 * time.Second
	// parallel bounds how many states are loaded at once.
	parallel = 32
)

// processor is what the store holds of one, and what is reported of that.
type processor struct {
	report.Stored
	record state.Record
}

// series is one kind of series with the label processor.
type series struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(p *processor) (value float64, known bool)
}

func gauge(name, help string, value func(*processor) (float64, bool)) series {
	return series{describe(name, help), prometheus.GaugeValue, value}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"processor"}, labels...), nil)
}

func number[N int | int64 | float64](n *N) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

func flag(b *bool) (float64, bool) {
	if b == nil || !*b {
		return 0, b != nil
	}
	return 1, true
}

func timestamp(t time.Time) (float64, bool) {
	return float64(t.UnixMilli()) / 1000, !t.IsZero()
}

// allSeries are the kinds of series that a processor has, but for its status.
func allSeries() []series {
	return []series{
		gauge("feedscale_processor_lag", "Pending transactions in LSNs, not documents, of the partitions that are known.",
			func(p *processor) (float64, bool) { return number(p.Lag) }),
		gauge("feedscale_processor_change_age_seconds", "Seconds since the oldest pending change was written; absent where nothing is pending.",
			func(p *processor) (float64, bool) { return number(p.ChangeAgeSeconds) }),
		gauge("feedscale_processor_partitions", "Partitions, the children of a split for their parent.",
			func(p *processor) (float64, bool) { return number(p.PartitionCount) }),
		gauge("feedscale_processor_partitions_with_lag", "Partitions known to have pending changes.",
			func(p *processor) (float64, bool) { return number(p.PartitionsWithLag) }),
		gauge("feedscale_processor_complete", "1 where no partition is unknown.",
			func(p *processor) (float64, bool) { return flag(&p.Complete) }),
		gauge("feedscale_processor_desired_replicas", "Replicas that were decided.",
			func(p *processor) (float64, bool) { return number(p.DesiredReplicas) }),
		gauge("feedscale_processor_metric_value", "What a scaler with the threshold as its target is told: the lag, capped.",
			func(p *processor) (float64, bool) { return number(p.MetricValue) }),
		gauge("feedscale_processor_active", "1 where the processor has to be kept above zero replicas.",
			func(p *processor) (float64, bool) { return flag(p.Active) }),
		gauge("feedscale_processor_paused", "1 where decisions are not published.",
			func(p *processor) (float64, bool) { v, _ := flag(&p.Paused); return v, p.polled() }),
		gauge("feedscale_processor_arrival_per_second", "Transactions that arrive per second, where the last poll could tell.",
			func(p *processor) (float64, bool) { return number(p.record.State.Memory.Arrival) }),
		gauge("feedscale_processor_drain_per_replica_per_second", "Transactions that one replica works off per second, as measured last.",
			func(p *processor) (float64, bool) {
				drain := p.record.State.Memory.Drain()
				return drain, drain > 0
			}),
		gauge("feedscale_processor_catch_up_seconds", "Seconds until the lag is worked off by the replicas that were decided; +Inf is never.",
			func(p *processor) (float64, bool) {
				return report.CatchUpSeconds(p.record.State)
			}),
		gauge("feedscale_processor_last_poll_timestamp_seconds", "When the processor was last polled, whatever came of it.",
			func(p *processor) (float64, bool) { return timestamp(p.record.State.AttemptedAt) }),
		gauge("feedscale_processor_last_measured_timestamp_seconds", "When a poll last measured something of the processor.",
			func(p *processor) (float64, bool) { return timestamp(p.record.State.PolledAt) }),
		gauge("feedscale_processor_failed_polls", "Polls in a row, up to the last one, that measured nothing of the processor.",
			func(p *processor) (float64, bool) {
				return float64(p.record.State.Memory.Failures), p.polled()
			}),
		gauge("feedscale_processor_poll_requests", "HTTP requests that the last poll made to Cosmos DB; a shared one counts once.",
			func(p *processor) (float64, bool) { return float64(p.Requests), p.polled() }),
		gauge("feedscale_processor_poll_request_charge", "Request units that the last poll spent at Cosmos DB; a shared request counts once.",
			func(p *processor) (float64, bool) { return p.RequestCharge, p.polled() }),
		{
			describe("feedscale_processor_events_total", "Scale events made for the processor since its state began: the sequence of the last one."), prometheus.CounterValue,
			func(p *processor) (float64, bool) { return float64(p.Sequence), true },
		},
		gauge("feedscale_outbox_events", "Scale events that wait to be published.",
			func(p *processor) (float64, bool) { return float64(len(p.record.Outbox)), true }),
	}
}

// polled tells whether the processor ever was.
func (p *processor) polled() bool { return !p.record.State.AttemptedAt.IsZero() }

// stored collects the series that come from the store.
type stored struct {
	processors []string
	store      state.Store
	now        func() time.Time
	log        *slog.Logger
	series     []series
	status     *prometheus.Desc
	readable   *prometheus.Desc

	mu      sync.Mutex // held while loading, so that scrapes at the same time load once
	loaded  time.Time
	metrics []prometheus.Metric
	broken  bool // the last load could not read every state
}

func newStored(o Options) *stored {
	return &stored{
		processors: o.Processors, store: o.Store, now: o.Now, log: o.Log, series: allSeries(),
		status:   describe("feedscale_processor_status", "1 for the status that the processor is in, the worst of its partitions; 0 for the others.", "status"),
		readable: prometheus.NewDesc("feedscale_state_readable", "1 where the state of every processor could be read; one that could not has no series.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *stored) Describe(descs chan<- *prometheus.Desc) {
	for _, s := range c.series {
		descs <- s.desc
	}
	descs <- c.status
	descs <- c.readable
}

// Collect implements prometheus.Collector.
func (c *stored) Collect(metrics chan<- prometheus.Metric) {
	for _, m := range c.current() {
		metrics <- m
	}
}

// current returns the series, read at most 5 s ago.
func (c *stored) current() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded.IsZero() || c.now().Sub(c.loaded) >= keep {
		c.load()
		c.loaded = c.now()
	}
	return c.metrics
}

// load reads every processor. One whose state cannot be read has no series,
// and keeps no other from having them.
func (c *stored) load() {
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	found := make([][]prometheus.Metric, len(c.processors))
	failed := make([]error, len(c.processors))
	var loads errgroup.Group
	loads.SetLimit(parallel)
	for i, name := range c.processors {
		loads.Go(func() error {
			var record state.Record
			if record, failed[i] = c.store.Load(ctx, name); failed[i] == nil {
				found[i] = c.of(name, record)
			}
			return nil
		})
	}
	_ = loads.Wait() // none fails for all

	var unread int
	var first error
	for _, err := range failed {
		if err != nil {
			if unread++; first == nil {
				first = err
			}
		}
	}
	c.metrics = []prometheus.Metric{prometheus.MustNewConstMetric(c.readable, prometheus.GaugeValue, 1)}
	if unread > 0 {
		c.metrics[0] = prometheus.MustNewConstMetric(c.readable, prometheus.GaugeValue, 0)
	}
	for _, m := range found {
		c.metrics = append(c.metrics, m...)
	}
	switch {
	case unread > 0 && !c.broken: // once, not at every scrape
		c.log.Error("the metrics lack processors whose state cannot be read", "unread", unread, "of", len(c.processors), "error", first.Error())
	case unread == 0 && c.broken:
		c.log.Info("the metrics have every processor again")
	}
	c.broken = unread > 0
}

// of returns the series of one processor.
func (c *stored) of(name string, record state.Record) []prometheus.Metric {
	p := &processor{report.NewStored(record.State), record}
	statuses := changefeed.Statuses()
	metrics := make([]prometheus.Metric, 0, len(c.series)+len(statuses))
	for _, s := range c.series {
		if value, known := s.value(p); known {
			metrics = append(metrics, prometheus.MustNewConstMetric(s.desc, s.kind, value, name))
		}
	}
	for _, status := range statuses {
		value := 0.0
		if p.Status == status {
			value = 1
		}
		metrics = append(metrics, prometheus.MustNewConstMetric(c.status, prometheus.GaugeValue, value, name, string(status)))
	}
	return metrics
}
