// Package otlp pushes metrics to an OpenTelemetry collector, by OTLP over HTTP with protobuf, if
// OpenTelemetry's environment variables ask for it (docs/monitor.md, OTLP).
//
// Everything is OpenTelemetry's own: its exporter and its SDK read the environment, and its bridge
// reads a Prometheus registry. This package keeps secrets out of the log, and the headers from any
// other address. Start with [Start].
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Options are what the environment does not say.
type Options struct {
	Metrics prometheus.Gatherer
	Version string // of this build
	Log     *slog.Logger
}

// Start begins to push, at the interval of OTEL_METRIC_EXPORT_INTERVAL, if the environment names a
// collector. If that cannot be used, the log says so, and nothing is pushed: telemetry stops no program.
// stop pushes a last time and ends, or ends with its context.
func Start(o Options) (stop func(context.Context)) {
	stop = func(context.Context) {}
	asked, err := asked()
	if err != nil {
		o.Log.Warn("metrics are not pushed by OTLP", "error", err.Error())
	}
	if !asked {
		return stop
	}
	// for the whole process
	otel.SetLogger(logr.FromSlogHandler(plainHandler{o.Log.Handler()}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("OpenTelemetry", "error", err.Error()) }))
	to, err := newExporter(context.Background(), o.Log)
	if err != nil {
		o.Log.Warn("metrics are not pushed by OTLP", "error", err.Error())
		return stop
	}
	host, _ := os.Hostname() // "" if it has none
	instance := fmt.Sprintf("%s/%d", cmp.Or(host, "unknown"), os.Getpid())
	described, err := resource.New(context.Background(),
		resource.WithAttributes(
			attribute.String("service.name", "feedscale"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", instance),
		),
		resource.WithFromEnv(), // behind ours: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil {
		o.Log.Warn("OTEL_RESOURCE_ATTRIBUTES cannot be read", "next", "write name=value,name=value")
	}
	reader := metric.NewPeriodicReader(to, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(o.Metrics))))
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(described))
	return func(ctx context.Context) {
		ctx, end := context.WithCancel(ctx)
		go func() {
			defer end()
			_ = provider.Shutdown(ctx) // the exporter has logged what fails
		}()
		<-ctx.Done() // reading the metrics does not end with it
	}
}

// asked reports whether the environment asks for a push. It checks what the exporter would take for another
// collector or protocol.
func asked() (bool, error) {
	of := func(name string) string {
		return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	endpoint, protocol := of("ENDPOINT"), cmp.Or(of("PROTOCOL"), "http/protobuf")
	if endpoint == "" || cmp.Or(os.Getenv("OTEL_METRICS_EXPORTER"), "otlp") != "otlp" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	if protocol != "http/protobuf" {
		return false, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL is " + protocol + "; allowed is http/protobuf, at a collector's port 4318")
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT is no address; allowed is, for example, https://collector.example:4318")
	}
	return true, nil
}

// proxy is that of the environment. A redirection is not followed: the headers may hold a key.
func proxy(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errors.New("the collector redirects to another address")
	}
	return http.ProxyFromEnvironment(r)
}

// exporter logs once that pushes fail, and once that they work again.
type exporter struct {
	metric.Exporter
	log    *slog.Logger
	failed bool // the last push
}

// retry tries again what OTLP allows to try again (https://opentelemetry.io/docs/specs/otlp/#otlphttp-response).
var retry = otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: 30 * time.Second}

func newExporter(ctx context.Context, log *slog.Logger) (*exporter, error) {
	to, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithProxy(proxy), otlpmetrichttp.WithRetry(retry))
	return &exporter{Exporter: to, log: log}, err
}

// Export makes one push. The SDK makes one at a time.
func (e *exporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	err := e.Exporter.Export(ctx, all)
	switch {
	case err != nil && !e.failed:
		e.log.Warn("metrics cannot be pushed by OTLP: it is tried again at each interval", "error", reason(err))
	case err == nil && e.failed:
		e.log.Info("metrics are pushed again")
	}
	e.failed = err != nil
	return nil // the log has it
}

var (
	answered = regexp.MustCompile(`: (\d{3} [^(]*) \(body: `)
	rejected = regexp.MustCompile(`OTLP partial success: .*`)
)

// reason is what may be said of a failed push. The error itself repeats the address and the collector's answer, which
// may hold secrets.
func reason(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return "the collector cannot be reached: " + failed.Err.Error()
	}
	if status := answered.FindStringSubmatch(err.Error()); status != nil {
		return "the collector answers " + status[1]
	}
	return cmp.Or(rejected.FindString(err.Error()), "the collector does not take them, and may be busy (429, 502, 503 or 504)")
}

// plainHandler logs the texts of the SDK alone: what comes with them repeats headers and addresses.
type plainHandler struct{ slog.Handler }

// Handle logs a text.
func (h plainHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.Handler.Handle(ctx, slog.NewRecord(r.Time, r.Level, "OpenTelemetry: "+r.Message, r.PC))
}
