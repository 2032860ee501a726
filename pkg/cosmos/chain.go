package cosmos

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/tidwall/gjson"

	"github.com/feedscale/feedscale/pkg/cosmos/budget"
)

const (
	answerTimeout = 10 * time.Second // until an answer begins, so that one that is lost does not cost the tick
	dialTimeout   = 5 * time.Second
	idleTimeout   = 90 * time.Second

	// maxCharge is the most request units that an answer is believed to have cost: what a container may spend
	// in a second by default. A charge above it counts as none, as do one below 0 and one that is no number.
	maxCharge = 1e6
)

// The transport of an account is a chain of round trippers with one rule each. A request passes them in this
// order: health, pacer, router, slots, wire. Only what comes after slots is in flight.

// pacer has the pages of the feed wait for the RU budget. Lookups wait for nothing, and delay those.
type pacer struct {
	next   policy.Transporter
	budget *budget.Budget
}

func (p pacer) Do(r *http.Request) (response *http.Response, err error) {
	c, reserved := callOf(r.Context()), 0.0
	if c.feed {
		var waited time.Duration
		reserved, waited, err = p.budget.Reserve(r.Context())
		if c.Delay += waited; err != nil {
			return nil, err
		}
	}
	before := c.Charge
	response, err = p.next.Do(r)
	p.budget.Spend(reserved, c.Charge-before)
	return response, err
}

// headersOf returns the headers that every request carries. Many requests share their values: net/http does
// not change them.
func headersOf(o Options) http.Header {
	h := http.Header{
		"User-Agent":   {"feedscale"},
		"X-Ms-Version": {"2020-11-05"}, // which azcosmos 1.5.0 sends
		// The client understands merged partitions (bit 0) and change feeds from a point in time after a
		// merge (bit 1). An account that merged may refuse a client that does not. azcosmos says 1.
		"X-Ms-Cosmos-Sdk-Supportedcapabilities": {"3"},
		// Under a stronger consistency a read costs twice as much
		// (https://learn.microsoft.com/azure/cosmos-db/consistency-levels).
		"X-Ms-Consistency-Level": {"Eventual"},
	}
	if o.Priority != "" {
		h["X-Ms-Cosmos-Priority-Level"] = []string{o.Priority}
	}
	if o.Bucket > 0 {
		h["X-Ms-Cosmos-Throughput-Bucket"] = []string{strconv.Itoa(o.Bucket)}
	}
	return h
}

// wire sends a request, and counts it. It remembers the Date of the last answer, in whole seconds, and when
// that second was seen first.
type wire struct {
	next policy.Transporter
	last atomic.Pointer[sight]
}

type sight struct {
	date string
	seen time.Time
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	if r.GetBody != nil {
		r.Body, _ = r.GetBody() // a try that was given up may still read the one before
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok { // as azcore's policy writes it
		r.Header["Authorization"] = []string{"type=aad&ver=1.0&sig=" + token}
	}
	response, err := w.next.Do(r)
	c := callOf(r.Context())
	if c.Requests++; err != nil {
		return response, err
	}
	c.last = response
	if charge, err := strconv.ParseFloat(response.Header.Get("X-Ms-Request-Charge"), 64); err == nil && charge >= 0 && charge <= maxCharge {
		c.Charge += charge
	}
	if date, last := response.Header.Get("Date"), w.last.Load(); last == nil || last.date != date {
		w.last.Store(&sight{date, time.Now()})
	}
	return response, nil
}

// transport sends without http.Client, which copies every header for redirects and cookies. The service
// has neither.
type transport struct{ http.RoundTripper }

func (t transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

// newHTTP keeps as many connections open as requests may be in flight: a tick opens none that the last
// one had. One that is opened anew resumes the TLS session of an earlier one.
func newHTTP(concurrency int) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:       &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		MaxIdleConnsPerHost:   concurrency,
		IdleConnTimeout:       idleTimeout,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: answerTimeout,
	}
}

// call is what the transport needs to know of a request that is not in it, and what the call has cost so
// far. It travels in the context, since azcosmos hands over nothing else. Its requests are made one after
// the other.
type call struct {
	about Subject
	feed  bool   // a page of the feed, one for each lease: it waits for the budget, and is read as it comes
	part  string // partition key range id; "" = none
	byRID bool   // its path has RIDs in place of names

	Usage
	items []gjson.Result // of the list that was read last
	last  *http.Response // to the request, for the message if the deadline ends the retries; nil = none yet

	breaker *breaker      // of the container, or of the account if it is about none
	look    time.Duration // the most that a try may take, after which there is no other; 0 = no limit of its own
	limit   time.Duration // the most that a try may take in the region that is asked; 0 = as long as the caller has

	release func() // of the slot that it has until its page is read; nil if it has none
	cancel  func() // of its time, if that is limited; else nil
}

// end frees what the call holds until its page is read.
func (c *call) end() {
	for _, free := range []func(){c.release, c.cancel} {
		if free != nil {
			free()
		}
	}
	c.release, c.cancel = nil, nil
}

type callKey struct{}

// in returns a context whose requests belong to the call.
func (c *call) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call of a context. Requests without one are nobody's.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{breaker: &breaker{}}
}
