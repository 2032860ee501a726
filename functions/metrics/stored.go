package metrics

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func timestamp(t *time.Time) float64 {
	if t == nil {
		return math.NaN()
	}
	return float64(t.UnixMilli()) / 1000
}

// stored adds the series of what is stored. What cannot be read has none.
func (h *Handler) stored(f *families) {
	entries := h.Current()
	readable := !slices.ContainsFunc(entries, func(e *overview.Entry) bool { return e.Err != nil })
	f.add("feedscale_state_readable", "1 if the state of every processor and group could be read; one that could not has no series.",
		nil, flag(readable))
	for _, e := range entries {
		switch {
		case e.Err != nil:
		case e.Group.Name != "":
			f.group(e.Group.Group)
		default:
			f.processor(e)
			for _, t := range e.Processor.Throughput {
				f.throughput(t, e.Processor.Name)
			}
			for i := range e.Processor.Partitions {
				f.partition(&e.Processor.Partitions[i], e.Processor.Name)
			}
		}
	}
}

func (f *families) processor(e *overview.Entry) {
	p, l := e.Processor, labels(nil).with("processor", e.Processor.Name)
	f.add("feedscale_processor_lag", "Pending transactions in LSNs, not documents, of the partitions that are known.", l, report.Float(p.Lag))
	f.add("feedscale_processor_change_age_seconds", "Seconds since the oldest pending change was written; absent if nothing is pending.",
		l, report.Float(p.ChangeAgeSeconds))
	f.add("feedscale_processor_partitions", "Partitions, the children of a split for their parent.", l, report.Float(p.PartitionCount))
	f.add("feedscale_processor_partitions_with_lag", "Partitions known to have pending changes.", l, report.Float(p.PartitionsWithLag))
	f.add("feedscale_processor_complete", "1 if no partition is unknown.", l, flag(p.Complete))
	if d := e.Decision; d != nil { // whether it is published or not
		f.add("feedscale_processor_desired_replicas", "Replicas that were decided.", l, float64(d.Replicas))
		f.add("feedscale_processor_metric_value", "What a scaler with the threshold as its target is told: the lag, capped.", l, float64(d.MetricValue))
		f.add("feedscale_processor_active", "1 if the processor has to be kept above zero replicas.", l, flag(d.Active))
	}
	if p.AttemptedAt != nil {
		f.add("feedscale_processor_paused", "1 if decisions are not published.", l, flag(p.Paused))
		f.add("feedscale_processor_failed_polls", "Polls in a row, up to the last one, that measured nothing of the processor.", l, float64(p.FailedPolls))
		f.add("feedscale_processor_poll_requests", "HTTP requests that the last poll made to Cosmos DB; a shared one counts once.", l, float64(p.Requests))
		f.add("feedscale_processor_poll_request_charge", "Request units that the last poll spent at Cosmos DB; a shared request counts once.",
			l, p.RequestCharge)
	}
	f.add("feedscale_processor_arrival_per_second", "Transactions that arrive per second, if the last poll could tell.", l, report.Float(p.ArrivalPerSecond))
	f.add("feedscale_processor_drain_per_replica_per_second", "Transactions that one replica works off per second, as measured last.",
		l, report.Float(p.DrainPerReplica))
	f.add("feedscale_processor_catch_up_seconds", "Seconds until the lag is worked off by the replicas that were decided; +Inf is never.",
		l, report.Float(e.CatchUp))
	f.add("feedscale_processor_last_poll_timestamp_seconds", "When the processor was last polled, whatever came of it.", l, timestamp(p.AttemptedAt))
	f.add("feedscale_processor_last_measured_timestamp_seconds", "When a poll last measured something of the processor.", l, timestamp(p.PolledAt))
	f.add("feedscale_processor_events_total", "Scale events made for the processor since its state began: the sequence of the last one.",
		l, float64(p.Sequence))
	f.add("feedscale_outbox_events", "Scale events that wait to be published.", l, float64(p.Outbox.Count))
	for _, s := range changefeed.Statuses() {
		f.add("feedscale_processor_status", "1 for the status that the processor is in, the worst of its partitions; 0 for the others.",
			l.with("status", string(s)), flag(p.Status == s))
	}
}

func (f *families) group(g report.Group) {
	l := labels(nil).with("group", g.Name)
	f.add("feedscale_group_lag", "Pending transactions in LSNs, not documents, of the members that are known.", l, report.Float(g.Lag))
	f.add("feedscale_group_change_age_seconds", "Seconds since the oldest pending change of the members was written; absent if nothing is pending.",
		l, report.Float(g.ChangeAgeSeconds))
	f.add("feedscale_group_desired_replicas", "Replicas that were decided for the group: the most that a member asks for.", l, report.Float(g.DesiredReplicas))
	if g.Active != nil {
		f.add("feedscale_group_active", "1 if the group has to be kept above zero replicas.", l, flag(*g.Active))
	}
	if len(g.Members) > 0 {
		f.add("feedscale_group_complete", "1 if nothing of the members is unknown.", l, flag(g.Complete))
		f.add("feedscale_group_members", "Processors that the last decision was made of.", l, float64(len(g.Members)))
	}
}

// throughput adds the series of a container whose throughput follows a processor.
func (f *families) throughput(t report.Throughput, processor string) {
	l := labels(nil).with("account", t.Account).with("container", t.Container).with("processor", processor)
	f.add("feedscale_throughput_provisioned_request_units_per_second",
		"Request units a second that the container had when it was read last; of autoscaled throughput the maximum.", l, report.Float(t.Provisioned))
	f.add("feedscale_throughput_desired_request_units_per_second", "Request units a second that are recommended, or to be provisioned.",
		l, report.Float(t.Desired))
	f.add("feedscale_throughput_needed_request_units_per_second", "Request units a second that the replicas need, before every bound.",
		l, report.Float(t.Needed))
	f.add("feedscale_throughput_found_request_units_per_second", "Request units a second before the first change; absent if nothing was changed.",
		l, report.Float(t.Found))
	f.add("feedscale_throughput_at_limit", "1 if the replicas need more than the container may be raised to.", l, flag(t.AtLimit))
}

func (f *families) partition(p *report.Partition, processor string) {
	l := labels(nil).with("processor", processor).with("lease", p.Lease)
	f.add("feedscale_partition_lag", "Pending transactions of a partition, in LSNs.", l, report.Float(p.Lag))
	f.add("feedscale_partition_change_age_seconds", "Seconds since the oldest pending change of a partition was written; absent if nothing is pending.",
		l, report.Float(p.ChangeAgeSeconds))
	f.add("feedscale_partition_status", "1, labelled with the status that the partition is in.", l.with("status", string(p.Status)), 1)
}

// labels are those of one series, by name. Series share them, since there may be hundreds of thousands.
type labels []*dto.LabelPair

// with returns the labels with another one.
func (l labels) with(name, value string) labels {
	all := append(slices.Clone(l), &dto.LabelPair{Name: &name, Value: &value})
	slices.SortFunc(all, func(a, b *dto.LabelPair) int { return cmp.Compare(*a.Name, *b.Name) })
	return all
}

// families are kinds of series, in the order in which they were added.
type families []*family

type family struct {
	name, help string
	series     []series
}

type series struct {
	labels
	value float64
}

// add adds a series, unless its value is NaN. It is a counter if its name ends in _total, else a gauge.
func (f *families) add(name, help string, l labels, value float64) {
	if math.IsNaN(value) {
		return
	}
	at := slices.IndexFunc(*f, func(of *family) bool { return of.name == name })
	if at < 0 {
		at, *f = len(*f), append(*f, &family{name: name, help: help})
	}
	(*f)[at].series = append((*f)[at].series, series{l, value})
}

// show shows one family after the other, since the metrics of all together take much memory.
func (f families) show(show func(*dto.MetricFamily)) {
	for _, of := range f {
		shown := &dto.MetricFamily{Name: &of.name, Help: &of.help, Type: dto.MetricType_GAUGE.Enum()}
		counts := strings.HasSuffix(of.name, "_total")
		if counts {
			shown.Type = dto.MetricType_COUNTER.Enum()
		}
		for i := range of.series {
			metric := &dto.Metric{Label: of.series[i].labels}
			if value := &of.series[i].value; counts {
				metric.Counter = &dto.Counter{Value: value}
			} else {
				metric.Gauge = &dto.Gauge{Value: value}
			}
			shown.Metric = append(shown.Metric, metric)
		}
		show(shown)
	}
}
