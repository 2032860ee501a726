package cosmos

import (
	"context"
	"time"
)

// Pace is a pace whose turns a test takes by itself.
type Pace struct{ *pace }

func NewPace(budget float64, most int) Pace { return Pace{newPace(budget, most)} }

func (p Pace) Enter(ctx context.Context) (time.Duration, error) { return p.enter(ctx) }
func (p Pace) Leave(throttled bool, charge float64)             { p.leave(throttled, charge) }

// Regions are regions without an account.
type Regions struct{ *regions }

func NewRegions(endpoint, own string) Regions { return Regions{newRegions(endpoint, own)} }

func (r Regions) Route(now time.Time) []string              { return r.route(now) }
func (r Regions) OutOfOrder(endpoint string, now time.Time) { r.outOfOrder(endpoint, now) }
func (r Regions) Learn(description string, now time.Time)   { r.learn([]byte(description), now) }
