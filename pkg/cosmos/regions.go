package cosmos

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
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
	failoverTimeout     = 5 * time.Second // of a try there: a region that hangs must not cost the tick
	regionsTimeout      = 3 * time.Second // of reading the list, for which nothing else waits longer
)

// router sends a request to the first region that answers: while there is another region it is tried
// briefly, and in the last one patiently. If the account is in the region feedscale runs in, that one comes
// first, otherwise the account's own endpoint. One that fails is left out for avoidFailedFor
// (docs/decisions/0007-pace-and-regions.md).
type router struct {
	next     policy.Transporter
	headers  http.Header // of every request
	signs    *authorization
	own      string // regionName of the one that feedscale runs in; "" = unknown
	endpoint string // the account's own endpoint

	mu      sync.Mutex
	order   []string             // the endpoints, best first; never changed in place
	writes  string               // the endpoint of the region that takes writes
	learned time.Time            // when the regions were read last
	avoid   map[string]time.Time // until when an endpoint is left out
}

// location is one region in an account's description.
type location struct {
	Name     string `json:"name"`
	Endpoint string `json:"databaseAccountEndpoint"`
}

func newRouter(next policy.Transporter, endpoint, own string) *router {
	return &router{next: next, own: regionName(own), endpoint: endpoint, order: []string{endpoint}, writes: endpoint, avoid: make(map[string]time.Time)}
}

// route returns the endpoints to read from, best first and at least one: if all have failed, it returns all.
// The caller does not change it.
func (t *router) route(now time.Time) (reads []string, writes string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reads = t.order; len(t.avoid) > 0 {
		reads = slices.DeleteFunc(slices.Clone(reads), func(endpoint string) bool { return now.Before(t.avoid[endpoint]) })
	}
	if len(reads) == 0 {
		reads = t.order
	}
	return reads, t.writes
}

// regionName is a name without case and spaces: "West Europe" is "westeurope".
func regionName(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "")) }

// markFailed leaves an endpoint out for avoidFailedFor.
func (t *router) markFailed(endpoint string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.avoid[endpoint] = now.Add(avoidFailedFor)
}

// learn takes the regions from an account's description, without those that may not be asked. It ignores
// what is none.
func (t *router) learn(description []byte, now time.Time) {
	var account struct {
		Readable []location `json:"readableLocations"`
		Writable []location `json:"writableLocations"`
	}
	if json.Unmarshal(description, &account) != nil || len(account.Readable) == 0 {
		return
	}
	order := []string{t.endpoint}
	for _, l := range t.trusted(account.Readable) {
		switch {
		case l.Endpoint == t.endpoint:
		case t.own != "" && regionName(l.Name) == t.own:
			order = slices.Insert(order, 0, l.Endpoint)
		default:
			order = append(order, l.Endpoint)
		}
	}
	writable := append(t.trusted(account.Writable), location{Endpoint: t.endpoint})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order, t.learned = order, now
	t.writes = writable[0].Endpoint // as the SDKs (azure-cosmos-dotnet-v3, LocationCache.cs)
}

// azureDomain finds the domain of Azure's own endpoints, in every cloud.
var azureDomain = regexp.MustCompile(`(?i)\.((documents|cosmos)\.azure\.[a-z]+)$`)

// trusted returns the locations that may get signatures and tokens of the account (docs/security.md,
// Limits): with a scheme, a host and a port alone, not in clear unless the account is, and of Azure's domain
// if the account is. Their endpoints have no slash at the end.
func (t *router) trusted(locations []location) (trusted []location) {
	domain := func(u *url.URL) string { return strings.ToLower(azureDomain.FindString(u.Hostname())) }
	own, _ := url.Parse(t.endpoint) // NewAccount has parsed it
	for _, l := range locations {
		l.Endpoint = strings.TrimSuffix(l.Endpoint, "/")
		u, err := url.Parse(l.Endpoint)
		if err == nil && u.Hostname() != "" && l.Endpoint == u.Scheme+"://"+u.Host && (u.Scheme == "https" || u.Scheme == "http" && own.Scheme == "http") &&
			(domain(own) == "" || domain(u) == domain(own)) {
			trusted = append(trusted, l)
		}
	}
	return trusted
}

// stale reports whether the caller is to read the account's regions. It does so once per
// refreshRegionsAfter, to one caller.
func (t *router) stale(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.learned.IsZero() && now.Sub(t.learned) < refreshRegionsAfter {
		return false
	}
	t.learned = now
	return true
}

// guess returns the address that the account has in the region feedscale runs in, to be asked if its own
// endpoint does not answer. The SDKs build it alike (azure-cosmos-dotnet-v3, LocationHelper.cs). "" = the
// endpoint is none of Azure's, or no region is known.
func (t *router) guess() string {
	scheme, host, _ := strings.Cut(t.endpoint, "://")
	account, domain, _ := strings.Cut(host, ".")
	if t.own == "" || !strings.HasPrefix(domain, "documents.azure.") {
		return ""
	}
	return scheme + "://" + account + "-" + t.own + "." + domain
}

func (t *router) Do(r *http.Request) (*http.Response, error) {
	ctx, c := r.Context(), callOf(r.Context())
	now := time.Now()
	if t.stale(now) {
		t.readRegions(r, c)
	}
	route, writes := t.route(now)
	if c.primary {
		route = []string{writes}
	}
	for i := 0; ; i++ {
		endpoint, last := route[i], i == len(route)-1
		// Neither a signature nor a token covers the host.
		if scheme, host, _ := strings.Cut(endpoint, "://"); r.URL.Scheme != scheme || r.URL.Host != host {
			there := *r.URL
			there.Scheme, there.Host = scheme, host
			r.URL, r.Host = &there, ""
		}
		c.retries, c.timeout = failoverRetries, failoverTimeout
		if last {
			c.retries, c.timeout = retries, 0
		}
		response, err := t.next.Do(r)
		if last || ctx.Err() != nil || !regionFails(response, err) {
			return response, err
		}
		if response != nil {
			runtime.Drain(response)
		}
		t.markFailed(endpoint, time.Now())
	}
}

// readRegions reads the account's regions: from its own endpoint, and if that does not answer, which it
// may not while the write region is out of order, from the region feedscale runs in. A failure is
// ignored: then the endpoints that are known are used.
func (t *router) readRegions(asked *http.Request, of *call) {
	c := call{timeout: regionsTimeout, breaker: of.breaker}
	defer func() { of.Requests, of.Charge = of.Requests+c.Requests, of.Charge+c.Charge }()
	for _, endpoint := range []string{t.endpoint, t.guess()} {
		r, err := http.NewRequestWithContext(c.in(asked.Context()), http.MethodGet, endpoint+"/", nil)
		if endpoint == "" || err != nil {
			continue
		}
		maps.Copy(r.Header, t.headers)
		r.Header["Authorization"] = asked.Header["Authorization"] // a token is the same for every request
		t.signs.sign(r)
		response, err := t.next.Do(r)
		if err != nil || response.StatusCode != http.StatusOK {
			continue
		}
		if description, err := runtime.Payload(response); err == nil {
			t.learn(description, time.Now())
			return
		}
	}
}

// regionFails reports whether to fail over to another region: there was no answer, or it is an error of
// the region and not of the request.
func regionFails(response *http.Response, err error) bool {
	if err != nil {
		return true
	}
	switch response.StatusCode {
	case http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return true
	}
	return response.StatusCode == http.StatusForbidden && substatus(response) == substatusAccountNotFound
}
