package cosmos

import (
	"net/http"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/refusal"
)

// Refuse returns the error of an answer with a status, a substatus and the service's words. scope is the
// resource id of the account if Azure Resource Manager answers.
func Refuse(about Subject, identity bool, status, substatus int, host, scope, words string) *refusal.Error {
	answer := &http.Response{StatusCode: status, Header: http.Header{"X-Ms-Substatus": {strconv.Itoa(substatus)}, "X-Ms-Activity-Id": {"1"}}}
	return describer{host: host, identity: identity, scope: scope}.explained(about, answer, words)
}

// NewTransport is what an Account without a Transport sends its requests with.
func NewTransport(concurrency int) *http.Transport { return newHTTP(concurrency) }

// Regions gives a test access to the methods of a router, without an account.
type Regions struct{ *router }

func NewRegions(endpoint, own string) Regions { return Regions{newRouter(nil, nil, endpoint, own)} }

func (r Regions) Route(now time.Time) []string              { reads, _ := r.route(now); return reads }
func (r Regions) Writable() string                          { _, writes := r.route(time.Time{}); return writes }
func (r Regions) MarkFailed(endpoint string, now time.Time) { r.markFailed(endpoint, now) }
func (r Regions) Learn(description string)                  { r.learn([]byte(description)) }
