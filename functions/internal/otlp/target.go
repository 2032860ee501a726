package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/bounded"
)

// target is where to push, and how: OpenTelemetry's variables
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/). Those of metrics win over the general ones.
type target struct {
	url     string // "" = nothing is pushed
	headers map[string]string
	gzip    bool
	timeout time.Duration // of one push, with its retries
	tls     *tls.Config
}

func targetOf(getenv func(string) string) (t target, err error) {
	of := func(name string) string {
		return cmp.Or(strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_METRICS_"+name)), strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_"+name)))
	}
	endpoint := of("ENDPOINT")
	exporter := cmp.Or(getenv("OTEL_METRICS_EXPORTER"), "otlp")
	if endpoint == "" || exporter != "otlp" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return target{}, nil
	}
	if protocol := of("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return target{}, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; allowed is http/protobuf, at a collector's port 4318", protocol)
	}
	if t.url, err = address(endpoint, getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") == ""); err != nil {
		return target{}, err
	}
	if t.headers, err = headers(of("HEADERS")); err != nil {
		return target{}, err
	}
	milliseconds, err := strconv.Atoi(cmp.Or(of("TIMEOUT"), "10000"))
	if err != nil || milliseconds <= 0 {
		return target{}, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT is no number of milliseconds")
	}
	t.timeout = time.Duration(milliseconds) * time.Millisecond
	t.gzip = of("COMPRESSION") == "gzip"
	t.tls, err = certificates(of("CERTIFICATE"), of("CLIENT_CERTIFICATE"), of("CLIENT_KEY"))
	return t, err
}

// address is where metrics are taken at an endpoint. One of all signals is followed by a path for metrics.
// It may hold a password, so that no error repeats it.
func address(endpoint string, ofAll bool) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT is no address; allowed is, for example, https://collector.example:4318")
	}
	if ofAll {
		u = u.JoinPath("v1", "metrics")
	} else if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), nil
}

// headers reads name=value,name=value, in which values are percent-encoded. They may hold secrets, so that
// no error repeats one.
func headers(text string) (map[string]string, error) {
	found := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || strings.ContainsAny(value, "\r\n") {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value with percent-encoded values")
		}
		found[strings.TrimSpace(name)] = value
	}
	return found, nil
}

// certificates reads files in PEM: whom to trust, and what to show; "" = none.
func certificates(ca, certificate, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		c.RootCAs = x509.NewCertPool()
		if err != nil || !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE names no file with certificates in PEM")
		}
	}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY name no files with a certificate and its key in PEM")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// pipeline sends, and tries again what OTLP allows to try again
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp-response), when the answer says so.
func (t target) pipeline() runtime.Pipeline {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = t.tls
	return runtime.NewPipeline("feedscale", "", runtime.PipelineOptions{}, &policy.ClientOptions{
		Telemetry: policy.TelemetryOptions{Disabled: true},
		Transport: bounded.Client(transport),
		Retry: policy.RetryOptions{
			RetryDelay:  time.Second,
			StatusCodes: []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout},
		},
	})
}
