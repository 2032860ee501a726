// Package cosmos reads an Azure Cosmos DB account: lease documents, partition key ranges, pages of the
// change feed, and the throughput that containers are provisioned with. That throughput is all that it
// ever writes (throughput.go with a key, manager.go with an identity).
//
// It knows the protocol and the service's errors, and not what they mean for a processor, which is for
// package estimator (docs/lag.md). All of it is sent by one function of our own, since azcosmos 1.5.0
// can neither read a feed page from a lease's position nor query while the write region is down
// (docs/decisions/0001), and azcore's pipeline doubles what a request takes (0022). Start with [Account]; regions.go has the failover, pace.go the RU budget,
// breaker.go what happens to an account that does not answer.
//
// The package is internal to the program: its API may change in any release.
package cosmos

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	// apiVersion is the version that azcosmos 1.5.0 sends.
	apiVersion = "2020-11-05"
	// capabilities says that the client understands merged partitions (bit 0) and change feeds from a
	// point in time after a merge (bit 1): an account that merged may refuse a client that does not.
	capabilities = "3"

	answerTimeout = 10 * time.Second       // until an answer begins, so that one that is lost does not cost the tick
	retries       = 4                      // after the first try, within the caller's deadline
	firstDelay    = 100 * time.Millisecond // doubles with each retry; a retry-after of the service wins
	longestDelay  = 20 * time.Second       // a longer retry-after is not waited for
	dialTimeout   = 5 * time.Second
	idleTimeout   = 90 * time.Second
)

// Options say which account, and how to reach and spare it.
type Options struct {
	Endpoint    string                 // https://ACCOUNT.documents.azure.com:443/
	Setting     string                 // name of the setting it came from, for messages
	Key         string                 // base64 account key; "" = Credential
	Credential  azcore.TokenCredential // used where Key is ""
	Scope       string                 // of the token; "" = the account's own, then DefaultScope
	Concurrency int                    // requests in flight at once, at least 1
	Budget      float64                // request units a second to spend at most; 0 = unlimited
	Region      string                 // the Azure region to read from where the account is there; "" = wherever its endpoint leads
	Priority    Priority               // of requests, for accounts with priority-based execution; "" = the account's default
	Bucket      int                    // throughput bucket 1 to 5, for containers that have them; 0 = none
	Transport   policy.Transporter     // nil: one that keeps Concurrency connections open
	Now         func() time.Time       // nil = time.Now
}

// Priority is the level of priority-based execution
// (https://learn.microsoft.com/azure/cosmos-db/priority-based-execution).
type Priority string

// The levels.
const (
	PriorityLow  Priority = "Low"
	PriorityHigh Priority = "High"
)

// Account is one Cosmos DB account, safe for concurrent use.
type Account struct {
	options  Options
	endpoint string // without a trailing slash
	host     string
	pace     *pace
	breaker  *breaker
	regions  *regions
	identity *scoped // nil where a key signs
	signer   *signer // nil where an identity does
	bearer   *bearer // nil where a key signs
	dates    dates
	stamped  http.Header // what every request carries
	offers   sync.Map    // links of the offers that were found, by Container
}

// NewAccount makes an Account. No request is made; it fails where the endpoint or the key is
// malformed, and never shows the key.
func NewAccount(o Options) (*Account, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("the account endpoint in setting %s is not an http or https URL", o.Setting)
	}
	if o.Transport == nil {
		o.Transport = transport{bounded.Answers(newTransport(o.Concurrency))}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	endpoint := strings.TrimSuffix(o.Endpoint, "/")
	a := &Account{
		options: o, endpoint: endpoint, host: u.Hostname(),
		pace: newPace(o.Budget, max(1, o.Concurrency)), breaker: newBreaker(), regions: newRegions(endpoint, o.Region),
	}
	if o.Key == "" {
		a.identity = newScoped(o, u)
	}
	if a.identity != nil {
		a.bearer = newBearer(a.identity, u)
	} else {
		key, err := base64.StdEncoding.DecodeString(o.Key)
		if err != nil {
			return nil, fmt.Errorf("the account key in setting %s is not base64", o.Setting)
		}
		a.signer = newSigner(key)
	}
	a.options.Key = "" // the signer alone has it: printing an Account shows no key
	a.stamped = stamps(o)
	return a, nil
}

// Host returns the host of the account's endpoint, without a port: what an application that uses the
// same endpoint puts into its lease ids.
func (a *Account) Host() string { return a.host }

// ShareBudget says how many processes read from the account at once: each spends its part of the budget.
func (a *Account) ShareBudget(among int) { a.pace.among.Store(int64(among)) }

// Endpoint returns the URL of the account.
func (a *Account) Endpoint() string { return a.endpoint }

// Scope returns what a token for the account is asked for first; "" where a key signs.
func (a *Account) Scope() string {
	if a.identity == nil {
		return ""
	}
	return a.identity.own
}

// Credential returns what gets the tokens that requests to the account carry; nil where a key signs.
// It decides on the scope itself, whichever it is asked for.
func (a *Account) Credential() azcore.TokenCredential {
	if a.identity == nil {
		return nil
	}
	return a.identity
}

// shouldRetry retries what docs/lag.md says is retried within the tick.
func shouldRetry(response *http.Response, err error) bool {
	if err != nil {
		return retriable(err)
	}
	return changefeed.OutcomeOf(response.StatusCode, substatus(response)) == changefeed.Transient
}

// transport is a Transporter that follows no redirect and keeps no cookie, of which the service has none:
// http.Client copies every header for these.
type transport struct{ http.RoundTripper }

func (t transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

// newTransport keeps as many connections open as requests may be in flight: a tick opens none that
// the last one had. One that is opened anew resumes the TLS session of an earlier one.
func newTransport(concurrency int) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		MaxIdleConnsPerHost:   concurrency,
		IdleConnTimeout:       idleTimeout,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: answerTimeout,
	}
}
