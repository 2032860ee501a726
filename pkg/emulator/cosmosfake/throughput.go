package cosmosfake

import (
	"math"
	"net/http"
	"sync"
	"time"
)

// Request charges. The service documents a read of 1 KiB as one request unit (RU) and leaves the
// rest to measurement; these figures have the sizes one measures.
func readCharge(size int) float64 { return math.Max(1, math.Ceil(float64(size)/1024)) }

func writeCharge(size int) float64 { return round(5 + 5*math.Floor(float64(size)/1024)/2 + 0.29) }

// feedCall is the charge of a change feed read of nothing. What it brings is charged as point
// reads, so that a call that brings one small item comes to 2: "about 2 RU/s" for the call and "a 1
// RU/s point read" for each item, as the product group says in
// https://github.com/MicrosoftDocs/azure-docs/issues/50040; there is no published table.
const feedCall = 1

func queryCharge(results, size int) float64 {
	return round(2.25 + 0.03*float64(results) + float64(size)/2048)
}

func round(charge float64) float64 { return math.Round(charge*100) / 100 }

// budget is a range's share of the container's throughput. A request is admitted while any of the
// current second's share is left. What it uses beyond that is taken from the next second.
type budget struct {
	mu     sync.Mutex
	left   float64
	since  time.Time
	second int64   // seconds since 1970
	used   float64 // request units in that second
}

// admit returns how long the caller has to wait; 0 lets it in. rate is in RU per second.
func (b *budget) admit(now time.Time, rate float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		b.left = rate
	} else if elapsed := now.Sub(b.since).Seconds(); elapsed > 0 {
		b.left = math.Min(rate, b.left+elapsed*rate)
	}
	b.since = now
	if b.left > 0 {
		return 0
	}
	return time.Duration(-b.left/rate*float64(time.Second)) + time.Millisecond
}

// spend returns what was spent in the same second so far.
func (b *budget) spend(now time.Time, charge float64) (used float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= charge
	if second := now.Unix(); second != b.second {
		b.second, b.used = second, 0
	}
	b.used += charge
	return b.used
}

// share is what each range of the container may use in a second: its part of the container's
// throughput, or of the database's, which all ranges of the containers without throughput of their
// own share, and never more than one range can serve. limited is false if neither has any.
func (c *container) share(now time.Time) (rate float64, limited bool) {
	p, o := c.provider()
	if o == nil {
		return 0, false
	}
	return min(float64(o.served(now))/float64(p.ranges()), throughputPerRange), true
}

// provider is what provides the container's throughput: itself, or its database; the offer is nil
// if neither does.
func (c *container) provider() (provisioner, *offer) {
	for _, p := range [...]provisioner{c, c.database} {
		if o := p.provisioned().Load(); o != nil {
			return p, o
		}
	}
	return nil, nil
}

// admit refuses a request with 429 if a range that it needs has used up its share.
func (c *call) admit(ranges ...*partition) error {
	rate, limited := c.container.share(c.now)
	if !limited {
		return nil
	}
	for _, p := range ranges {
		if wait := p.budget.admit(c.now, rate); wait > 0 {
			return &fault{status: http.StatusTooManyRequests, substatus: substatusOverBudget, retryAfter: wait, charge: 0.38,
				message: "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429"}
		}
	}
	return nil
}

// spend takes the charge of a request off a range's share. Autoscaled throughput follows the range
// that is used most (https://learn.microsoft.com/azure/cosmos-db/autoscale-faq), which is what its
// bill is made of.
func (c *call) spend(p *partition, charge float64) {
	used := p.budget.spend(c.now, charge)
	if of, o := c.container.provider(); o != nil && o.Maximum > 0 {
		o.ledger.use(c.now, used*float64(of.ranges()))
	}
}
