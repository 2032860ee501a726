package cosmos

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

const (
	avoidFailedFor      = time.Minute     // how long a region that failed is not asked
	refreshRegionsAfter = 5 * time.Minute // how long the list of regions is used before it is read again; the SDKs' interval
	failoverRetries     = 1               // retries in a region while there is another one to fail over to

	requestHeaders = 16 // initial capacity of a request's header map
)

// regions orders the endpoints that an account can be read at: its own and that of each readable
// region. Where the region feedscale runs in is known and the account has it, that one comes first,
// else the account's own endpoint. One that fails is left out for avoidFailedFor
// (docs/decisions/0007-pace-and-regions.md).
type regions struct {
	own       string // the region feedscale runs in; "" = unknown
	endpoint  string // the account's own endpoint
	mu        sync.Mutex
	locations []location
	learned   time.Time            // when locations was read last
	avoid     map[string]time.Time // until when an endpoint is left out
}

// location is one region in an account's description.
type location struct {
	Name     string `json:"name"`
	Endpoint string `json:"databaseAccountEndpoint"`
}

func newRegions(endpoint, own string) *regions {
	return &regions{own: own, endpoint: endpoint, avoid: make(map[string]time.Time)}
}

// route returns the endpoints to read from, best first and at least one: where all have failed, it
// returns them all.
func (r *regions) route(now time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var route []string
	for _, l := range r.locations {
		if sameRegion(l.Name, r.own) {
			route = append(route, l.Endpoint)
		}
	}
	route = append(route, r.endpoint)
	for _, l := range r.locations {
		if !slices.Contains(route, l.Endpoint) {
			route = append(route, l.Endpoint)
		}
	}
	usable := slices.DeleteFunc(slices.Clone(route), func(endpoint string) bool { return now.Before(r.avoid[endpoint]) })
	if len(usable) == 0 {
		return route
	}
	return usable
}

// sameRegion compares region names without case and spaces: "West Europe" is "westeurope". "" is no
// region.
func sameRegion(a, b string) bool {
	return b != "" && strings.EqualFold(strings.ReplaceAll(a, " ", ""), strings.ReplaceAll(b, " ", ""))
}

// markFailed leaves an endpoint out for avoidFailedFor.
func (r *regions) markFailed(endpoint string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.avoid[endpoint] = now.Add(avoidFailedFor)
}

// learn takes the readable regions from an account's description. What is no JSON is ignored.
func (r *regions) learn(description []byte, now time.Time) {
	var account struct {
		Readable []location `json:"readableLocations"`
	}
	if json.Unmarshal(description, &account) != nil {
		return
	}
	for i := range account.Readable {
		account.Readable[i].Endpoint = strings.TrimSuffix(account.Readable[i].Endpoint, "/")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.locations, r.learned = account.Readable, now
}

// stale reports whether the caller is to read the account's regions. It does so once per
// refreshRegionsAfter, to one caller, and never where the region feedscale runs in is unknown.
func (r *regions) stale(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == "" || now.Sub(r.learned) < refreshRegionsAfter {
		return false
	}
	r.learned = now
	return true
}

// observeRegions is the policy that takes the regions from the descriptions which azcosmos reads
// anyway.
func (a *Account) observeRegions(request *policy.Request) (*http.Response, error) {
	response, err := request.Next()
	if err == nil && response.StatusCode == http.StatusOK && strings.Trim(request.Raw().URL.Path, "/") == "" {
		if description, err := runtime.Payload(response); err == nil {
			a.regions.learn(description, time.Now())
		}
	}
	return response, err
}

// readRegions reads the account's regions. A failure is ignored: then the account's own endpoint is
// used.
func (a *Account) readRegions(ctx context.Context) {
	request, err := runtime.NewRequest(policy.WithRetryOptions(ctx, a.retryOptions(failoverRetries)), http.MethodGet, a.endpoint+"/")
	if err != nil {
		return
	}
	request.SetOperationValue(resource{})
	response, err := a.pipeline.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return
	}
	if description, err := runtime.Payload(response); err == nil {
		a.regions.learn(description, time.Now())
	}
}

// get reads a resource from the first region in route that answers. headers, where not nil, adds to
// the request's headers.
func (a *Account) get(ctx context.Context, path string, signed resource, headers func(http.Header)) (*http.Response, error) {
	if a.regions.stale(time.Now()) {
		a.readRegions(ctx)
	}
	route := a.regions.route(time.Now())
	for _, endpoint := range route[:len(route)-1] {
		failover := policy.WithRetryOptions(ctx, a.retryOptions(failoverRetries))
		response, err := a.getFrom(failover, endpoint, path, signed, headers)
		if ctx.Err() != nil || !regionFails(response, err) {
			return response, err
		}
		a.regions.markFailed(endpoint, time.Now())
	}
	return a.getFrom(ctx, route[len(route)-1], path, signed, headers)
}

func (a *Account) getFrom(ctx context.Context, endpoint, path string, signed resource, headers func(http.Header)) (*http.Response, error) {
	request, err := runtime.NewRequest(ctx, http.MethodGet, endpoint+path)
	if err != nil {
		return nil, err
	}
	request.Raw().Header = make(http.Header, requestHeaders)
	if headers != nil {
		headers(request.Raw().Header)
	}
	request.SetOperationValue(signed)
	return a.pipeline.Do(request)
}

// regionFails reports whether to fail over to another region: there was no answer, or it is an
// error of the region and not of the request.
func regionFails(response *http.Response, err error) bool {
	if err != nil {
		return true
	}
	switch response.StatusCode {
	case http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return true
	case http.StatusForbidden:
		return substatus(response) == substatusAccountNotFound
	default:
		return false
	}
}
