// Package cosmos reads what feedscale needs of an Azure Cosmos DB account: the
// leases in a container, the partition key ranges of another, and pages of its
// change feed. It never writes.
//
// It knows the protocol and the answers' errors, not what they mean for a
// processor: that is for estimator, which alone uses it beside the wiring.
// Leases are queried with azcosmos; the rest goes through a pipeline of
// azcore, since azcosmos 1.5.0 cannot read a feed page from a lease's position
// during a split (docs/decisions/0001). Start with account.go.
package cosmos

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	// apiVersion is the version azcosmos 1.5.0 speaks.
	apiVersion = "2020-11-05"
	// capabilities says that the client understands merged partitions (bit 0)
	// and change feeds from a point in time after a merge (bit 1): an account
	// that merged refuses a client that does not.
	capabilities = "3"

	answerTimeout = 10 * time.Second       // until an answer begins, so that one that is lost does not cost the tick
	retries       = 4                      // after the first try, within the caller's deadline
	firstDelay    = 100 * time.Millisecond // doubles with each retry; a retry-after of the service wins
	longestDelay  = 20 * time.Second       // a longer retry-after is not waited for
	retryWith     = 449                    // "retry with", a conflict inside the service
	dialTimeout   = 5 * time.Second
	idleTimeout   = 90 * time.Second
)

// Options says which account and how to reach it.
type Options struct {
	Endpoint    string                 // https://ACCOUNT.documents.azure.com:443/
	Setting     string                 // name of the setting it came from, for messages
	Key         string                 // base64 account key; "" = Credential
	Credential  azcore.TokenCredential // used where Key is ""
	Concurrency int                    // requests under way at once, at least 1
	Budget      float64                // request units a second to spend at most; 0 = unlimited
	Region      string                 // the Azure region to read from where the account is there; "" = wherever its endpoint leads
	Transport   policy.Transporter     // nil: one that keeps Concurrency connections open
}

// Account is one Cosmos DB account, safe for concurrent use.
type Account struct {
	options  Options
	endpoint string // without a trailing slash
	host     string
	pace     *pace
	regions  *regions
	pipeline runtime.Pipeline

	mu  sync.Mutex
	sdk *azcosmos.Client // made on first use, and anew after a failed start: it remembers one for five minutes
}

// NewAccount makes an Account. No request is made; it fails where the endpoint
// or the key is malformed, and never shows the key.
func NewAccount(o Options) (*Account, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("the account endpoint in setting %s is not an http or https URL", o.Setting)
	}
	if o.Transport == nil {
		o.Transport = newTransport(o.Concurrency)
	}
	endpoint := strings.TrimSuffix(o.Endpoint, "/")
	a := &Account{
		options: o, endpoint: endpoint, host: u.Hostname(),
		pace: newPace(o.Budget, max(1, o.Concurrency)), regions: newRegions(endpoint, o.Region),
	}
	authentication, err := authenticate(o, u)
	if err != nil {
		return nil, err
	}
	a.pipeline = runtime.NewPipeline("feedscale", "v1", runtime.PipelineOptions{
		PerCall:  []policy.Policy{policyFunc(a.pace.gate)},
		PerRetry: slices.Concat([]policy.Policy{policyFunc(stamp)}, authentication, []policy.Policy{policyFunc(count)}),
	}, a.clientOptions())
	return a, nil
}

// Host returns the host of the account's endpoint, without a port: what an
// application that uses the same endpoint puts into its lease ids.
func (a *Account) Host() string { return a.host }

// Endpoint returns the URL of the account.
func (a *Account) Endpoint() string { return a.endpoint }

func (a *Account) clientOptions() *policy.ClientOptions {
	return &policy.ClientOptions{
		Transport: a.options.Transport,
		Telemetry: policy.TelemetryOptions{ApplicationID: "feedscale"},
		Retry:     a.retryOptions(retries),
	}
}

func (a *Account) retryOptions(retries int32) policy.RetryOptions {
	return policy.RetryOptions{
		MaxRetries:    retries,
		RetryDelay:    firstDelay,
		MaxRetryDelay: longestDelay,
		ShouldRetry:   shouldRetry,
	}
}

// shouldRetry retries what DESIGN 6 says is retried within the tick.
func shouldRetry(response *http.Response, err error) bool {
	if err != nil {
		return retriable(err)
	}
	return changefeed.OutcomeOf(response.StatusCode, substatus(response)) == changefeed.Transient
}

// client returns the azcosmos client of the account.
func (a *Account) client() (*azcosmos.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sdk != nil {
		return a.sdk, nil
	}
	options := &azcosmos.ClientOptions{ClientOptions: *a.clientOptions()}
	options.PerCallPolicies = []policy.Policy{policyFunc(withinCall), policyFunc(a.pace.gate)}
	options.PerRetryPolicies = []policy.Policy{policyFunc(count), policyFunc(a.overhear)}
	var err error
	if a.options.Key != "" {
		var key azcosmos.KeyCredential
		if key, err = azcosmos.NewKeyCredential(a.options.Key); err == nil {
			a.sdk, err = azcosmos.NewClientWithKey(a.options.Endpoint, key, options)
		}
	} else {
		a.sdk, err = azcosmos.NewClient(a.options.Endpoint, a.options.Credential, options)
	}
	if err != nil {
		return nil, fmt.Errorf("the client for account %s cannot be made: check the connection in setting %s", a.host, a.options.Setting)
	}
	return a.sdk, nil
}

// forget drops the azcosmos client, so that the next use starts afresh.
func (a *Account) forget(c *azcosmos.Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sdk == c {
		a.sdk.Close()
		a.sdk = nil
	}
}

// newTransport keeps as many connections open as requests may be under way: a
// tick opens none that the last one had.
func newTransport(concurrency int) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			MaxIdleConnsPerHost:   concurrency,
			IdleConnTimeout:       idleTimeout,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: answerTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
