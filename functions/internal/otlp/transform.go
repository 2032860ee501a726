package otlp

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
)

// resourceMetrics are metrics in the form of OTLP.
func resourceMetrics(all *metricdata.ResourceMetrics) []*metrics.ResourceMetrics {
	of := &metrics.ResourceMetrics{
		Resource:  &resource.Resource{Attributes: attributes(all.Resource.Set())},
		SchemaUrl: all.Resource.SchemaURL(),
	}
	for _, scope := range all.ScopeMetrics {
		in := &metrics.ScopeMetrics{Scope: &common.InstrumentationScope{Name: scope.Scope.Name, Version: scope.Scope.Version}}
		for _, m := range scope.Metrics {
			in.Metrics = append(in.Metrics, metricOf(m))
		}
		of.ScopeMetrics = append(of.ScopeMetrics, in)
	}
	return []*metrics.ResourceMetrics{of}
}

// metricOf is one metric, of the kinds that the bridge makes of a registry without native histograms.
func metricOf(m metricdata.Metrics) *metrics.Metric {
	to := &metrics.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch data := m.Data.(type) {
	case metricdata.Gauge[float64]:
		to.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: numbers(data.DataPoints)}}
	case metricdata.Sum[float64]:
		to.Data = &metrics.Metric_Sum{Sum: &metrics.Sum{DataPoints: numbers(data.DataPoints), AggregationTemporality: cumulative, IsMonotonic: data.IsMonotonic}}
	case metricdata.Histogram[float64]:
		histogram := &metrics.Histogram{AggregationTemporality: cumulative}
		for _, p := range data.DataPoints {
			histogram.DataPoints = append(histogram.DataPoints, &metrics.HistogramDataPoint{
				Attributes: attributes(&p.Attributes), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time),
				Count: p.Count, Sum: &p.Sum, BucketCounts: p.BucketCounts, ExplicitBounds: p.Bounds,
			})
		}
		to.Data = &metrics.Metric_Histogram{Histogram: histogram}
	case metricdata.Summary:
		summary := &metrics.Summary{}
		for _, p := range data.DataPoints {
			point := &metrics.SummaryDataPoint{
				Attributes: attributes(&p.Attributes), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time), Count: p.Count, Sum: p.Sum,
			}
			for _, q := range p.QuantileValues {
				point.QuantileValues = append(point.QuantileValues, &metrics.SummaryDataPoint_ValueAtQuantile{Quantile: q.Quantile, Value: q.Value})
			}
			summary.DataPoints = append(summary.DataPoints, point)
		}
		to.Data = &metrics.Metric_Summary{Summary: summary}
	}
	return to
}

func numbers(points []metricdata.DataPoint[float64]) (all []*metrics.NumberDataPoint) {
	for _, p := range points {
		all = append(all, &metrics.NumberDataPoint{
			Attributes: attributes(&p.Attributes), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time),
			Value: &metrics.NumberDataPoint_AsDouble{AsDouble: p.Value},
		})
	}
	return all
}

// attributes are labels, and what describes the process: texts, all of them.
func attributes(of *attribute.Set) (all []*common.KeyValue) {
	for _, a := range of.ToSlice() {
		all = append(all, &common.KeyValue{Key: string(a.Key), Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: a.Value.String()}}})
	}
	return all
}

// nanoseconds is a time as OTLP has it; 0 if there is none.
func nanoseconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}
