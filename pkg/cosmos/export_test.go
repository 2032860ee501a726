package cosmos

import (
	"context"
	"time"
)

// Pace gives a test access to the methods of a pace.
type Pace struct{ *pace }

func NewPace(budget float64, maxLimit int) Pace { return Pace{newPace(budget, maxLimit)} }

func (p Pace) Enter(ctx context.Context) (time.Duration, error) { return p.enter(ctx) }
func (p Pace) Leave(throttled bool, charge float64)             { p.leave(throttled, charge) }

// Regions gives a test access to the methods of regions, without an account.
type Regions struct{ *regions }

func NewRegions(endpoint, own string) Regions { return Regions{newRegions(endpoint, own)} }

func (r Regions) Route(now time.Time) []string              { return r.route(now) }
func (r Regions) MarkFailed(endpoint string, now time.Time) { r.markFailed(endpoint, now) }
func (r Regions) Learn(description string, now time.Time)   { r.learn([]byte(description), now) }
