package metrics

import (
	"cmp"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
)

func number[N int | int64 | float64](n *N) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func timestamp(t *time.Time) (float64, bool) {
	if t == nil {
		return 0, false
	}
	return float64(t.UnixMilli()) / 1000, true
}

// processorKinds are the kinds of series that a processor has. Its status has its own.
var processorKinds = []kind[*overview.Entry]{
	{"feedscale_processor_lag", "Pending transactions in LSNs, not documents, of the partitions that are known.",
		func(e *overview.Entry) (float64, bool) { return number(e.Processor.Lag) }},
	{"feedscale_processor_change_age_seconds", "Seconds since the oldest pending change was written; absent if nothing is pending.",
		func(e *overview.Entry) (float64, bool) { return number(e.Processor.ChangeAgeSeconds) }},
	{"feedscale_processor_partitions", "Partitions, the children of a split for their parent.",
		func(e *overview.Entry) (float64, bool) { return number(e.Processor.PartitionCount) }},
	{"feedscale_processor_partitions_with_lag", "Partitions known to have pending changes.",
		func(e *overview.Entry) (float64, bool) { return number(e.Processor.PartitionsWithLag) }},
	{"feedscale_processor_complete", "1 if no partition is unknown.",
		func(e *overview.Entry) (float64, bool) { return flag(e.Processor.Complete), true }},
	{"feedscale_processor_desired_replicas", "Replicas that were decided.",
		decided(func(d *scaling.Decision) float64 { return float64(d.Replicas) })},
	{"feedscale_processor_metric_value", "What a scaler with the threshold as its target is told: the lag, capped.",
		decided(func(d *scaling.Decision) float64 { return float64(d.MetricValue) })},
	{"feedscale_processor_active", "1 if the processor has to be kept above zero replicas.",
		decided(func(d *scaling.Decision) float64 { return flag(d.Active) })},
	{"feedscale_processor_paused", "1 if decisions are not published.",
		func(e *overview.Entry) (float64, bool) { return flag(e.Processor.Paused), wasPolled(e) }},
	{"feedscale_processor_arrival_per_second", "Transactions that arrive per second, if the last poll could tell.",
		func(e *overview.Entry) (float64, bool) { return number(e.Processor.ArrivalPerSecond) }},
	{"feedscale_processor_drain_per_replica_per_second", "Transactions that one replica works off per second, as measured last.",
		func(e *overview.Entry) (float64, bool) { return number(e.Processor.DrainPerReplica) }},
	{"feedscale_processor_catch_up_seconds", "Seconds until the lag is worked off by the replicas that were decided; +Inf is never.",
		func(e *overview.Entry) (float64, bool) { return number(e.CatchUp) }},
	{"feedscale_processor_last_poll_timestamp_seconds", "When the processor was last polled, whatever came of it.",
		func(e *overview.Entry) (float64, bool) { return timestamp(e.Processor.AttemptedAt) }},
	{"feedscale_processor_last_measured_timestamp_seconds", "When a poll last measured something of the processor.",
		func(e *overview.Entry) (float64, bool) { return timestamp(e.Processor.PolledAt) }},
	{"feedscale_processor_failed_polls", "Polls in a row, up to the last one, that measured nothing of the processor.",
		func(e *overview.Entry) (float64, bool) { return float64(e.Processor.FailedPolls), wasPolled(e) }},
	{"feedscale_processor_poll_requests", "HTTP requests that the last poll made to Cosmos DB; a shared one counts once.",
		func(e *overview.Entry) (float64, bool) { return float64(e.Processor.Requests), wasPolled(e) }},
	{"feedscale_processor_poll_request_charge", "Request units that the last poll spent at Cosmos DB; a shared request counts once.",
		func(e *overview.Entry) (float64, bool) { return e.Processor.RequestCharge, wasPolled(e) }},
	{"feedscale_processor_events_total", "Scale events made for the processor since its state began: the sequence of the last one.",
		func(e *overview.Entry) (float64, bool) { return float64(e.Processor.Sequence), true }},
	{"feedscale_outbox_events", "Scale events that wait to be published.",
		func(e *overview.Entry) (float64, bool) { return float64(e.Processor.Outbox.Count), true }},
}

// wasPolled tells whether the processor ever was.
func wasPolled(e *overview.Entry) bool { return e.Processor.AttemptedAt != nil }

// decided is a number of the last decision, whether it is published or not.
func decided(value func(*scaling.Decision) float64) func(*overview.Entry) (float64, bool) {
	return func(e *overview.Entry) (float64, bool) {
		if e.Decision == nil {
			return 0, false
		}
		return value(e.Decision), true
	}
}

// groupKinds are the kinds of series that a group has.
var groupKinds = []kind[report.Group]{
	{"feedscale_group_lag", "Pending transactions in LSNs, not documents, of the members that are known.",
		func(g report.Group) (float64, bool) { return number(g.Lag) }},
	{"feedscale_group_change_age_seconds", "Seconds since the oldest pending change of the members was written; absent if nothing is pending.",
		func(g report.Group) (float64, bool) { return number(g.ChangeAgeSeconds) }},
	{"feedscale_group_complete", "1 if nothing of the members is unknown.",
		func(g report.Group) (float64, bool) { return flag(g.Complete), len(g.Members) > 0 }},
	{"feedscale_group_desired_replicas", "Replicas that were decided for the group: the most that a member asks for.",
		func(g report.Group) (float64, bool) { return number(g.DesiredReplicas) }},
	{"feedscale_group_active", "1 if the group has to be kept above zero replicas.",
		func(g report.Group) (float64, bool) { return flag(g.Active != nil && *g.Active), g.Active != nil }},
	{"feedscale_group_members", "Processors that the last decision was made of.",
		func(g report.Group) (float64, bool) { return float64(len(g.Members)), len(g.Members) > 0 }},
}

// throughputKinds are the kinds of series that a container has whose throughput follows a processor.
var throughputKinds = []kind[report.Throughput]{
	{"feedscale_throughput_provisioned_request_units_per_second", "Request units a second that the container had when it was read last; of autoscaled throughput the maximum.",
		func(t report.Throughput) (float64, bool) { return number(t.Provisioned) }},
	{"feedscale_throughput_desired_request_units_per_second", "Request units a second that are recommended, or to be provisioned.",
		func(t report.Throughput) (float64, bool) { return number(t.Desired) }},
	{"feedscale_throughput_needed_request_units_per_second", "Request units a second that the replicas need, before every bound.",
		func(t report.Throughput) (float64, bool) { return number(t.Needed) }},
	{"feedscale_throughput_found_request_units_per_second", "Request units a second before the first change; absent if nothing was changed.",
		func(t report.Throughput) (float64, bool) { return number(t.Found) }},
	{"feedscale_throughput_at_limit", "1 if the replicas need more than the container may be raised to.",
		func(t report.Throughput) (float64, bool) { return flag(t.AtLimit), true }},
}

// partitionKinds are the kinds of series that a partition has, if they are wanted. Its status has its own.
var partitionKinds = []kind[*report.Partition]{
	{"feedscale_partition_lag", "Pending transactions of a partition, in LSNs.",
		func(p *report.Partition) (float64, bool) { return number(p.Lag) }},
	{"feedscale_partition_change_age_seconds", "Seconds since the oldest pending change of a partition was written; absent if nothing is pending.",
		func(p *report.Partition) (float64, bool) { return number(p.ChangeAgeSeconds) }},
}

// stored shows the series of what is stored. What cannot be read has none.
func (h *Handler) stored(show func(*dto.MetricFamily)) {
	entries, _ := h.Current()
	read := 1.0
	var ofProcessors []row[*overview.Entry]
	var ofGroups []row[report.Group]
	var ofThroughput []row[report.Throughput]
	for _, e := range entries {
		processor, group := e.Processor.Name, e.Group.Name
		switch {
		case e.Err != nil:
			read = 0
		case group != "":
			ofGroups = append(ofGroups, row[report.Group]{labelled("group", group), e.Group.Group})
		default:
			ofProcessors = append(ofProcessors, row[*overview.Entry]{labelled("processor", processor), e})
		}
		for _, t := range e.Processor.Throughput {
			ofThroughput = append(ofThroughput, row[report.Throughput]{labelled("account", t.Account, "container", t.Container, "processor", processor), t})
		}
	}
	each(show, single("feedscale_state_readable", "1 if the state of every processor and group could be read; one that could not has no series."),
		[]row[float64]{{nil, read}})
	each(show, processorKinds, ofProcessors)
	each(show, groupKinds, ofGroups)
	each(show, throughputKinds, ofThroughput)
	statuses := changefeed.Statuses()
	each(show, single("feedscale_processor_status", "1 for the status that the processor is in, the worst of its partitions; 0 for the others."),
		by("status", statuses[:], ofProcessors, func(e *overview.Entry, i int) float64 { return flag(e.Processor.Status == statuses[i]) }))
	if h.Partitions {
		showPartitions(show, ofProcessors)
	}
}

// showPartitions shows the series of each partition.
func showPartitions(show func(*dto.MetricFamily), processors []row[*overview.Entry]) {
	var rows []row[*report.Partition]
	var statuses []row[float64]
	for _, p := range processors {
		partitions := p.of.Processor.Partitions
		for i := range partitions {
			l := labels{labelled("lease", partitions[i].Lease)[0], p.labels[0]}
			rows = append(rows, row[*report.Partition]{l, &partitions[i]})
			statuses = append(statuses, row[float64]{append(l, labelled("status", string(partitions[i].Status))...), 1})
		}
	}
	each(show, partitionKinds, rows)
	each(show, single("feedscale_partition_status", "1, labelled with the status that the partition is in."), statuses)
}

// labels are those of one series, by name. Series share them, since there may be hundreds of thousands.
type labels []*dto.LabelPair

// labelled makes labels of names and values.
func labelled(namesAndValues ...string) labels {
	made := make(labels, 0, len(namesAndValues)/2)
	for i := 0; i < len(namesAndValues); i += 2 {
		made = append(made, &dto.LabelPair{Name: &namesAndValues[i], Value: &namesAndValues[i+1]})
	}
	return made
}

// row is something that has series with some labels.
type row[T any] struct {
	labels
	of T
}

// kind is one kind of series, of which each row has one if its value is known. It is a counter if its name
// ends in _total, else a gauge.
type kind[T any] struct {
	name, help string
	value      func(of T) (value float64, known bool)
}

// single is one kind of series of rows that are numbers.
func single(name, help string) []kind[float64] {
	return []kind[float64]{{name, help, func(v float64) (float64, bool) { return v, true }}}
}

// by has a row for each value of a further label of each row. value is told the index of the label's value.
func by[T any, L ~string](label string, values []L, rows []row[T], value func(of T, i int) float64) []row[float64] {
	all := make([]row[float64], 0, len(rows)*len(values))
	for i := range values {
		with := labelled(label, string(values[i]))[0]
		for _, r := range rows {
			l := append(labels{with}, r.labels...)
			slices.SortFunc(l, func(a, b *dto.LabelPair) int { return cmp.Compare(*a.Name, *b.Name) })
			all = append(all, row[float64]{l, value(r.of, i)})
		}
	}
	return all
}

// each shows the series of some kinds, one kind after the other: together they take much memory. A kind
// without series is left out.
func each[T any](show func(*dto.MetricFamily), kinds []kind[T], rows []row[T]) {
	for _, k := range kinds {
		f := &dto.MetricFamily{Name: &k.name, Help: &k.help, Type: dto.MetricType_GAUGE.Enum()}
		if strings.HasSuffix(k.name, "_total") {
			f.Type = dto.MetricType_COUNTER.Enum()
		}
		for _, r := range rows {
			v, known := k.value(r.of)
			switch {
			case !known:
			case *f.Type == dto.MetricType_COUNTER:
				f.Metric = append(f.Metric, &dto.Metric{Label: r.labels, Counter: &dto.Counter{Value: &v}})
			default:
				f.Metric = append(f.Metric, &dto.Metric{Label: r.labels, Gauge: &dto.Gauge{Value: &v}})
			}
		}
		if len(f.Metric) > 0 {
			show(f)
		}
	}
}
