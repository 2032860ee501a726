package cosmos

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand" // rather than v2: a simulation sets its seed
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/tidwall/gjson"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	avoidFailedFor      = time.Minute            // how long a region that failed is not asked
	refreshRegionsAfter = 5 * time.Minute        // how long the list of regions is used before it is read again; the SDKs' interval
	failoverTimeout     = 5 * time.Second        // of a try there: a region that hangs must not cost the tick
	regionsTimeout      = 3 * time.Second        // of reading the list, for which nothing else waits longer
	retries             = 4                      // in a region after the first try, within the caller's deadline
	firstDelay          = 100 * time.Millisecond // doubles with each retry; a retry-after of the service wins
	longestDelay        = 20 * time.Second       // a longer retry-after is not waited for
)

// router sends a request to the first region that answers: while there is another region it is tried
// briefly, and in the last one patiently. If the account is in the region feedscale runs in, that one comes
// first, otherwise the account's own endpoint. One that fails is left out for avoidFailedFor
// (docs/decisions/0007-pace-and-regions.md).
type router struct {
	next     policy.Transporter
	signs    *authorization
	own      string // regionName of the one that feedscale runs in; "" = unknown
	endpoint string // the account's own endpoint

	mu      sync.Mutex
	order   []string             // the endpoints, best first; never changed in place
	writes  string               // the endpoint of the region that takes writes
	learned time.Time            // when the regions were read last
	missing string               // says that the account is not in the own region; "" if it is, or is not known to be elsewhere
	avoid   map[string]time.Time // until when an endpoint is left out
}

func newRouter(next policy.Transporter, signs *authorization, endpoint, own string) *router {
	return &router{next: next, signs: signs, own: regionName(own), endpoint: endpoint, order: []string{endpoint}, writes: endpoint, avoid: make(map[string]time.Time)}
}

// regionName is a name without case and spaces: "West Europe" is "westeurope".
func regionName(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "")) }

// route returns the endpoints to read from, best first and at least one: if all have failed, it returns all.
// The caller does not change it.
func (t *router) route(now time.Time) (reads []string, writes string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reads = slices.DeleteFunc(slices.Clone(t.order), func(endpoint string) bool { return now.Before(t.avoid[endpoint]) })
	if len(reads) == 0 {
		reads = t.order
	}
	return reads, t.writes
}

// markFailed leaves an endpoint out for avoidFailedFor.
func (t *router) markFailed(endpoint string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.avoid[endpoint] = now.Add(avoidFailedFor)
}

// location is one region in an account's description.
type location struct{ name, endpoint string }

// learn takes the regions from an account's description, without those that may not be asked. It ignores
// what is none.
func (t *router) learn(description []byte) {
	readable, writable := t.trusted(description, "readableLocations"), t.trusted(description, "writableLocations")
	if len(readable) == 0 {
		return
	}
	order, names, missing := []string{t.endpoint}, []string(nil), t.own != ""
	for _, l := range readable {
		mine := t.own != "" && regionName(l.name) == t.own
		names, missing = append(names, l.name), missing && !mine
		switch {
		case l.endpoint == t.endpoint:
		case mine:
			order = slices.Insert(order, 0, l.endpoint)
		default:
			order = append(order, l.endpoint)
		}
	}
	writable = append(writable, location{endpoint: t.endpoint})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order, t.missing = order, ""
	t.writes = writable[0].endpoint // as the SDKs (azure-cosmos-dotnet-v3, LocationCache.cs)
	if missing {
		t.missing = fmt.Sprintf("the account has no region %q: it has %q", t.own, names)
	}
}

// azureDomain finds the domain of Azure's own endpoints, in every cloud.
var azureDomain = regexp.MustCompile(`(?i)\.((documents|cosmos)\.azure\.[a-z]+)$`)

// trusted returns those in a list of an account's description that may get signatures and tokens of the account
// (docs/security.md, Limits): with a scheme, a host and a port alone, not in clear unless the account is, and of
// Azure's domain if the account is. Their endpoints have no slash at the end.
func (t *router) trusted(description []byte, list string) (trusted []location) {
	domain := func(u *url.URL) string { return strings.ToLower(azureDomain.FindString(u.Hostname())) }
	own, _ := url.Parse(t.endpoint) // NewAccount has parsed it
	for _, found := range gjson.GetBytes(description, list).Array() {
		l := location{found.Get("name").Str, strings.TrimSuffix(found.Get("databaseAccountEndpoint").Str, "/")}
		u, err := url.Parse(l.endpoint)
		if err == nil && u.Hostname() != "" && l.endpoint == u.Scheme+"://"+u.Host && (u.Scheme == "https" || u.Scheme == "http" && own.Scheme == "http") &&
			(domain(own) == "" || domain(u) == domain(own)) {
			trusted = append(trusted, l)
		}
	}
	return trusted
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

// readRegions reads the account's regions, once per refreshRegionsAfter: from its own endpoint, and if that
// does not answer, as while the write region is out of order, from the region feedscale runs in. A failure is
// ignored: then the endpoints that are known are used.
func (t *router) readRegions(asked *http.Request, of *call, now time.Time) {
	t.mu.Lock()
	stale := t.learned.IsZero() || now.Sub(t.learned) >= refreshRegionsAfter
	if stale {
		t.learned = now
	}
	t.mu.Unlock()
	if !stale {
		return
	}
	c := call{limit: regionsTimeout, breaker: of.breaker}
	defer func() { of.Add(c.Usage) }()
	for _, endpoint := range []string{t.endpoint, t.guess()} {
		r, err := http.NewRequestWithContext(c.in(asked.Context()), http.MethodGet, endpoint+"/", nil)
		if endpoint == "" || err != nil {
			continue
		}
		r.Header["Authorization"] = asked.Header["Authorization"] // a token is the same for every request
		t.signs.sign(r)
		response, err := t.next.Do(r)
		if err != nil || response.StatusCode != http.StatusOK {
			continue
		}
		if description, err := runtime.Payload(response); err == nil {
			t.learn(description)
			return
		}
	}
}

// Do asks the regions in turn, and tries again in one that answers, or in the last one, as docs/lag.md says: within
// the tick, and as the service asks. azcore and azcosmos retry nothing.
func (t *router) Do(r *http.Request) (*http.Response, error) {
	c, now := callOf(r.Context()), time.Now()
	t.readRegions(r, c, now)
	route, writes := t.route(now)
	if c.about.Doing != "" { // throughput, of which another region may tell what was there before
		route = []string{writes}
	}
	for try := 0; ; {
		// Neither a signature nor a token covers the host.
		if scheme, host, _ := strings.Cut(route[0], "://"); r.URL.Scheme != scheme || r.URL.Host != host {
			there := *r.URL
			there.Scheme, there.Host = scheme, host
			r.URL, r.Host = &there, ""
		}
		last := len(route) == 1
		if c.limit = c.look; !last {
			c.limit = min(cmp.Or(c.look, failoverTimeout), failoverTimeout)
		}
		response, err := t.next.Do(r)
		if ended := r.Context().Err(); ended != nil && err != nil {
			return nil, ended
		}
		delay, again := c.retry(try, response, err)
		switch {
		case !last && (err != nil || regionFails(response)):
			t.markFailed(route[0], time.Now())
			route, try, delay = route[1:], 0, 0
		case !again:
			return response, err
		default:
			try++
		}
		if response != nil {
			runtime.Drain(response)
		}
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// retry reports whether a request is worth another try after so many, and how long to wait before it.
func (c *call) retry(retried int, response *http.Response, err error) (delay time.Duration, again bool) {
	if err != nil {
		late, _ := errors.AsType[net.Error](err)
		again = retriable(err) && !(c.feed && late != nil && late.Timeout())
	} else if changefeed.OutcomeOf(response.StatusCode, substatus(response)) == changefeed.Transient {
		delay, again = retryAfter(response), true
	}
	if !again || retried == retries || c.look > 0 {
		return 0, false
	}
	delay = cmp.Or(delay, time.Duration((0.8+rand.Float64()/2)*float64(firstDelay<<(retried+1)-firstDelay)))
	return delay, delay <= longestDelay
}

// retryAfter returns how long the service asks to wait, 0 if it does not say. Cosmos DB says it in
// milliseconds, a proxy in seconds.
func retryAfter(response *http.Response) time.Duration {
	if n, err := strconv.Atoi(response.Header.Get("X-Ms-Retry-After-Ms")); err == nil && n > 0 {
		return time.Duration(n) * time.Millisecond
	}
	n, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(n) * time.Second
}

// regionFails reports whether an answer is an error of its region and not of the request.
func regionFails(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return true
	}
	return answer.StatusCode == http.StatusForbidden && substatus(answer) == substatusAccountNotFound
}
