// Package cosmos reads an Azure Cosmos DB account: lease documents, partition key ranges, pages of the
// change feed, and provisioned throughput. Throughput is all that it ever writes
// (throughput.go).
//
// It knows the protocol and the service's errors. What they mean for a processor is for package
// estimator (docs/lag.md). azcosmos makes the requests that it can express, azcore's pipeline the others.
// Both send through one transport, a chain of small round trippers (docs/decisions/0001). Start with
// [Account], then read chain.go.
//
// The package is internal to the program: its API may change in any release.
package cosmos

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/cosmos/budget"
)

// Options say which account, and how to reach and spare it.
type Options struct {
	Endpoint    string                 // https://ACCOUNT.documents.azure.com:443/
	Setting     string                 // name of the setting it came from, for messages
	Key         string                 // base64 account key; "" = Credential
	Credential  azcore.TokenCredential // used if Key is ""
	Scope       string                 // of the token; "" = the account's own, then DefaultScope
	Concurrency int                    // requests in flight at once, at least 1
	Budget      float64                // request units a second to spend at most; 0 = unlimited
	Region      string                 // the Azure region to read from if the account is there; "" = wherever its endpoint leads
	Priority    string                 // of requests: Low or High, for accounts with priority-based execution; "" = the account's default
	Bucket      int                    // throughput bucket 1 to 5, for containers that have them; 0 = none
	Transport   policy.Transporter     // nil: one that keeps Concurrency connections open
}

// Account is one Cosmos DB account, safe for concurrent use. It makes requests with azcosmos if that can
// express them, with azcore's pipeline the others. Neither retries.
type Account struct {
	Budget *budget.Budget // of the pages of its feeds; those that it leaves out return ErrBudget

	describer
	identity *scopedCredential // nil if a key signs
	health   *health
	router   *router
	wire     *wire
	base     string
	sdk      *azcosmos.Client
	pipeline runtime.Pipeline
}

// NewAccount makes an Account. No request is made. It fails if the endpoint or the key is malformed, and
// never shows the key.
func NewAccount(o Options) (*Account, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("the account endpoint in setting %s is not an http or https URL", o.Setting)
	}
	if o.Transport == nil {
		o.Transport = transport{bounded.Answers(newHTTP(o.Concurrency))}
	}
	o.Endpoint = strings.TrimSuffix(o.Endpoint, "/")
	signs := &authorization{headers: headersOf(o)}
	policies := []policy.Policy{answerPolicy{signs}}
	a := &Account{base: o.Endpoint, wire: &wire{next: o.Transport}}
	a.describer = describer{host: u.Hostname(), setting: o.Setting, identity: o.Key == "", budget: o.Budget}
	if o.Key == "" {
		a.identity = &scopedCredential{o.Credential, []string{OwnScope(u), DefaultScope}}
		if o.Scope != "" {
			a.identity.scopes = []string{o.Scope}
		}
		policies = append(policies, runtime.NewBearerTokenPolicy(a.identity, nil, &policy.BearerTokenOptions{
			// A token goes in clear text to a stand-in on this machine, and nowhere else.
			InsecureAllowCredentialWithHTTP: a.host == "localhost" || net.ParseIP(a.host).IsLoopback(),
		}))
	} else if signs.key, err = base64.StdEncoding.DecodeString(o.Key); err != nil {
		return nil, fmt.Errorf("the account key in setting %s is not base64", o.Setting)
	}
	a.health = &health{breakers: make(map[Container]*breaker)}
	a.router = newRouter(&slots{next: a.wire, size: max(1, o.Concurrency), mu: &a.health.mu}, signs, o.Endpoint, o.Region)
	a.Budget = budget.New(o.Budget)
	a.health.next = pacer{a.router, a.Budget}
	options := azcore.ClientOptions{
		Telemetry: policy.TelemetryOptions{Disabled: true}, // the headers say who asks
		Retry:     policy.RetryOptions{MaxRetries: -1}, PerRetryPolicies: append([]policy.Policy{ownAccount{}}, policies...), Transport: a.health,
	}
	a.pipeline = runtime.NewPipeline("", "", runtime.PipelineOptions{PerCall: append(policies, sends{a.health})}, &policy.ClientOptions{Telemetry: options.Telemetry})
	noKey, err := azcosmos.NewKeyCredential("")
	if err == nil {
		a.sdk, err = azcosmos.NewClientWithKey(o.Endpoint, noKey, &azcosmos.ClientOptions{ClientOptions: options})
	}
	return a, err
}

// Host returns the host of the account's endpoint, without a port: what an application that uses the
// same endpoint puts into its lease ids.
func (a *Account) Host() string { return a.host }

// ErrBudget says that the account's RU budget left no time for a read.
var ErrBudget = budget.ErrNoTime

// Clock returns the time by the account's clock, as its last answer told; false if there was none.
func (a *Account) Clock() (time.Time, bool) {
	last := a.wire.last.Load()
	if last == nil {
		return time.Time{}, false
	}
	date, err := http.ParseTime(last.date)
	return date.Add(time.Since(last.seen)), err == nil
}

// Identity returns what gets the tokens that requests to the account carry, and the scope that it asks for
// first, whichever it is asked for; nil and "" if a key signs.
func (a *Account) Identity() (credential azcore.TokenCredential, scope string) {
	if a.identity == nil {
		return nil, ""
	}
	return a.identity, a.identity.scopes[0]
}

// Container names a container of an account, by ids. In requests for throughput, one without an ID is
// the database itself.
type Container struct{ Database, ID string }

func (c Container) String() string { return c.Database + "/" + c.ID }

func (c Container) path() string {
	return "/dbs/" + url.PathEscape(c.Database) + "/colls/" + url.PathEscape(c.ID)
}

// Usage is what one call, or several, cost.
type Usage struct {
	Requests int           // HTTP requests made, retries included
	Charge   float64       // request units (RU), as the service reported them
	Delay    time.Duration // how long the RU budget made requests wait, summed over requests
}

// Add adds another Usage.
func (u *Usage) Add(o Usage) {
	u.Requests += o.Requests
	u.Charge += o.Charge
	u.Delay += o.Delay
}

// substatus is what tells answers of one status apart; 0 if there is none.
func substatus(r *http.Response) int {
	n, _ := strconv.Atoi(cmp.Or(r.Header.Get("X-Ms-Substatus"), "0")) // most have none, and an error of Atoi costs CPU
	return n
}

// sends is the last policy of the pipeline. Those of azcore's own that come after it would try again, trace,
// log, and read the body: the transport does or leaves each of these for both clients, and they take a
// quarter of the CPU of a page (docs/decisions/0022-speed.md).
type sends struct{ policy.Transporter }

func (s sends) Do(r *policy.Request) (*http.Response, error) { return s.Transporter.Do(r.Raw()) }

// ownAccount answers what azcosmos asks before its first request, beyond its caller's deadline, and again
// every five minutes: the regions of the account. It names none, so that azcosmos asks the endpoint. Regions
// are chosen by the router below, and a failure would be kept for five minutes.
type ownAccount struct{}

func (ownAccount) Do(request *policy.Request) (*http.Response, error) {
	r := request.Raw()
	if strings.Trim(r.URL.Path, "/") != "" {
		return request.Next()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// get sends a request that azcosmos cannot express.
func (a *Account) get(ctx context.Context, c *call, path string, headers http.Header) (*http.Response, error) {
	r, err := runtime.NewRequest(c.in(ctx), http.MethodGet, a.base+path)
	if err != nil {
		return nil, lostAnswer{err}
	}
	r.Raw().Header = headers
	return a.pipeline.Do(r)
}

// getJSON reads the answer into a value, and returns its headers.
func (a *Account) getJSON(ctx context.Context, c *call, path string, headers http.Header, into any) (http.Header, error) {
	response, err := a.get(ctx, c, path, headers)
	if err == nil && response.StatusCode == http.StatusOK {
		err = runtime.UnmarshalAsJSON(response, into)
	}
	if err != nil {
		return nil, a.failed(c, err)
	}
	return response.Header, nil
}
