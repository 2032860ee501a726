package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// A secret that must never be shown.
const secret = "s3cr3t-k3y"

// receiver is a collector, as far as OTLP over HTTP goes: POST of an ExportMetricsServiceRequest, whose
// wire format is that of MetricsData (opentelemetry-proto, metrics.proto), answered by an
// ExportMetricsServiceResponse, which is empty where all was taken.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []func(w http.ResponseWriter) // to the next requests, before it takes them
	requests []*http.Request
	pushes   []*metrics.MetricsData
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, q)
		if len(r.answers) > 0 {
			answer := r.answers[0]
			r.answers = r.answers[1:]
			answer(w)
			return
		}
		body := io.Reader(q.Body)
		if q.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(q.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		text, err := io.ReadAll(body)
		push := &metrics.MetricsData{}
		if err != nil || proto.Unmarshal(text, push) != nil {
			t.Errorf("not a push: %v", err)
		}
		r.pushes = append(r.pushes, push)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

// refuse answers with a status.
func refuse(status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		http.Error(w, "not now, "+secret, status)
	}
}

// registry has a series of each kind, and those of the process.
func registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	lag := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "feedscale_processor_lag", Help: "Pending."}, []string{"processor"})
	lag.WithLabelValues("orders").Set(412)
	ticks := prometheus.NewCounter(prometheus.CounterOpts{Name: "feedscale_ticks_total", Help: "Ticks."})
	ticks.Add(3)
	duration := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "feedscale_tick_duration_seconds", Help: "How long.", Buckets: []float64{1, 2}})
	duration.Observe(0.5)
	duration.Observe(5)
	r.MustRegister(lag, ticks, duration, collectors.NewGoCollector())
	return r
}

// start begins to push by an environment.
func start(t *testing.T, environment map[string]string, log io.Writer) (stop func(context.Context)) {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	return Start(Options{Metrics: registry(), Version: "v1.2.3", Log: slog.New(slog.NewJSONHandler(log, nil))})
}

func TestWhatAScrapeShowsIsPushed(t *testing.T) {
	for _, c := range []struct {
		rule        string
		environment func(url string) map[string]string
		path        string
	}{
		{"to an endpoint of all signals", func(url string) map[string]string {
			return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url + "/", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=" + secret + ", other=a%20b"}
		}, "/v1/metrics"},
		{"an endpoint of metrics is taken as it is", func(url string) map[string]string {
			return map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": url + "/push",
				"OTEL_EXPORTER_OTLP_HEADERS": "api-key=no", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "api-key=" + secret + ",other=a%20b",
			}
		}, "/push"},
		{"compressed", func(url string) map[string]string {
			return map[string]string{
				"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": url, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
				"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=" + secret + ",other=a%20b",
			}
		}, "/"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := newReceiver(t)
			var log bytes.Buffer
			start(t, c.environment(r.URL), &log)(t.Context())
			if len(r.pushes) != 1 || log.Len() > 0 {
				t.Fatalf("%d pushes, and it logged %s", len(r.pushes), &log)
			}
			if q := r.requests[0]; q.Method != http.MethodPost || q.URL.Path != c.path || q.Header.Get("Content-Type") != "application/x-protobuf" ||
				q.Header.Get("Api-Key") != secret || q.Header.Get("Other") != "a b" {
				t.Errorf("%s %s %v", q.Method, q.URL, q.Header)
			}
			pushed := r.pushes[0].ResourceMetrics[0]
			described := make(map[string]string)
			for _, a := range pushed.Resource.Attributes {
				described[a.Key] = a.Value.GetStringValue()
			}
			if described["service.name"] != "feedscale" || described["service.version"] != "v1.2.3" || !strings.HasSuffix(described["service.instance.id"], fmt.Sprintf("/%d", os.Getpid())) {
				t.Errorf("it comes from %v", described)
			}
			found := make(map[string]*metrics.Metric)
			for _, m := range pushed.ScopeMetrics[0].Metrics {
				found[m.Name] = m
			}
			families, err := registry().Gather()
			testworld.Must(t, err)
			for _, family := range families {
				if found[family.GetName()].GetData() == nil || found[family.GetName()].Description != family.GetHelp() {
					t.Errorf("%s was not pushed, but %v", family.GetName(), found[family.GetName()])
				}
			}
			if len(found) != len(families) {
				t.Errorf("%d metrics, want %d", len(found), len(families))
			}
			lag := found["feedscale_processor_lag"].GetGauge().GetDataPoints()[0]
			if a := lag.Attributes[0]; lag.GetAsDouble() != 412 || a.Key != "processor" || a.Value.GetStringValue() != "orders" || lag.TimeUnixNano == 0 {
				t.Errorf("the lag is %v", lag)
			}
			if ticks := found["feedscale_ticks_total"].GetSum(); ticks.GetDataPoints()[0].GetAsDouble() != 3 || !ticks.IsMonotonic || ticks.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
				t.Errorf("the ticks are %v", ticks)
			}
			if duration := found["feedscale_tick_duration_seconds"].GetHistogram().GetDataPoints()[0]; duration.GetSum() != 5.5 || !slices.Equal(duration.BucketCounts, []uint64{1, 0, 1}) || !slices.Equal(duration.ExplicitBounds, []float64{1, 2}) {
				t.Errorf("the duration is %v", duration)
			}
			if pauses := found["go_gc_duration_seconds"].GetSummary().GetDataPoints(); len(pauses) != 1 || len(pauses[0].QuantileValues) != 5 {
				t.Errorf("the pauses are %v", pauses)
			}
		})
	}
}

func TestNothingIsPushedUnlessTheEnvironmentAsksForIt(t *testing.T) {
	r := newReceiver(t)
	for rule, environment := range map[string]map[string]string{
		"no endpoint":                 {"OTEL_METRICS_EXPORTER": "otlp"},
		"the SDK is disabled":         {"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_SDK_DISABLED": "True"},
		"no exporter":                 {"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_METRICS_EXPORTER": "none"},
		"an exporter that we are not": {"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_METRICS_EXPORTER": "prometheus"},
	} {
		t.Run(rule, func(t *testing.T) {
			var log bytes.Buffer
			start(t, environment, &log)(t.Context())
			if len(r.requests) > 0 || log.Len() > 0 {
				t.Errorf("%d requests, and it logged %s", len(r.requests), &log)
			}
		})
	}
}

func TestAMistakeIsSaidWithoutItsSecret(t *testing.T) {
	noPEM := filepath.Join(t.TempDir(), secret)
	testworld.Must(t, os.WriteFile(noPEM, []byte(secret), 0o600))
	for _, c := range []struct{ rule, name, value, says string }{
		{"gRPC", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "is grpc; allowed is http/protobuf"},
		{"an address without its scheme", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "collector:4318/" + secret, "is no address"},
		{"an address that cannot be read", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://a:" + secret + "@%zz", "is no address"},
		{"headers without names", "OTEL_EXPORTER_OTLP_HEADERS", secret, "parse headers"},
		{"headers of another line", "OTEL_EXPORTER_OTLP_HEADERS", "a=" + secret + "%0D%0Ab: c", "invalid header field value"},
		{"a timeout in words", "OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "parse duration"},
		{"no certificate", "OTEL_EXPORTER_OTLP_CERTIFICATE", noPEM, "create tls cert pool"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var log bytes.Buffer
			start(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", c.name: c.value}, &log)(t.Context())
			if !strings.Contains(log.String(), c.says) || strings.Contains(log.String(), secret) {
				t.Errorf("it logged %s", &log)
			}
		})
	}
}

func TestAPushThatFailsIsSaidOnceAndWithoutSecrets(t *testing.T) {
	accepts := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/x-protobuf") }
	for _, c := range []struct {
		rule    string
		answers [][]func(http.ResponseWriter) // to each of three pushes
		says    []string
	}{
		{"a collector that is busy is asked again", [][]func(http.ResponseWriter){{refuse(503), refuse(429), accepts}, {accepts}, {accepts}}, nil},
		{"one that refuses is not", [][]func(http.ResponseWriter){{refuse(401)}, {refuse(401)}, {accepts}}, []string{"the collector answers 401 Unauthorized", "metrics are pushed again"}},
		{"nor one that fails", [][]func(http.ResponseWriter){{refuse(500)}, {accepts}, {accepts}}, []string{"the collector answers 500", "metrics are pushed again"}},
		{"nothing follows a redirection, with the headers", [][]func(http.ResponseWriter){{func(w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}}, {accepts}, {accepts}}, []string{"redirects to another address", "metrics are pushed again"}},
		{"a collector takes a part", [][]func(http.ResponseWriter){{func(w http.ResponseWriter) {
			accepts(w)
			partial, err := proto.Marshal(&collector.ExportMetricsServiceResponse{PartialSuccess: &collector.ExportMetricsPartialSuccess{RejectedDataPoints: 3, ErrorMessage: "too old"}})
			testworld.Must(t, err)
			_, _ = w.Write(partial)
		}}, {accepts}, {accepts}}, []string{"too old (3 metric data points rejected)", "metrics are pushed again"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := newReceiver(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.Replace(r.URL, "http://", "http://user:"+secret+"@", 1)+"/"+secret)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key="+secret)
			var log bytes.Buffer
			e, err := newExporter(t.Context(), slog.New(slog.NewJSONHandler(&log, nil)))
			testworld.Must(t, err)
			for _, answers := range c.answers {
				r.answers = answers
				testworld.Must(t, e.Export(t.Context(), &metricdata.ResourceMetrics{}))
				if len(r.answers) > 0 {
					t.Errorf("%d answers were not asked for", len(r.answers))
				}
			}
			if lines := strings.Count(log.String(), "\n"); lines != len(c.says) {
				t.Errorf("%d lines, want %d", lines, len(c.says))
			}
			for _, says := range c.says {
				if !strings.Contains(log.String(), says) {
					t.Errorf("it does not say %q", says)
				}
			}
			if strings.Contains(log.String(), secret) {
				t.Error("a secret is in the log")
			}
			if t.Failed() {
				t.Logf("it logged %s", &log)
			}
		})
	}
}

func TestACollectorThatIsGoneIsSaidAndLetsTheProcessEnd(t *testing.T) {
	var log bytes.Buffer
	start(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:" + secret + "@127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=" + secret, "OTEL_EXPORTER_OTLP_TIMEOUT": "100",
	}, &log)(t.Context())
	if strings.Count(log.String(), "the collector cannot be reached") != 1 || strings.Contains(log.String(), secret) {
		t.Errorf("it logged %s", &log)
	}
}
