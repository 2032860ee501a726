package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// exporter sends what the SDK read. The SDK calls Export for one push at a time.
type exporter struct {
	target
	pipeline runtime.Pipeline
	log      *slog.Logger
	failed   bool // the last push
}

// Temporality implements metric.Exporter: what Prometheus counts is cumulative.
func (e *exporter) Temporality(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

// Aggregation implements metric.Exporter.
func (e *exporter) Aggregation(kind metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(kind)
}

// ForceFlush implements metric.Exporter: nothing is held back.
func (e *exporter) ForceFlush(context.Context) error { return nil }

// Shutdown implements metric.Exporter.
func (e *exporter) Shutdown(context.Context) error { return nil }

// Export sends everything. The log has one line when that begins to fail, and one when it works again.
func (e *exporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	err := e.send(ctx, &collector.ExportMetricsServiceRequest{ResourceMetrics: resourceMetrics(all)})
	switch {
	case err != nil && !e.failed:
		e.log.Warn("metrics cannot be pushed by OTLP: it is tried again at each interval", "error", err.Error())
	case err == nil && e.failed:
		e.log.Info("metrics are pushed again")
	}
	e.failed = err != nil
	return nil // said already
}

// send makes one push. No error names the address or a header, which may hold secrets.
func (e *exporter) send(ctx context.Context, message *collector.ExportMetricsServiceRequest) error {
	body, err := proto.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	request, err := runtime.NewRequest(ctx, http.MethodPost, e.url)
	if err != nil {
		return errors.New("the address of the collector cannot be used")
	}
	for name, value := range e.headers {
		request.Raw().Header.Set(name, value)
	}
	if e.gzip {
		request.Raw().Header.Set("Content-Encoding", "gzip")
		body = zipped(body)
	}
	if err := request.SetBody(streaming.NopCloser(bytes.NewReader(body)), "application/x-protobuf"); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	answer, err := e.pipeline.Do(request)
	if err != nil {
		var ofURL *url.Error
		if errors.As(err, &ofURL) {
			err = ofURL.Err
		}
		return fmt.Errorf("the collector cannot be reached: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", answer.Status)
	}
	var taken collector.ExportMetricsServiceResponse
	if err != nil || proto.Unmarshal(text, &taken) != nil {
		return errors.New("what answers is no collector")
	}
	if rejected := taken.GetPartialSuccess().GetRejectedDataPoints(); rejected > 0 {
		return fmt.Errorf("the collector rejects %d data points: %s", rejected, taken.GetPartialSuccess().GetErrorMessage())
	}
	return nil
}

func zipped(body []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}
