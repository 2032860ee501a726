package cosmos

import (
	"context"
	"net/http"
	"time"
)

// Pace gives a test access to the methods of a pace.
type Pace struct{ *pace }

func NewPace(budget float64, maxLimit int) Pace { return Pace{newPace(budget, maxLimit)} }

// NewTransport is what an Account without a Transport sends its requests with.
func NewTransport(concurrency int) *http.Transport { return newTransport(concurrency) }

// Shop is the container that the calls of a test read.
var Shop = Container{"shop", "orders"}

func (p Pace) Enter(ctx context.Context) (time.Duration, error) {
	_, delay, err := p.enter(ctx, lookup, Shop)
	return delay, err
}

func (p Pace) Leave(throttled bool, charge float64) { p.leave(lookup, Shop, 0, throttled, charge) }

// Read is a feed read that costs so much, ended once done is closed.
func (p Pace) Read(ctx context.Context, charge float64, done <-chan struct{}) error {
	reserved, _, err := p.enter(ctx, feed, Shop)
	if err != nil {
		return err
	}
	<-done
	p.leave(feed, Shop, reserved, false, charge)
	return nil
}

// Regions gives a test access to the methods of regions, without an account.
type Regions struct{ *regions }

func NewRegions(endpoint, own string) Regions { return Regions{newRegions(endpoint, own)} }

func (r Regions) Route(now time.Time) []string              { return r.route(now) }
func (r Regions) Writable() string                          { return r.writable() }
func (r Regions) MarkFailed(endpoint string, now time.Time) { r.markFailed(endpoint, now) }
func (r Regions) Learn(description string, now time.Time)   { r.learn([]byte(description), now) }
