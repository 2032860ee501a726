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
	avoidFor     = time.Minute     // after which a region that was out of order is tried again
	learnedFor   = 5 * time.Minute // after which the account is asked for its regions again; the SDKs' interval
	hastyRetries = 1               // where another region can be asked instead

	requestHeaders = 16 // room for the headers of a request
)

// regions is where an account can be read: at its own endpoint and in each of
// its readable regions. Without a region of our own the account's endpoint is
// asked; with one, the account's endpoint there. Where that is out of order
// another one is asked, for a while.
type regions struct {
	own       string // the region feedscale runs in, "" = unknown
	endpoint  string // the account's own
	mu        sync.Mutex
	locations []location
	learned   time.Time
	avoid     map[string]time.Time // until when, by endpoint
}

// location is one region as an account describes it.
type location struct {
	Name     string `json:"name"`
	Endpoint string `json:"databaseAccountEndpoint"`
}

func newRegions(endpoint, own string) *regions {
	return &regions{own: own, endpoint: endpoint, avoid: make(map[string]time.Time)}
}

// route returns the endpoints to read from, best first, at least one.
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

// sameRegion compares names as people write them: West Europe is westeurope.
func sameRegion(a, b string) bool {
	return b != "" && strings.EqualFold(strings.ReplaceAll(a, " ", ""), strings.ReplaceAll(b, " ", ""))
}

// outOfOrder has an endpoint avoided for a while.
func (r *regions) outOfOrder(endpoint string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.avoid[endpoint] = now.Add(avoidFor)
}

// learn takes over what an account says of itself.
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

// stale tells, once in a while and to one caller only, that the account is to be
// asked for its regions.
func (r *regions) stale(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == "" || now.Sub(r.learned) < learnedFor {
		return false
	}
	r.learned = now
	return true
}

// overhear learns from what azcosmos asks the account anyway.
func (a *Account) overhear(request *policy.Request) (*http.Response, error) {
	response, err := request.Next()
	if err == nil && response.StatusCode == http.StatusOK && strings.Trim(request.Raw().URL.Path, "/") == "" {
		if description, err := runtime.Payload(response); err == nil {
			a.regions.learn(description, time.Now())
		}
	}
	return response, err
}

// discover asks the account for its regions. Where it does not say, its own
// endpoint does.
func (a *Account) discover(ctx context.Context) {
	request, err := runtime.NewRequest(policy.WithRetryOptions(ctx, a.retryOptions(hastyRetries)), http.MethodGet, a.endpoint+"/")
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

// get reads a resource from the best region that answers. headers adds to the
// request's own; nil adds none.
func (a *Account) get(ctx context.Context, path string, signed resource, headers func(http.Header)) (*http.Response, error) {
	if a.regions.stale(time.Now()) {
		a.discover(ctx)
	}
	route := a.regions.route(time.Now())
	for _, endpoint := range route[:len(route)-1] {
		hasty := policy.WithRetryOptions(ctx, a.retryOptions(hastyRetries))
		response, err := a.getFrom(hasty, endpoint, path, signed, headers)
		if ctx.Err() != nil || !regionFails(response, err) {
			return response, err
		}
		a.regions.outOfOrder(endpoint, time.Now())
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

// regionFails tells whether another region may do better.
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
