package metrics

import (
	"context"
	"slices"
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
	state   state.State
	waiting int // events in its outbox
}

// series is one kind of series, of which there is one for each T that has a value.
type series[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(of T) (value float64, known bool)
}

func gauge(name, help string, value func(*processor) (float64, bool)) series[*processor] {
	return gaugeOf(name, help, value, "processor")
}

func gaugeOf[T any](name, help string, value func(T) (float64, bool), labels ...string) series[T] {
	return series[T]{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, value}
}

// gather appends what is known of one T.
func gather[T any](to []prometheus.Metric, all []series[T], of T, labels ...string) []prometheus.Metric {
	for _, s := range all {
		if value, known := s.value(of); known {
			to = append(to, prometheus.MustNewConstMetric(s.desc, s.kind, value, labels...))
		}
	}
	return to
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

// processorSeries are the kinds of series that a processor has, but for its status.
func processorSeries() []series[*processor] {
	return []series[*processor]{
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
			func(p *processor) (float64, bool) { return number(p.state.Memory.Arrival) }),
		gauge("feedscale_processor_drain_per_replica_per_second", "Transactions that one replica works off per second, as measured last.",
			func(p *processor) (float64, bool) {
				drain := p.state.Memory.DrainPerReplica
				return drain, drain > 0
			}),
		gauge("feedscale_processor_catch_up_seconds", "Seconds until the lag is worked off by the replicas that were decided; +Inf is never.",
			func(p *processor) (float64, bool) {
				return report.CatchUpSeconds(p.state)
			}),
		gauge("feedscale_processor_last_poll_timestamp_seconds", "When the processor was last polled, whatever came of it.",
			func(p *processor) (float64, bool) { return timestamp(p.state.AttemptedAt) }),
		gauge("feedscale_processor_last_measured_timestamp_seconds", "When a poll last measured something of the processor.",
			func(p *processor) (float64, bool) { return timestamp(p.state.PolledAt) }),
		gauge("feedscale_processor_failed_polls", "Polls in a row, up to the last one, that measured nothing of the processor.",
			func(p *processor) (float64, bool) {
				return float64(p.state.Memory.Failures), p.polled()
			}),
		gauge("feedscale_processor_poll_requests", "HTTP requests that the last poll made to Cosmos DB; a shared one counts once.",
			func(p *processor) (float64, bool) { return float64(p.Requests), p.polled() }),
		gauge("feedscale_processor_poll_request_charge", "Request units that the last poll spent at Cosmos DB; a shared request counts once.",
			func(p *processor) (float64, bool) { return p.RequestCharge, p.polled() }),
		{
			prometheus.NewDesc("feedscale_processor_events_total", "Scale events made for the processor since its state began: the sequence of the last one.", []string{"processor"}, nil), prometheus.CounterValue,
			func(p *processor) (float64, bool) { return float64(p.Sequence), true },
		},
		gauge("feedscale_outbox_events", "Scale events that wait to be published.",
			func(p *processor) (float64, bool) { return float64(p.waiting), true }),
	}
}

// polled tells whether the processor ever was.
func (p *processor) polled() bool { return !p.state.AttemptedAt.IsZero() }

// groupSeries are the kinds of series that a group has.
func groupSeries() []series[report.Group] {
	gauge := func(name, help string, value func(report.Group) (float64, bool)) series[report.Group] {
		return gaugeOf(name, help, value, "group")
	}
	return []series[report.Group]{
		gauge("feedscale_group_lag", "Pending transactions in LSNs, not documents, of the members that are known.",
			func(g report.Group) (float64, bool) { return number(g.Lag) }),
		gauge("feedscale_group_change_age_seconds", "Seconds since the oldest pending change of the members was written; absent where nothing is pending.",
			func(g report.Group) (float64, bool) { return number(g.ChangeAgeSeconds) }),
		gauge("feedscale_group_complete", "1 where nothing of the members is unknown.",
			func(g report.Group) (float64, bool) { v, _ := flag(&g.Complete); return v, len(g.Members) > 0 }),
		gauge("feedscale_group_desired_replicas", "Replicas that were decided for the group: the most that a member asks for.",
			func(g report.Group) (float64, bool) { return number(g.DesiredReplicas) }),
		gauge("feedscale_group_active", "1 where the group has to be kept above zero replicas.",
			func(g report.Group) (float64, bool) { return flag(g.Active) }),
		gauge("feedscale_group_members", "Processors that the last decision was made of.",
			func(g report.Group) (float64, bool) { return float64(len(g.Members)), len(g.Members) > 0 }),
	}
}

// throughputSeries are the kinds of series that a container has whose throughput follows a processor.
func throughputSeries() []series[report.Throughput] {
	gauge := func(name, help string, value func(report.Throughput) (float64, bool)) series[report.Throughput] {
		return gaugeOf(name, help, value, "processor", "account", "container")
	}
	return []series[report.Throughput]{
		gauge("feedscale_throughput_provisioned_request_units_per_second", "Request units a second that the container had when it was read last; of autoscaled throughput the maximum.",
			func(t report.Throughput) (float64, bool) { return number(t.Provisioned) }),
		gauge("feedscale_throughput_desired_request_units_per_second", "Request units a second that are recommended, or to be provisioned.",
			func(t report.Throughput) (float64, bool) { return number(t.Desired) }),
		gauge("feedscale_throughput_needed_request_units_per_second", "Request units a second that the replicas need, before every bound.",
			func(t report.Throughput) (float64, bool) { return number(t.Needed) }),
		gauge("feedscale_throughput_found_request_units_per_second", "Request units a second before the first change; absent where nothing was changed.",
			func(t report.Throughput) (float64, bool) { return number(t.Found) }),
		gauge("feedscale_throughput_at_limit", "1 where the replicas need more than the container may be raised to.",
			func(t report.Throughput) (float64, bool) { return flag(&t.AtLimit) }),
	}
}

// partitionSeries are the kinds of series that a partition has, where they are wanted, but for its status.
func partitionSeries() []series[report.Partition] {
	return []series[report.Partition]{
		gaugeOf("feedscale_partition_lag", "Pending transactions of a partition, in LSNs.",
			func(p report.Partition) (float64, bool) { return number(p.Lag) }, "processor", "lease"),
		gaugeOf("feedscale_partition_change_age_seconds", "Seconds since the oldest pending change of a partition was written; absent where nothing is pending.",
			func(p report.Partition) (float64, bool) { return number(p.ChangeAgeSeconds) }, "processor", "lease"),
	}
}

// stored collects the series that come from the store.
type stored struct {
	Options
	ofProcessor     []series[*processor]
	ofGroup         []series[report.Group]
	ofThroughput    []series[report.Throughput]
	ofPartition     []series[report.Partition]
	status          *prometheus.Desc
	partitionStatus *prometheus.Desc
	readable        *prometheus.Desc

	mu      sync.Mutex // held while loading, so that scrapes at the same time load once
	loaded  time.Time
	metrics []prometheus.Metric
	broken  bool // the last load could not read every state
}

func newStored(o Options) *stored {
	return &stored{
		Options: o, ofProcessor: processorSeries(), ofGroup: groupSeries(), ofThroughput: throughputSeries(), ofPartition: partitionSeries(),
		status:          prometheus.NewDesc("feedscale_processor_status", "1 for the status that the processor is in, the worst of its partitions; 0 for the others.", []string{"processor", "status"}, nil),
		partitionStatus: prometheus.NewDesc("feedscale_partition_status", "1, labelled with the status that the partition is in.", []string{"processor", "lease", "status"}, nil),
		readable:        prometheus.NewDesc("feedscale_state_readable", "1 where the state of every processor and group could be read; one that could not has no series.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *stored) Describe(descs chan<- *prometheus.Desc) {
	describe(descs, c.ofProcessor)
	describe(descs, c.ofGroup)
	describe(descs, c.ofThroughput)
	describe(descs, c.ofPartition)
	descs <- c.status
	descs <- c.partitionStatus
	descs <- c.readable
}

func describe[T any](descs chan<- *prometheus.Desc, all []series[T]) {
	for _, s := range all {
		descs <- s.desc
	}
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
	if c.loaded.IsZero() || c.Now().Sub(c.loaded) >= keep {
		c.load()
		c.loaded = c.Now()
	}
	return c.metrics
}

// load reads every processor and group. One whose state cannot be read has no series,
// and keeps no other from having them.
func (c *stored) load() {
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	names := slices.Concat(c.Processors, c.Groups)
	found := make([][]prometheus.Metric, len(names))
	failed := make([]error, len(names))
	var loads errgroup.Group
	loads.SetLimit(parallel)
	for i, name := range names {
		loads.Go(func() error {
			stored, err := c.Store.Load(ctx, name)
			var s state.State
			if err == nil {
				s, err = stored.State()
			}
			switch failed[i] = err; {
			case err != nil:
			case i < len(c.Processors):
				found[i] = c.of(name, &processor{report.NewStored(report.Lookup{State: s}), s, len(stored.Outbox)})
			default:
				found[i] = gather(nil, c.ofGroup, report.NewGroup(s), name)
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
		c.Log.Error("the metrics lack processors whose state cannot be read", "unread", unread, "of", len(names), "error", first.Error())
	case unread == 0 && c.broken:
		c.Log.Info("the metrics have every processor again")
	}
	c.broken = unread > 0
}

// of returns the series of one processor.
func (c *stored) of(name string, p *processor) []prometheus.Metric {
	metrics := gather(nil, c.ofProcessor, p, name)
	for _, status := range changefeed.Statuses() {
		value := 0.0
		if p.Status == status {
			value = 1
		}
		metrics = append(metrics, prometheus.MustNewConstMetric(c.status, prometheus.GaugeValue, value, name, string(status)))
	}
	for _, t := range p.Throughput {
		metrics = gather(metrics, c.ofThroughput, t, name, t.Account, t.Container)
	}
	if !c.Partitions {
		return metrics
	}
	for _, partition := range p.Processor.Partitions {
		metrics = gather(metrics, c.ofPartition, partition, name, partition.Lease)
		metrics = append(metrics, prometheus.MustNewConstMetric(c.partitionStatus, prometheus.GaugeValue, 1, name, partition.Lease, string(partition.Status)))
	}
	return metrics
}
