// Package otlp pushes metrics to an OpenTelemetry collector, by OTLP over HTTP with protobuf, if
// OpenTelemetry's environment variables ask for it (docs/monitor.md, OTLP).
//
// Reading, resource and interval are the OpenTelemetry SDK's; the metrics are those of a Prometheus
// registry, by OpenTelemetry's own bridge. Only the way to the collector is ours (exporter.go): the
// SDK's links gRPC, which the deployed handler goes without
// (docs/decisions/0018-otlp.md). Start with [Start].
package otlp

import (
	"context"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Options are what the environment does not say.
type Options struct {
	Metrics  prometheus.Gatherer
	Version  string // of this build
	Instance string // names this process among all that push the same metrics
	Getenv   func(string) string
	Log      *slog.Logger
}

// Pusher pushes until it is stopped. The zero value pushes nothing.
type Pusher struct{ provider *metric.MeterProvider }

// speakOnce has the SDK, which speaks to the whole process, use the log that it is started with.
var speakOnce sync.Once

// Start begins to push, at the interval of OTEL_METRIC_EXPORT_INTERVAL, if the environment names a
// collector. What it says wrongly is logged, and nothing is pushed: telemetry stops no program.
func Start(o Options) Pusher {
	target, err := targetOf(o.Getenv)
	if err != nil {
		o.Log.Warn("metrics are not pushed by OTLP", "error", err.Error())
		return Pusher{}
	}
	if target.url == "" {
		return Pusher{}
	}
	speakOnce.Do(func() {
		otel.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("OpenTelemetry", "error", err.Error()) }))
	})
	described, err := resource.New(context.Background(),
		resource.WithAttributes(
			attribute.String("service.name", "feedscale"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Instance),
		),
		resource.WithFromEnv(), // behind ours: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil {
		o.Log.Warn("OTEL_RESOURCE_ATTRIBUTES cannot be read", "next", "write name=value,name=value")
	}
	reader := metric.NewPeriodicReader(&exporter{target: target, pipeline: target.pipeline(), log: o.Log},
		metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(o.Metrics))))
	return Pusher{metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(described))}
}

// Stop pushes a last time and ends, or ends with ctx.
func (p Pusher) Stop(ctx context.Context) {
	if p.provider == nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.provider.Shutdown(ctx) // what fails is logged by the exporter
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // reading the metrics does not end with it
	}
}
