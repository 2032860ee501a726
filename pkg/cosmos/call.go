package cosmos

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// call is what the transport needs to know of a request that is not in it, and what the call has cost so
// far. It travels in the context, since azcosmos hands over nothing else. Its requests are made one after
// the other.
type call struct {
	about   subject
	feed    bool   // a page of the feed, one for each lease: it waits for the budget, and is read as it comes
	part    string // partition key range id; "" = none
	primary bool   // it goes to the region that takes writes alone
	byRID   bool   // its path has RIDs in place of names

	Usage
	status, substatus int  // of the last answer, for the message if the deadline ends the retries
	answered          int  // answers that are no failure of a region
	hung              bool // a try had no answer for a while

	breaker *breaker      // of the container, or of the account if it is about none
	finds   []*breaker    // those that are open, whose state this call finds out
	look    time.Duration // the most that a try may take, after which there is no other; 0 = no limit of its own
	retries int           // after the first try in the region that is asked
	timeout time.Duration // of a try there; 0 = as long as the caller has, since no other region can be asked
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
	return &call{}
}

// maxCharge is the most request units that an answer is believed to have cost: what a container may spend
// in a second by default. A charge above it counts as none, as do one below 0 and one that is no number.
const maxCharge = 1e6

// count adds a try.
func (c *call) count(response *http.Response, err error) {
	c.Requests++
	if err != nil {
		return
	}
	c.status, c.substatus = response.StatusCode, substatus(response)
	if !regionFails(response, nil) {
		c.answered++
	}
	if charge, err := strconv.ParseFloat(response.Header.Get(headerCharge), 64); err == nil && charge >= 0 && charge <= maxCharge {
		c.Charge += charge
	}
}
