package cosmos

import (
	"math/rand" // rather than v2: a simulation sets its seed
	"net/http"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	retries      = 4                      // after the first try, within the caller's deadline
	firstDelay   = 100 * time.Millisecond // doubles with each retry; a retry-after of the service wins
	longestDelay = 20 * time.Second       // a longer retry-after is not waited for
)

// patience is how often, and for how long, one endpoint is tried.
type patience struct {
	retries int           // after the first try
	timeout time.Duration // of a try; 0 = as long as the caller has
	last    bool          // nobody else can be asked
}

// retry tries a request again, as docs/lag.md says: within the tick, and as the service asks. azcore and
// azcosmos retry nothing.
type retry struct {
	next policy.Transporter
	*health
}

func (t retry) Do(r *http.Request) (*http.Response, error) {
	ctx, c := r.Context(), callOf(r.Context())
	for try := 0; ; try++ {
		response, err := t.next.Do(r)
		if ctxErr := ctx.Err(); ctxErr != nil {
			if err == nil {
				response.Body.Close()
			}
			return nil, ctxErr
		}
		if try == c.patient.retries || c.single || c.class == feed && isTimeout(err) || !c.patient.again(response, err) || t.open(c) {
			return response, err
		}
		delay := retryAfter(response)
		switch {
		case delay > longestDelay:
			return response, err
		case delay <= 0:
			delay = min(longestDelay, time.Duration((0.8+rand.Float64()/2)*float64(firstDelay<<(try+1)-firstDelay)))
		}
		if response != nil {
			runtime.Drain(response)
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// again reports whether to try again. A region that does not answer is not asked twice if there is
// another one.
func (p patience) again(response *http.Response, err error) bool {
	if err != nil {
		return p.last && retriable(err)
	}
	return changefeed.OutcomeOf(response.StatusCode, substatus(response)) == changefeed.Transient
}

// open reports whether a retry would only add to the failures.
func (h *health) open(c *call) bool {
	for _, b := range []*breaker{h.account, h.of(c.about.container)} {
		b.mu.Lock()
		open := b.isOpen()
		b.mu.Unlock()
		if open {
			return true
		}
	}
	return false
}

// retryAfter returns how long the service asks to wait, 0 if it does not say. Cosmos DB says it in
// milliseconds, a proxy in seconds or as a date.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if n, err := strconv.Atoi(response.Header.Get(name)); err == nil && n > 0 {
			return time.Duration(n) * time.Millisecond
		}
	}
	text := response.Header.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}
