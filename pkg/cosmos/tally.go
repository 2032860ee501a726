package cosmos

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

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

// tally adds up the tries of one call, of which the caller sees only the last. A try that timed out may
// still end while the next is made: hence the mutex.
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

// maxCharge is the most request units that an answer is believed to have cost: what a container may spend in a
// second by default. A charge above it counts as none, as do one below 0 and one that is no number.
const maxCharge = 1e6

// count adds a try to the tally of its call.
func (t *tally) count(response *http.Response, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Requests++
	if err != nil {
		return
	}
	t.status, t.substatus = response.StatusCode, substatus(response)
	if response.StatusCode == http.StatusTooManyRequests {
		t.throttled++
	}
	if !regionFails(response, nil) {
		t.answered++
	}
	if charge, err := strconv.ParseFloat(response.Header.Get(headerCharge), 64); err == nil && charge >= 0 && charge <= maxCharge {
		t.Charge += charge
	}
}

// tallyKey is the context key of a call's tally, where a pipeline of azcore sends it.
type tallyKey struct{}

// countPolicy is the policy that counts each try in such a pipeline.
type countPolicy struct{}

func (countPolicy) Do(r *policy.Request) (*http.Response, error) {
	response, err := r.Next()
	if t, _ := r.Raw().Context().Value(tallyKey{}).(*tally); t != nil {
		t.count(response, err)
	}
	return response, err
}

func substatus(r *http.Response) int {
	text := r.Header.Get(headerSubstatus)
	if text == "" {
		return 0 // as most answers: the error of Atoi would cost more than all else here
	}
	n, _ := strconv.Atoi(text)
	return n
}
