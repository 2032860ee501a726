package cosmos

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// policyFunc adapts a function to the policy interface of azcore.
type policyFunc func(*policy.Request) (*http.Response, error)

func (f policyFunc) Do(r *policy.Request) (*http.Response, error) { return f(r) }

// stamp sets the headers that every request carries. The date is set again for each try.
func (a *Account) stamp(r *policy.Request) (*http.Response, error) {
	h := r.Raw().Header
	h.Set(headerVersion, apiVersion)
	h.Set(headerDate, a.options.Now().UTC().Format(http.TimeFormat))
	h.Set(headerCapabilities, capabilities)
	if a.regions.readsAreDear() {
		h.Set(headerConsistency, "Eventual")
	}
	if a.options.Priority != "" {
		h.Set(headerPriority, string(a.options.Priority))
	}
	if a.options.Bucket > 0 {
		h.Set(headerBucket, strconv.Itoa(a.options.Bucket))
	}
	return r.Next()
}

// authenticate returns the policies that authenticate each try: with the account key, or with a
// token of the identity.
func (a *Account) authenticate(endpoint *url.URL) ([]policy.Policy, error) {
	if a.identity == nil {
		key, err := base64.StdEncoding.DecodeString(a.options.Key)
		if err != nil {
			return nil, fmt.Errorf("the account key in setting %s is not base64", a.options.Setting)
		}
		return []policy.Policy{policyFunc(signer(key))}, nil
	}
	bearer := runtime.NewBearerTokenPolicy(a.identity, []string{""}, &policy.BearerTokenOptions{
		// A token in clear text may go to a stand-in on this machine, nowhere else.
		InsecureAllowCredentialWithHTTP: isLoopback(endpoint.Hostname()),
	})
	return []policy.Policy{bearer, policyFunc(formatToken)}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// resource is the part of a request that a signature by account key covers besides verb and date.
type resource struct{ kind, link string }

// signer returns the policy that signs with an account key: the HMAC-SHA256 of verb, resource type,
// resource link and date, each on a line of its own
// (https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources).
func signer(key []byte) func(*policy.Request) (*http.Response, error) {
	macs := sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}
	return func(r *policy.Request) (*http.Response, error) {
		var signed resource
		r.OperationValue(&signed)
		raw := r.Raw()
		mac := macs.Get().(hash.Hash)
		mac.Reset()
		io.WriteString(mac, strings.ToLower(raw.Method)+"\n"+signed.kind+"\n"+signed.link+"\n"+strings.ToLower(raw.Header.Get(headerDate))+"\n\n")
		signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
		macs.Put(mac)
		raw.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+signature))
		return r.Next()
	}
}

// formatToken rewrites the bearer token that azcore set into the form that Cosmos DB expects.
func formatToken(r *policy.Request) (*http.Response, error) {
	h := r.Raw().Header
	h.Set("Authorization", "type=aad&ver=1.0&sig="+strings.TrimPrefix(h.Get("Authorization"), "Bearer "))
	return r.Next()
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

// tallyKey is the context key of a call's tally.
type tallyKey struct{}

// tally adds up the tries of one call, of which a pipeline shows the caller only the last. A try that
// timed out may still end while the next is made: hence the mutex.
type tally struct {
	mu sync.Mutex
	Usage
	status, substatus int // of the last answer, for the message where the deadline ends the retries
	throttled         int // answers with status 429
	answered          int // answers that are no failure of a region
}

// spent returns what the call has cost so far.
func (t *tally) spent() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Usage
}

// add adds what another call has cost.
func (t *tally) add(o Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Usage.Add(o)
}

// throttles returns how many answers with status 429 the call has had so far.
func (t *tally) throttles() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.throttled
}

// answers returns how many answers the call has had so far that are no failure of a region.
func (t *tally) answers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answered
}

// last returns the status and substatus of the last answer, zero where there was none.
func (t *tally) last() (status, substatus int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.substatus
}

// delay adds time that the budget made the call wait.
func (t *tally) delay(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Delay += d
}

// count is the policy that adds each try to the tally of its call.
func count(r *policy.Request) (*http.Response, error) {
	t, _ := r.Raw().Context().Value(tallyKey{}).(*tally)
	if t == nil {
		return r.Next()
	}
	response, err := r.Next()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Requests++
	if err == nil {
		t.status, t.substatus = response.StatusCode, substatus(response)
		if response.StatusCode == http.StatusTooManyRequests {
			t.throttled++
		}
		if !regionFails(response, nil) {
			t.answered++
		}
		if charge, err := strconv.ParseFloat(response.Header.Get(headerCharge), 64); err == nil {
			t.Charge += charge
		}
	}
	return response, err
}

func substatus(r *http.Response) int {
	n, _ := strconv.Atoi(r.Header.Get(headerSubstatus))
	return n
}
