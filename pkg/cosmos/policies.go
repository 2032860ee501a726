package cosmos

import (
	"context"
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

// policyFunc is a function as a pipeline policy.
type policyFunc func(*policy.Request) (*http.Response, error)

func (f policyFunc) Do(r *policy.Request) (*http.Response, error) { return f(r) }

// stamp sets the headers every request carries, the date anew for each try.
func stamp(r *policy.Request) (*http.Response, error) {
	h := r.Raw().Header
	h.Set(headerVersion, apiVersion)
	h.Set(headerDate, time.Now().UTC().Format(http.TimeFormat))
	h.Set(headerCapabilities, capabilities)
	return r.Next()
}

// authenticate returns the policies that sign each try: with the key, or with a
// token of the identity.
func authenticate(o Options, endpoint *url.URL) ([]policy.Policy, error) {
	if o.Key != "" {
		key, err := base64.StdEncoding.DecodeString(o.Key)
		if err != nil {
			return nil, fmt.Errorf("the account key in setting %s is not base64", o.Setting)
		}
		return []policy.Policy{policyFunc(signer(key))}, nil
	}
	bearer := runtime.NewBearerTokenPolicy(o.Credential, []string{endpoint.Scheme + "://" + endpoint.Hostname() + "/.default"}, &policy.BearerTokenOptions{
		// A token in clear text may go to a stand-in on this machine, nowhere else.
		InsecureAllowCredentialWithHTTP: isLoopback(endpoint.Hostname()),
	})
	return []policy.Policy{bearer, policyFunc(spellToken)}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// resource is what a master key signature covers besides the verb and the date.
type resource struct{ kind, link string }

// signer signs with a master key: an HMAC over verb, resource type, resource
// link and date, each on a line of its own.
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

// spellToken turns the bearer token that azcore set into Cosmos DB's own form.
func spellToken(r *policy.Request) (*http.Response, error) {
	h := r.Raw().Header
	h.Set("Authorization", "type=aad&ver=1.0&sig="+strings.TrimPrefix(h.Get("Authorization"), "Bearer "))
	return r.Next()
}

// Usage is what requests cost.
type Usage struct {
	Requests int           // HTTP requests made, retries among them
	Charge   float64       // request units
	Delay    time.Duration // that the account's RU budget made requests wait
}

// Add adds another Usage.
func (u *Usage) Add(o Usage) {
	u.Requests += o.Requests
	u.Charge += o.Charge
	u.Delay += o.Delay
}

// caller is the context key under which a call keeps its own context.
type caller struct{}

// withinCall ends with the call what azcosmos does for it: it asks for the
// account's description without the caller's deadline, which would keep the
// tick waiting for an account that does not answer.
func withinCall(r *policy.Request) (*http.Response, error) {
	ctx := r.Raw().Context()
	call, _ := ctx.Value(caller{}).(context.Context)
	if call == nil {
		return r.Next()
	}
	deadline, ok := call.Deadline()
	if !ok {
		return r.Next()
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return r.WithContext(ctx).Next()
}

// meter is the context key under which a call keeps its tally.
type meter struct{}

// tally is what one call learns from its tries, of which a pipeline shows the
// caller only the last.
//
// azcosmos asks for the account's description now and then in the background,
// with the values of a call's context: hence the mutex.
type tally struct {
	mu sync.Mutex
	Usage
	status, substatus int // of the last answer, for the message where the deadline ends the waiting
	throttled         int // answers with status 429
}

// spent is what the call has cost so far.
func (t *tally) spent() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Usage
}

// throttles is how often the call was answered with 429 so far.
func (t *tally) throttles() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.throttled
}

// last is how the service answered last.
func (t *tally) last() (status, substatus int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.substatus
}

// delay adds to the time that the budget made the call wait.
func (t *tally) delay(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Delay += d
}

// count adds each try to the tally of its call.
func count(r *policy.Request) (*http.Response, error) {
	t, _ := r.Raw().Context().Value(meter{}).(*tally)
	if t == nil {
		return r.Next() // a request that the SDK makes on its own
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
