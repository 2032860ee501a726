// Package cosmos reads what feedscale needs of an Azure Cosmos DB account: the leases in a
// container, the partition key ranges of another, and pages of its change feed. It never writes.
//
// It knows the protocol and turns a refusal into a message that says what to do. What an answer
// means for a processor is not its business: package estimator, its main user, decides that with
// package changefeed. Leases are queried with azcosmos; everything else goes through a pipeline of
// azcore, since azcosmos 1.5.0 cannot read a feed page from a lease's position during a split
// (docs/decisions/0001-two-clients-for-cosmos-db.md). Start with account.go.
//
// The package is internal to the program: its API may change in any release.
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
	// apiVersion is the x-ms-version that azcosmos 1.5.0 sends.
	apiVersion = "2020-11-05"
	// capabilities is the value of x-ms-cosmos-sdk-supportedcapabilities: the client understands
	// merged partitions (bit 0) and reading the change feed from a point in time after a merge (bit
	// 1). An account on which partitions may merge can refuse a client that does not say so
	// (azure-cosmos-dotnet-v3 pull request 3111, azure-sdk-for-go issue 26775).
	capabilities = "3"

	answerTimeout   = 10 * time.Second       // until the headers of an answer arrive, so that a lost answer does not use up the tick
	retries         = 4                      // after the first try, within the caller's deadline
	firstRetryDelay = 100 * time.Millisecond // doubles with each retry; a retry-after of the service wins
	maxRetryDelay   = 20 * time.Second       // a longer retry-after ends the retries
	statusRetryWith = 449                    // "Retry With": a conflict inside the service, safe to retry
	dialTimeout     = 5 * time.Second
	idleTimeout     = 90 * time.Second
)

// Options says which account and how to reach it.
type Options struct {
	Endpoint    string                 // https://ACCOUNT.documents.azure.com:443/
	Setting     string                 // name of the setting it came from, for messages
	Key         string                 // base64 account key; "" = Credential
	Credential  azcore.TokenCredential // used where Key is ""
	Concurrency int                    // most requests in flight at once; below 1 counts as 1
	Budget      float64                // most request units to spend per second, on average; 0 = unlimited
	Region      string                 // Azure region to read from, where the account has it; "" = the region behind Endpoint
	Transport   policy.Transporter     // nil: one that keeps up to Concurrency idle connections open
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
	sdk *azcosmos.Client // made on first use, and again after an error: azcosmos keeps a failed initialization for five minutes
}

// NewAccount makes an Account without making a request. It returns an error where the endpoint is
// no http or https URL or the key is not base64; the error names the setting and never shows the
// key.
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
		PerRetry: slices.Concat([]policy.Policy{policyFunc(setCommonHeaders)}, authentication, []policy.Policy{policyFunc(count)}),
	}, a.clientOptions())
	return a, nil
}

// Host returns the host of the account's endpoint, without a port: what an application that uses
// the same endpoint puts into its lease ids.
func (a *Account) Host() string { return a.host }

// Endpoint returns the URL of the account, without a trailing slash.
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
		RetryDelay:    firstRetryDelay,
		MaxRetryDelay: maxRetryDelay,
		ShouldRetry:   shouldRetry,
	}
}

// shouldRetry reports whether a request is tried again within the tick: after the answers that
// docs/lag.md (What each answer counts) lists as tried again, and after no answer.
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
	options.PerCallPolicies = []policy.Policy{policyFunc(withCallDeadline), policyFunc(a.pace.gate)}
	options.PerRetryPolicies = []policy.Policy{policyFunc(count), policyFunc(a.observeRegions)}
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

// forget drops the azcosmos client, so that the next use makes a new one.
func (a *Account) forget(c *azcosmos.Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sdk == c {
		a.sdk.Close()
		a.sdk = nil
	}
}

// newTransport keeps as many idle connections as there may be requests in flight, so that a tick
// reuses those of the last one.
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
