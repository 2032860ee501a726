package cosmos

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/bounded"
)

const (
	answerTimeout = 10 * time.Second // until an answer begins, so that one that is lost does not cost the tick
	dialTimeout   = 5 * time.Second
	idleTimeout   = 90 * time.Second
)

// chain is the transport of an account: round trippers with one rule each. A request passes them in this
// order. Only what comes after slots is in flight.
type chain struct {
	policy.Transporter
	health *health
	budget *budget
	slots  *slots
	clock  *serviceClock
}

func newChain(o Options, signs *authorization) chain {
	c := chain{health: newHealth(o.Now), clock: &serviceClock{}}
	c.slots = newSlots(wire{o.Transport, c.clock}, o.Concurrency)
	stamps := stamp{headers: stamps(o)}
	c.budget = newBudget(router{retry{c.slots, c.health}, newRegions(o.Endpoint, o.Region), stamps, signs, o.Now}, o.Budget)
	c.health.next = c.budget
	stamps.next = whole{c.health}
	c.Transporter = stamps
	return c
}

// wire sends a request, and counts it.
type wire struct {
	next  policy.Transporter
	clock *serviceClock
}

func (w wire) Do(r *http.Request) (*http.Response, error) {
	c := callOf(r.Context())
	if r.GetBody != nil {
		r.Body, _ = r.GetBody() // a try that was given up may still read the one before
	}
	response, err := w.next.Do(r)
	if c.count(response, err); err == nil {
		w.clock.see(response)
	}
	return response, err
}

// serviceClock remembers the Date of the last answer, in whole seconds, and when that second was seen first.
type serviceClock struct{ last atomic.Pointer[sight] }

type sight struct {
	text       string
	date, seen time.Time
}

func (c *serviceClock) see(r *http.Response) {
	text, last := r.Header.Get("Date"), c.last.Load()
	if last != nil && last.text == text {
		return
	}
	if date, err := http.ParseTime(text); err == nil {
		c.last.Store(&sight{text, date, time.Now()})
	}
}

// stamp sets the headers that every request carries, and keeps the body for each try.
type stamp struct {
	next    policy.Transporter
	headers http.Header
}

func (s stamp) Do(r *http.Request) (*http.Response, error) {
	s.set(r.Header)
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, lost{err}
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return s.next.Do(r)
}

func (s stamp) set(h http.Header) {
	for name, values := range s.headers {
		h[name] = values
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = userAgent
	}
}

const (
	// apiVersion is the version that azcosmos 1.5.0 sends.
	apiVersion = "2020-11-05"
	// capabilities says that the client understands merged partitions (bit 0) and change feeds from a
	// point in time after a merge (bit 1). An account that merged may refuse a client that does not.
	// azcosmos says 1.
	capabilities = "3"
)

// userAgent is shared by many requests: net/http does not change it.
var userAgent = []string{application}

func stamps(o Options) http.Header {
	h := http.Header{headerVersion: {apiVersion}, headerCapabilities: {capabilities}}
	if o.Priority != "" {
		h[headerPriority] = []string{o.Priority}
	}
	if o.Bucket > 0 {
		h[headerBucket] = []string{strconv.Itoa(o.Bucket)}
	}
	return h
}

// transport sends without http.Client, which copies every header for redirects and cookies. The service
// has neither.
type transport struct{ http.RoundTripper }

func (t transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

func newTransport(concurrency int) policy.Transporter {
	return transport{bounded.Answers(newHTTP(concurrency))}
}

// newHTTP keeps as many connections open as requests may be in flight: a tick opens none that the last
// one had. One that is opened anew resumes the TLS session of an earlier one.
func newHTTP(concurrency int) *http.Transport {
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

// ending is a body that does something when it is closed.
type ending struct {
	io.ReadCloser
	end func()
}

func (e ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}
