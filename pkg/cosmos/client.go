package cosmos

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Headers of the protocol, here and elsewhere in net/http's canonical form: it saves converting them for each
// request.
const (
	headerMaxItemCount = "X-Ms-Max-Item-Count"
	headerContinuation = "X-Ms-Continuation"
	headerIM           = "A-Im"
	headerETag         = "Etag"

	headersOfRequest = 14 // as many as a request has, so that their map need not grow
)

// client makes the requests of an account: with azcosmos those that it can express, with azcore's
// pipeline the others. Neither retries.
type client struct {
	describer
	base     string
	sdk      *azcosmos.Client
	pipeline runtime.Pipeline
}

func newClient(o Options, d describer, policies []policy.Policy, c policy.Transporter) (*client, error) {
	options := azcore.ClientOptions{
		Telemetry: policy.TelemetryOptions{Disabled: true}, // the headers say who asks
		Retry:     policy.RetryOptions{MaxRetries: -1}, PerRetryPolicies: policies, Transport: ownAccount{c},
	}
	pipeline := runtime.NewPipeline("", "", runtime.PipelineOptions{PerCall: append(slices.Clip(policies), sends{c})}, &policy.ClientOptions{Telemetry: options.Telemetry})
	noKey, err := azcosmos.NewKeyCredential("")
	if err != nil {
		return nil, err
	}
	sdk, err := azcosmos.NewClientWithKey(o.Endpoint, noKey, &azcosmos.ClientOptions{ClientOptions: options})
	return &client{d, o.Endpoint, sdk, pipeline}, err
}

// sends is the last policy of the pipeline. Those of azcore's own that come after it would try again, trace,
// log, and read the body: the transport does or leaves each of these for both clients, and they take a
// quarter of the CPU of a page (docs/decisions/0022-speed.md).
type sends struct{ policy.Transporter }

func (s sends) Do(r *policy.Request) (*http.Response, error) { return s.Transporter.Do(r.Raw()) }

// ownAccount answers what azcosmos asks before its first request, beyond its caller's deadline, and again
// every five minutes: the regions of the account. It names none, so that azcosmos asks the endpoint. Regions
// are chosen by the router below, and a failure would be kept for five minutes.
type ownAccount struct{ policy.Transporter }

func (t ownAccount) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "" && r.URL.Path != "/" {
		return t.Transporter.Do(r)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// get sends a request that azcosmos cannot express.
func (a *client) get(ctx context.Context, c *call, path string, headers func(http.Header)) (*http.Response, error) {
	r, err := runtime.NewRequest(c.in(ctx), http.MethodGet, a.base+path)
	if err != nil {
		return nil, lost{err}
	}
	r.Raw().Header = make(http.Header, headersOfRequest)
	if headers != nil {
		headers(r.Raw().Header)
	}
	return a.pipeline.Do(r)
}

// getJSON reads the answer into a value, and returns its headers.
func (a *client) getJSON(ctx context.Context, c *call, path string, headers func(http.Header), into any) (http.Header, error) {
	response, err := a.get(ctx, c, path, headers)
	if err == nil && response.StatusCode == http.StatusOK {
		err = runtime.UnmarshalAsJSON(response, into)
	}
	if err != nil {
		return nil, a.failed(c, err)
	}
	return response.Header, nil
}
