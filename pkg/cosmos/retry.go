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

// retry tries a request again, as docs/lag.md says: within the tick, and as the service asks. azcore and
// azcosmos retry nothing.
type retry struct {
	next   policy.Transporter
	health *health
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
		if try == c.retries || c.look > 0 || c.feed && isTimeout(err) || !again(c, response, err) || t.health.isOpenTo(c) {
			return response, err
		}
		delay := retryAfter(response)
		if delay > longestDelay {
			return response, err
		}
		if delay <= 0 {
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
func again(c *call, response *http.Response, err error) bool {
	if err != nil {
		return c.timeout == 0 && retriable(err)
	}
	return changefeed.OutcomeOf(response.StatusCode, substatus(response)) == changefeed.Transient
}

// retryAfter returns how long the service asks to wait, 0 if it does not say. Cosmos DB says it in
// milliseconds, a proxy in seconds.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	for _, header := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if n, err := strconv.Atoi(response.Header.Get(header)); err == nil && n > 0 {
			return time.Duration(n) * time.Millisecond
		}
	}
	n, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(n) * time.Second
}
